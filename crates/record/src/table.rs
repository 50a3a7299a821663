//! Parquet tables, written as the run goes: memory holds one row group, not the run.

use crate::demands::Recording;
use crate::rows::{DemandRow, DropRow, ExchangeRow, ProbeRow, QueueRow, Sink, TcpRow};
use aqm::Cause;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The column with the name of a link.
const LINK: &str = "link";
/// Rows a row group.
const GROUP: usize = 1 << 17;

/// What a column holds.
#[derive(Clone, Copy)]
enum Content {
    Float,
    /// A float or null.
    Nullable,
    /// Unsigned, of this many bits.
    Unsigned(i8),
    Text,
}

use Content::{Float, Nullable, Text, Unsigned};

impl Content {
    fn physical(self) -> Physical {
        match self {
            Float | Nullable => Physical::DOUBLE,
            Unsigned(bits) if bits > 32 => Physical::INT64,
            Unsigned(_) => Physical::INT32,
            Text => Physical::BYTE_ARRAY,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self {
            Float | Nullable => None,
            Unsigned(bits) => Some(LogicalType::integer(bits, false)),
            Text => Some(LogicalType::String),
        }
    }

    fn repetition(self) -> Repetition {
        if matches!(self, Nullable) { Repetition::OPTIONAL } else { Repetition::REQUIRED }
    }
}

/// A table being written.
struct Table<R> {
    writer: SerializedFileWriter<File>,
    rows: Vec<R>,
    /// The names of the links.
    links: Arc<[ByteArray]>,
}

impl<R: Row> Table<R> {
    fn create(path: &Path, links: &Arc<[ByteArray]>) -> Result<Self> {
        let fields = R::COLUMNS.iter().map(|&(name, content)| {
            Type::primitive_type_builder(name, content.physical())
                .with_repetition(content.repetition())
                .with_logical_type(content.logical())
                .build()
                .map(Arc::new)
        });
        let schema = Type::group_type_builder("row").with_fields(fields.collect::<Result<_>>()?).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Times and sizes hardly repeat: a dictionary would be built only to be thrown away.
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled(ColumnPath::from(LINK), true)
            .build();
        let writer = SerializedFileWriter::new(File::create(path)?, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, rows: Vec::with_capacity(GROUP), links: links.clone() })
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = Group { group: self.writer.next_row_group()?, links: &self.links };
        R::write(&self.rows, &mut group)?;
        group.group.close()?;
        self.rows.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.writer.close()?;
        Ok(())
    }
}

/// A kind of row that can be written, column by column in the order of `COLUMNS`.
trait Row: Sized {
    const COLUMNS: &'static [(&'static str, Content)];
    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()>;
}

/// A row group being written.
struct Group<'a> {
    group: SerializedRowGroupWriter<'a, File>,
    links: &'a [ByteArray],
}

impl Group<'_> {
    fn column<T: DataType>(&mut self, values: impl Iterator<Item = T::T>) -> Result<()> {
        self.write::<T>(&values.collect::<Vec<_>>(), None)
    }

    fn nullable(&mut self, values: impl Iterator<Item = Option<f64>> + Clone) -> Result<()> {
        let levels: Vec<i16> = values.clone().map(|v| i16::from(v.is_some())).collect();
        self.write::<DoubleType>(&values.flatten().collect::<Vec<_>>(), Some(&levels))
    }

    /// The names of links of these numbers.
    fn links(&mut self, numbers: impl Iterator<Item = u16>) -> Result<()> {
        let links = self.links;
        self.column::<ByteArrayType>(numbers.map(|number| links[usize::from(number)].clone()))
    }

    fn write<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
        let mut column = self.group.next_column()?.expect("as many columns as the schema has");
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

