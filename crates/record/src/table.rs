//! Parquet tables are written while the run goes on: memory holds one row group, not the run.

use crate::columns::{Column, Row};
use crate::demands::Recording;
use crate::meter::Meter;
use crate::rows::{DelayRow, DemandRow, DropRow, ExchangeRow, FrameRow, ProbeRow, QueueRow, Sink, TcpRow};
use parquet::basic::Compression;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as Written};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use scenario::Scenario;
use std::fs::File;
use std::io::{self, Result};
use std::path::Path;
use std::sync::Arc;

/// The rows of a row group.
const GROUP: usize = 1 << 17;

/// A table being written.
struct Table<R: Row> {
    writer: SerializedFileWriter<File>,
    rows: Vec<R>,
    /// The names of the links.
    links: Arc<[ByteArray]>,
}

impl<R: Row> Table<R> {
    fn create(path: &Path, links: &Arc<[ByteArray]>) -> Result<Self> {
        Self::open(path, links).map_err(said)
    }

    fn open(path: &Path, links: &Arc<[ByteArray]>) -> Written<Self> {
        let fields = R::COLUMNS.iter().flat_map(Column::fields).collect::<Written<_>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Times and sizes hardly repeat: a dictionary would be built only to be thrown away.
            .set_dictionary_enabled(false);
        let properties = R::COLUMNS.iter().fold(properties, |properties, column| column.set(properties)).build();
        let writer = SerializedFileWriter::new(File::create(path)?, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, rows: Vec::with_capacity(GROUP), links: links.clone() })
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == GROUP { self.flush().map_err(said) } else { Ok(()) }
    }

    fn flush(&mut self) -> Written<()> {
        let mut group = self.writer.next_row_group()?;
        for column in R::COLUMNS {
            column.write(&self.rows, &mut group, &self.links)?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.flush().map_err(said)?;
        }
        self.writer.close().map_err(said)?;
        Ok(())
    }
}

/// What the file system said, in its own words.
fn said(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => source.downcast().map_or_else(io::Error::other, |error| *error),
        error => io::Error::other(error),
    }
}

/// The tables of one run in a folder: `exchanges.parquet`, `queue.parquet`, `delays.parquet` and, where asked for,
/// `drops.parquet`, `probes.parquet`, `frames.parquet`, `tcp.parquet` and recorded demands.
///
/// A disk that fills up does not stop a run under way; [`Tables::finish`] returns the error.
pub struct Tables {
    exchanges: Option<Table<ExchangeRow>>,
    queue: Table<QueueRow>,
    drops: Option<Table<DropRow>>,
    probes: Option<Table<ProbeRow>>,
    frames: Option<Table<FrameRow>>,
    tcp: Option<Table<TcpRow>>,
    demands: Option<Recording>,
    failed: Result<()>,
    links: Arc<[ByteArray]>,
}

impl Tables {
    /// Creates in `folder`, which exists, the tables that a run of `scenario` has; `tcp.parquet` where `has_tcp`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn of(scenario: &Scenario, folder: &Path, has_tcp: bool) -> Result<Self> {
        let (record, links) = (&scenario.record, scenario.links.iter().map(|link| link.name.as_str()));
        let mut tables = Self::create(folder, links, record.exchanges, record.drops)?;
        if scenario.has_probes() {
            tables = tables.with_probes(folder)?;
        }
        if scenario.has_frames() {
            tables = tables.with_frames(folder)?;
        }
        if has_tcp {
            tables = tables.with_tcp(folder)?;
        }
        Ok(if record.demands { tables.with_demands(folder) } else { tables })
    }

    /// Creates the tables in `folder`, which exists, of a run over links of these names.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create<'a>(
        folder: &Path,
        links: impl Iterator<Item = &'a str>,
        has_exchanges: bool,
        has_drops: bool,
    ) -> Result<Self> {
        let links: Arc<[ByteArray]> = links.map(ByteArray::from).collect();
        Ok(Self {
            exchanges: has_exchanges.then(|| Table::create(&folder.join("exchanges.parquet"), &links)).transpose()?,
            queue: Table::create(&folder.join("queue.parquet"), &links)?,
            drops: has_drops.then(|| Table::create(&folder.join("drops.parquet"), &links)).transpose()?,
            probes: None,
            frames: None,
            tcp: None,
            demands: None,
            failed: Ok(()),
            links,
        })
    }

    /// Lets it write `probes.parquet` too.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn with_probes(mut self, folder: &Path) -> Result<Self> {
        self.probes = Some(Table::create(&folder.join("probes.parquet"), &self.links)?);
        Ok(self)
    }

    /// Lets it write `frames.parquet` too.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn with_frames(mut self, folder: &Path) -> Result<Self> {
        self.frames = Some(Table::create(&folder.join("frames.parquet"), &self.links)?);
        Ok(self)
    }

    /// Lets it write `tcp.parquet` too.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn with_tcp(mut self, folder: &Path) -> Result<Self> {
        self.tcp = Some(Table::create(&folder.join("tcp.parquet"), &self.links)?);
        Ok(self)
    }

    /// Lets it record demands too: a file `demands-N.csv` for each block of traffic that asks for exchanges.
    pub fn with_demands(mut self, folder: &Path) -> Self {
        self.demands = Some(Recording::new(folder));
        self
    }

    /// Writes `delays.parquet` into `folder`: how many packets waited how long, as the `meters` counted it within the
    /// measured window; they stand by link, forward before reverse.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write_delays(&self, folder: &Path, meters: &[Meter]) -> Result<()> {
        let mut table = Table::create(&folder.join("delays.parquet"), &self.links)?;
        for (port, meter) in meters.iter().enumerate() {
            let (link, direction) = ((port / 2) as u16, (port % 2) as u8);
            for (queue_delay, packets) in meter.window().waits() {
                table.push(DelayRow { link, direction, queue_delay, packets })?;
            }
        }
        table.finish()
    }

    /// Writes what is left and closes the files.
    ///
    /// # Errors
    /// The first failure of any write since they were created.
    pub fn finish(self) -> Result<()> {
        self.failed?;
        self.exchanges.map_or(Ok(()), Table::finish)?;
        self.queue.finish()?;
        self.drops.map_or(Ok(()), Table::finish)?;
        self.probes.map_or(Ok(()), Table::finish)?;
        self.frames.map_or(Ok(()), Table::finish)?;
        self.tcp.map_or(Ok(()), Table::finish)?;
        self.demands.map_or(Ok(()), Recording::finish)
    }

    fn note(&mut self, result: Result<()>) {
        if self.failed.is_ok() {
            self.failed = result;
        }
    }
}

impl Sink for Tables {
    fn exchange(&mut self, row: &ExchangeRow) {
        if let Some(table) = &mut self.exchanges {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn queue(&mut self, row: &QueueRow) {
        let result = self.queue.push(*row);
        self.note(result);
    }

    fn drop(&mut self, row: &DropRow) {
        if let Some(table) = &mut self.drops {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn probe(&mut self, row: &ProbeRow) {
        if let Some(table) = &mut self.probes {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn frame(&mut self, row: &FrameRow) {
        if let Some(table) = &mut self.frames {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn tcp(&mut self, row: &TcpRow) {
        if let Some(table) = &mut self.tcp {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn demand(&mut self, row: &DemandRow) {
        if let Some(recording) = &mut self.demands {
            let result = recording.push(row);
            self.note(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_the_system_tells_it() {
        let full = || io::Error::from_raw_os_error(28);
        let told = said(full().into());
        assert_eq!((told.raw_os_error(), told.to_string()), (Some(28), full().to_string()));
    }
}
