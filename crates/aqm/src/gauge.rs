//! What a discipline shows of itself, by name: its row says what stands in each column of the tables.

use crate::law::Gauges;
use crate::param::Text;

/// A column of the tables of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// `probability`.
    Probability,
    /// `control`.
    Control,
    /// `tracked_flows`.
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

    /// What stands in the column.
    pub fn of(self, gauges: &Gauges) -> Option<f64> {
        match self {
            Self::Probability => gauges.probability,
            Self::Control => gauges.control,
            Self::TrackedFlows => gauges.tracked_flows.map(f64::from),
        }
    }
}

/// Something that a discipline shows of itself: `Gauge` where it is a constant, `Gauge<Text>` in a registry.
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
    /// The probability of a signal.
    pub const fn probability(doc: &'static str) -> Self {
        Self { name: "probability", unit: "", doc, column: Column::Probability }
    }

    /// What a law steers by.
    pub const fn control(name: &'static str, unit: &'static str, doc: &'static str) -> Self {
        Self { name, unit, doc, column: Column::Control }
    }

    /// A number of flows.
    pub const fn flows(doc: &'static str) -> Self {
        Self { name: "flows", unit: "flows", doc, column: Column::TrackedFlows }
    }
}