impl Row for ExchangeRow {
    const COLUMNS: &'static [(&'static str, Content)] = &[
        ("start_s", Float),
        ("response_time_s", Float),
        ("setup_s", Float),
        ("request_bytes", Unsigned(32)),
        ("response_bytes", Unsigned(64)),
        ("traffic", Unsigned(16)),
        ("source", Unsigned(32)),
        ("direction", Unsigned(8)),
    ];

    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()> {
        group.column::<DoubleType>(rows.iter().map(|r| r.start_s))?;
        group.column::<DoubleType>(rows.iter().map(|r| r.response_time_s))?;
        group.column::<DoubleType>(rows.iter().map(|r| r.setup_s))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.request_bytes as i32))?;
        group.column::<Int64Type>(rows.iter().map(|r| r.response_bytes as i64))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.traffic)))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.source as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.direction)))
    }
}

impl Row for QueueRow {
    const COLUMNS: &'static [(&'static str, Content)] = &[
        ("time_s", Float),
        ("direction", Unsigned(8)),
        ("offered_packets", Unsigned(32)),
        ("delivered_packets", Unsigned(32)),
        ("delivered_bytes", Unsigned(64)),
        ("dropped_packets", Unsigned(32)),
        ("marked_packets", Unsigned(32)),
        ("queue_packets", Unsigned(32)),
        ("queue_bytes", Unsigned(64)),
        ("queue_delay_mean_s", Nullable),
        ("queue_delay_max_s", Nullable),
        ("probability", Nullable),
        ("control", Nullable),
        ("tracked_flows", Nullable),
        (LINK, Text),
    ];

    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()> {
        group.column::<DoubleType>(rows.iter().map(|r| r.time_s))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.direction)))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.offered_packets as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.delivered_packets as i32))?;
        group.column::<Int64Type>(rows.iter().map(|r| r.delivered_bytes as i64))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.dropped_packets as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.marked_packets as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.queue_packets as i32))?;
        group.column::<Int64Type>(rows.iter().map(|r| r.queue_bytes as i64))?;
        group.nullable(rows.iter().map(|r| r.queue_delay_mean_s))?;
        group.nullable(rows.iter().map(|r| r.queue_delay_max_s))?;
        group.nullable(rows.iter().map(|r| r.gauges.probability))?;
        group.nullable(rows.iter().map(|r| r.gauges.control))?;
        group.nullable(rows.iter().map(|r| r.gauges.tracked_flows.map(f64::from)))?;
        group.links(rows.iter().map(|r| r.link))
    }
}

impl Row for DropRow {
    const COLUMNS: &'static [(&'static str, Content)] = &[
        ("time_s", Float),
        ("direction", Unsigned(8)),
        ("action", Text),
        ("cause", Text),
        ("size_bytes", Unsigned(32)),
        ("flow", Unsigned(64)),
        (LINK, Text),
    ];

    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()> {
        group.column::<DoubleType>(rows.iter().map(|r| r.time_s))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.direction)))?;
        group.column::<ByteArrayType>(rows.iter().map(|r| ByteArray::from(if r.is_mark { "mark" } else { "drop" })))?;
        group.column::<ByteArrayType>(rows.iter().map(|r| ByteArray::from(Cause::name(r.cause))))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.size_bytes as i32))?;
        group.column::<Int64Type>(rows.iter().map(|r| r.flow as i64))?;
        group.links(rows.iter().map(|r| r.link))
    }
}

impl Row for ProbeRow {
    const COLUMNS: &'static [(&'static str, Content)] = &[
        ("sent_s", Float),
        ("delay_s", Nullable),
        ("packet", Unsigned(32)),
        ("traffic", Unsigned(16)),
        ("source", Unsigned(32)),
        ("direction", Unsigned(8)),
    ];

    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()> {
        group.column::<DoubleType>(rows.iter().map(|r| r.sent_s))?;
        group.nullable(rows.iter().map(|r| r.delay_s))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.packet as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.traffic)))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.source as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.direction)))
    }
}

