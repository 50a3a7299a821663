//! A gauge is a number that a discipline shows of itself, by name. Its row says which gauge each column of the tables
//! has.

use crate::param::Text;

/// What a law shows of itself in time series; `None` if it has no such quantity. Its row says what each is
/// ([`Row::gauges`](crate::registry::Row::gauges)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Probability with which a packet of mean size is signalled now, 0 to 1.
    pub probability: Option<f64>,
    /// The law's own control variable.
    pub control: Option<f64>,
    /// How many flows it keeps something of, or how many queues hold packets or have a turn.
    pub tracked_flows: Option<u32>,
}

/// A column of the tables of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// The column `probability`.
    Probability,
    /// The column `control`.
    Control,
    /// The column `tracked_flows`.
    TrackedFlows,
}

impl Column {
    /// Every column, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Probability, Self::Control, Self::TrackedFlows];

    /// The name of the column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Probability => "probability",
            Self::Control => "control",
            Self::TrackedFlows => "tracked_flows",
        }
    }

    /// The number that `gauges` have for this column.
    pub fn of(self, gauges: &Gauges) -> Option<f64> {
        match self {
            Self::Probability => gauges.probability,
            Self::Control => gauges.control,
            Self::TrackedFlows => gauges.tracked_flows.map(f64::from),
        }
    }
}

/// Something that a discipline shows of itself. A constant is a `Gauge`, a registry has `Gauge<Text>`.
#[derive(Clone, Copy, Debug)]
pub struct Gauge<T = &'static str> {
    /// Its name, as its source has it.
    pub name: T,
    /// Its unit; empty for a plain number.
    pub unit: T,
    /// What it is.
    pub doc: T,
    /// The column in which it stands.
    pub column: Column,
}

impl From<Gauge> for Gauge<Text> {
    fn from(gauge: Gauge) -> Self {
        let Gauge { name, unit, doc, column } = gauge;
        Self { name: name.into(), unit: unit.into(), doc: doc.into(), column }
    }
}

impl Gauge {
    /// A gauge of the probability of a signal.
    pub const fn probability(doc: &'static str) -> Self {
        Self { name: "probability", unit: "", doc, column: Column::Probability }
    }

    /// A gauge of the variable that a law steers by.
    pub const fn control(name: &'static str, unit: &'static str, doc: &'static str) -> Self {
        Self { name, unit, doc, column: Column::Control }
    }

    /// A gauge that counts flows.
    pub const fn flows(doc: &'static str) -> Self {
        Self { name: "flows", unit: "flows", doc, column: Column::TrackedFlows }
    }
}
