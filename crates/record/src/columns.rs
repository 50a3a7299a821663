//! This file defines the columns of the tables: the name of each, and which value of a row it holds.
//!
//! A time stands in two columns: `start_ns` has whole nanoseconds, as the clock of the run counts them, `start_s` the
//! same time in seconds, for whoever reads the table. Comparisons are exact with the first.

use crate::rows::{DelayRow, DropRow, ExchangeRow, FrameRow, ProbeRow, QueueRow, TcpRow};
use crate::seconds::seconds;
use aqm::Cause;
use base::Span;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::fs::File;

/// A kind of row that can be written.
pub trait Row: Sized + 'static {
    /// Its columns, in their order.
    const COLUMNS: &'static [Column<Self>];
}

/// A column, or the two columns of a time.
pub struct Column<R: 'static> {
    name: &'static str,
    of: Of<R>,
}

/// The value of a row that a column holds.
enum Of<R> {
    /// A time, nanoseconds: columns `NAME_s` and `NAME_ns`.
    Time(fn(&R) -> u64),
    /// A time or null.
    TimeOrNull(fn(&R) -> Option<u64>),
    /// Nanoseconds alone: a sum, of which only a quotient is a time.
    Nanoseconds(fn(&R) -> u64),
    /// A number or null.
    NumberOrNull(fn(&R) -> Option<f64>),
    /// An unsigned number, with its number of bits.
    Unsigned(i8, fn(&R) -> u64),
    /// A word.
    Word(fn(&R) -> &'static str),
    /// The name of the link of this number.
    Link(fn(&R) -> u16),
}

use Of::{Link, Nanoseconds, NumberOrNull, Time, TimeOrNull, Unsigned, Word};

/// Writes one column of the row group under way.
struct Writing<'a, 'g>(&'a mut SerializedRowGroupWriter<'g, File>);

impl Writing<'_, '_> {
    fn all<T: DataType>(&mut self, values: impl Iterator<Item = T::T>) -> Result<()> {
        self.batch::<T>(&values.collect::<Vec<_>>(), None)
    }

    fn nullable<T: DataType>(&mut self, values: impl Iterator<Item = Option<T::T>>) -> Result<()> {
        let values: Vec<_> = values.collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        self.batch::<T>(&values.into_iter().flatten().collect::<Vec<_>>(), Some(&levels))
    }

    fn batch<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
        let mut column = self.0.next_column()?.expect("as many columns as the schema has");
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

impl<R> Column<R> {
    const fn new(name: &'static str, of: Of<R>) -> Self {
        Self { name, of }
    }

    /// The name of the column that has this time in nanoseconds.
    fn in_ns(&self) -> String {
        format!("{}_ns", self.name)
    }

    /// Its fields in the schema.
    pub fn fields(&self) -> Vec<Result<TypePtr>> {
        let field = |name: &str, physical, logical: Option<LogicalType>, repetition| {
            let builder = Type::primitive_type_builder(name, physical);
            builder.with_repetition(repetition).with_logical_type(logical).build().map(TypePtr::new)
        };
        let time = |repetition| {
            let in_s = field(&format!("{}_s", self.name), Physical::DOUBLE, None, repetition);
            vec![in_s, field(&self.in_ns(), Physical::INT64, None, repetition)]
        };
        let text = Some(LogicalType::String);
        match self.of {
            Time(_) => time(Repetition::REQUIRED),
            TimeOrNull(_) => time(Repetition::OPTIONAL),
            Nanoseconds(_) => vec![field(&self.in_ns(), Physical::INT64, None, Repetition::REQUIRED)],
            NumberOrNull(_) => vec![field(self.name, Physical::DOUBLE, None, Repetition::OPTIONAL)],
            Unsigned(bits, _) => {
                let physical = if bits > 32 { Physical::INT64 } else { Physical::INT32 };
                vec![field(self.name, physical, Some(LogicalType::integer(bits, false)), Repetition::REQUIRED)]
            }
            Word(_) | Link(_) => vec![field(self.name, Physical::BYTE_ARRAY, text, Repetition::REQUIRED)],
        }
    }

    /// Adds how this column is compressed.
    pub fn set(&self, properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        match self.of {
            // Times follow each other closely: their differences take half of the room.
            Time(_) | TimeOrNull(_) | Nanoseconds(_) => {
                properties.set_column_encoding(ColumnPath::from(self.in_ns()), Encoding::DELTA_BINARY_PACKED)
            }
            // There are few names.
            Link(_) => properties.set_column_dictionary_enabled(ColumnPath::from(self.name), true),
            NumberOrNull(_) | Unsigned(..) | Word(_) => properties,
        }
    }

    /// Writes this column for all rows of a group.
    pub fn write(&self, rows: &[R], group: &mut SerializedRowGroupWriter<'_, File>, links: &[ByteArray]) -> Result<()> {
        let mut to = Writing(group);
        match self.of {
            Time(of) => {
                to.all::<DoubleType>(rows.iter().map(|row| seconds(of(row) as f64)))?;
                to.all::<Int64Type>(rows.iter().map(|row| of(row) as i64))
            }
            TimeOrNull(of) => {
                to.nullable::<DoubleType>(rows.iter().map(|row| of(row).map(|ns| seconds(ns as f64))))?;
                to.nullable::<Int64Type>(rows.iter().map(|row| of(row).map(|ns| ns as i64)))
            }
            Nanoseconds(of) => to.all::<Int64Type>(rows.iter().map(|row| of(row) as i64)),
            NumberOrNull(of) => to.nullable::<DoubleType>(rows.iter().map(of)),
            Unsigned(bits, of) if bits > 32 => to.all::<Int64Type>(rows.iter().map(|row| of(row) as i64)),
            Unsigned(_, of) => to.all::<Int32Type>(rows.iter().map(|row| of(row) as i32)),
            Word(of) => to.all::<ByteArrayType>(rows.iter().map(|row| ByteArray::from(of(row)))),
            Link(of) => to.all::<ByteArrayType>(rows.iter().map(|row| links[usize::from(of(row))].clone())),
        }
    }
}

impl Row for ExchangeRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("start", Time(|row| row.start.ns())),
        Column::new("response_time", Time(|row| row.response_time.ns())),
        Column::new("setup", Time(|row| row.setup.ns())),
        Column::new("request_bytes", Unsigned(32, |row| row.request_bytes.into())),
        Column::new("response_bytes", Unsigned(64, |row| row.response_bytes)),
        Column::new("traffic", Unsigned(16, |row| row.traffic.into())),
        Column::new("source", Unsigned(32, |row| row.source.into())),
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
    ];
}