impl Row for TcpRow {
    const COLUMNS: &'static [(&'static str, Content)] = &[
        ("time_s", Float),
        ("traffic", Unsigned(16)),
        ("source", Unsigned(32)),
        ("side", Unsigned(8)),
        ("state", Unsigned(8)),
        ("congestion_state", Unsigned(8)),
        ("cwnd_segments", Unsigned(32)),
        ("ssthresh_segments", Nullable),
        ("in_flight_segments", Unsigned(32)),
        ("srtt_s", Nullable),
        ("rttvar_s", Nullable),
        ("rto_s", Float),
        ("pacing_rate_bps", Nullable),
        ("acknowledged_bytes", Unsigned(64)),
        ("retransmitted_segments", Unsigned(32)),
        ("delivered_segments", Unsigned(32)),
        ("delivered_ce_segments", Nullable),
    ];

    fn write(rows: &[Self], group: &mut Group<'_>) -> Result<()> {
        group.column::<DoubleType>(rows.iter().map(|r| r.time_s))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.traffic)))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.source as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.side)))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.state)))?;
        group.column::<Int32Type>(rows.iter().map(|r| i32::from(r.congestion_state)))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.cwnd_segments as i32))?;
        group.nullable(rows.iter().map(|r| r.ssthresh_segments))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.in_flight_segments as i32))?;
        group.nullable(rows.iter().map(|r| r.srtt_s))?;
        group.nullable(rows.iter().map(|r| r.rttvar_s))?;
        group.column::<DoubleType>(rows.iter().map(|r| r.rto_s))?;
        group.nullable(rows.iter().map(|r| r.pacing_rate_bps))?;
        group.column::<Int64Type>(rows.iter().map(|r| r.acknowledged_bytes as i64))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.retransmitted_segments as i32))?;
        group.column::<Int32Type>(rows.iter().map(|r| r.delivered_segments as i32))?;
        group.nullable(rows.iter().map(|r| r.delivered_ce_segments))
    }
}

/// The tables of one run in a folder: `exchanges.parquet`, `queue.parquet` and, where asked for, `drops.parquet`,
/// `probes.parquet`, `tcp.parquet` and recorded demands.
///
/// A disk that fills up does not stop a run under way; [`Tables::finish`] tells.
pub struct Tables {
    exchanges: Option<Table<ExchangeRow>>,
    queue: Table<QueueRow>,
    drops: Option<Table<DropRow>>,
    probes: Option<Table<ProbeRow>>,
    tcp: Option<Table<TcpRow>>,
    demands: Option<Recording>,
    failed: Result<()>,
    links: Arc<[ByteArray]>,
}

impl Tables {
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
            tcp: None,
            demands: None,
            failed: Ok(()),
            links,
        })
    }

    /// The same with `probes.parquet`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn with_probes(mut self, folder: &Path) -> Result<Self> {
        self.probes = Some(Table::create(&folder.join("probes.parquet"), &self.links)?);
        Ok(self)
    }

    /// The same with `tcp.parquet`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn with_tcp(mut self, folder: &Path) -> Result<Self> {
        self.tcp = Some(Table::create(&folder.join("tcp.parquet"), &self.links)?);
        Ok(self)
    }

    /// The same with what is asked for, a file `demands-N.csv` for each block of traffic that asks for exchanges.
    pub fn with_demands(mut self, folder: &Path) -> Self {
        self.demands = Some(Recording::new(folder));
        self
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
        self.tcp.map_or(Ok(()), Table::finish)?;
        Ok(self.demands.map_or(Ok(()), Recording::finish)?)
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

    fn tcp(&mut self, row: &TcpRow) {
        if let Some(table) = &mut self.tcp {
            let result = table.push(*row);
            self.note(result);
        }
    }

    fn demand(&mut self, row: &DemandRow) {
        if let Some(recording) = &mut self.demands {
            let result = recording.push(row).map_err(Into::into);
            self.note(result);
        }
    }
}