impl Row for QueueRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("time", Time(|row| row.time.ns())),
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
        Column::new("offered_packets", Unsigned(32, |row| row.offered_packets.into())),
        Column::new("delivered_packets", Unsigned(32, |row| row.delivered_packets.into())),
        Column::new("delivered_bytes", Unsigned(64, |row| row.delivered_bytes)),
        Column::new("dropped_packets", Unsigned(32, |row| row.dropped_packets.into())),
        Column::new("marked_packets", Unsigned(32, |row| row.marked_packets.into())),
        Column::new("queue_packets", Unsigned(32, |row| row.queue_packets.into())),
        Column::new("queue_bytes", Unsigned(64, |row| row.queue_bytes)),
        Column::new("queue_delay_mean_s", NumberOrNull(QueueRow::queue_delay_mean_s)),
        Column::new("queue_delay_sum", Nanoseconds(|row| row.queue_delay_sum.ns())),
        Column::new(
            "queue_delay_max",
            TimeOrNull(|row| (row.delivered_packets > 0).then_some(row.queue_delay_max.ns())),
        ),
        Column::new("probability", NumberOrNull(|row| row.gauges.probability)),
        Column::new("control", NumberOrNull(|row| row.gauges.control)),
        Column::new("tracked_flows", NumberOrNull(|row| row.gauges.tracked_flows.map(f64::from))),
        Column::new("link", Link(|row| row.link)),
    ];
}

impl Row for DelayRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
        Column::new("queue_delay", Time(|row| row.queue_delay.ns())),
        Column::new("packets", Unsigned(64, |row| row.packets)),
        Column::new("link", Link(|row| row.link)),
    ];
}

impl Row for DropRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("time", Time(|row| row.time.ns())),
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
        Column::new("action", Word(|row| if row.is_mark { "mark" } else { "drop" })),
        Column::new("cause", Word(|row| Cause::name(row.cause))),
        Column::new("size_bytes", Unsigned(32, |row| row.size_bytes.into())),
        Column::new("flow", Unsigned(64, |row| row.flow)),
        Column::new("link", Link(|row| row.link)),
    ];
}

impl Row for ProbeRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("sent", Time(|row| row.sent.ns())),
        Column::new("delay", TimeOrNull(|row| row.delay.map(Span::ns))),
        Column::new("packet", Unsigned(32, |row| row.packet.into())),
        Column::new("traffic", Unsigned(16, |row| row.traffic.into())),
        Column::new("source", Unsigned(32, |row| row.source.into())),
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
    ];
}

impl Row for FrameRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("encoded", Time(|row| row.encoded.ns())),
        Column::new("delay", TimeOrNull(|row| row.delay.map(Span::ns))),
        Column::new("frame", Unsigned(32, |row| row.frame.into())),
        Column::new("bytes", Unsigned(32, |row| row.bytes.into())),
        Column::new("rate_bps", Unsigned(64, |row| row.rate_bps)),
        Column::new("traffic", Unsigned(16, |row| row.traffic.into())),
        Column::new("source", Unsigned(32, |row| row.source.into())),
        Column::new("direction", Unsigned(8, |row| row.direction.into())),
    ];
}

impl Row for TcpRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("time", Time(|row| row.time.ns())),
        Column::new("traffic", Unsigned(16, |row| row.traffic.into())),
        Column::new("source", Unsigned(32, |row| row.source.into())),
        Column::new("side", Unsigned(8, |row| row.side.into())),
        Column::new("state", Unsigned(8, |row| row.state.into())),
        Column::new("congestion_state", Unsigned(8, |row| row.congestion_state.into())),
        Column::new("cwnd_segments", Unsigned(32, |row| row.cwnd_segments.into())),
        Column::new("ssthresh_segments", NumberOrNull(|row| row.ssthresh_segments)),
        Column::new("in_flight_segments", Unsigned(32, |row| row.in_flight_segments.into())),
        Column::new("srtt", TimeOrNull(|row| row.srtt.map(Span::ns))),
        Column::new("rttvar", TimeOrNull(|row| row.rttvar.map(Span::ns))),
        Column::new("rto", Time(|row| row.rto.ns())),
        Column::new("pacing_rate_bps", NumberOrNull(|row| row.pacing_rate_bps)),
        Column::new("acknowledged_bytes", Unsigned(64, |row| row.acknowledged_bytes)),
        Column::new("retransmitted_segments", Unsigned(32, |row| row.retransmitted_segments.into())),
        Column::new("delivered_segments", Unsigned(32, |row| row.delivered_segments.into())),
        Column::new("delivered_ce_segments", NumberOrNull(|row| row.delivered_ce_segments)),
    ];
}
