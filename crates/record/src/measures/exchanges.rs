//! These measures are of the exchanges that were completed in the measured window.

use super::{Row, percentiles};
use crate::responses::Responses;
use serde_json::{Value, json};

/// What the measures of exchanges are worked out of.
pub struct Exchanges<'a> {
    /// Their response times.
    pub responses: &'a Responses,
    /// Whether there could have been any: endless transfers and UDP complete none.
    pub are_possible: bool,
}

/// A function that works out one number of the exchanges.
pub type OfExchanges = fn(&Exchanges<'_>) -> Value;

/// The rows, as the summary has them.
pub const ROWS: &[Row<OfExchanges>] = &[
    Row {
        name: "completed",
        title: "completed exchanges",
        unit: "exchanges",
        formula: "exchanges completed; null where nobody could complete one, as of endless transfers and UDP alone",
        source: "rows of exchanges.parquet",
        parameters: Some("`block`"),
        value: |seen| json!(seen.are_possible.then(|| seen.responses.count())),
    },
    Row {
        name: "response_time_s",
        title: "response time",
        unit: "s",
        formula: "percentiles `p10` `p25` `p50` `p75` `p90` `p95` `p99`, to three digits",
        source: "`response_time_ns`",
        parameters: None,
        value: |seen| percentiles(|q| seen.responses.quantile_s(q)),
    },
    Row {
        name: "share_under_500ms",
        title: "within 0.5 s",
        unit: "share of exchanges",
        formula: "exchanges that took at most 0.5 s ÷ exchanges completed ([within](measuring.md#response-time))",
        source: "`response_time_ns`",
        parameters: Some(""),
        value: |seen| json!(seen.responses.share_within(0)),
    },
    Row {
        name: "share_under_1s",
        title: "within 1 s",
        unit: "share of exchanges",
        formula: "exchanges that took at most 1 s ÷ exchanges completed",
        source: "`response_time_ns`",
        parameters: Some(""),
        value: |seen| json!(seen.responses.share_within(1)),
    },
    Row {
        name: "share_under_2s",
        title: "within 2 s",
        unit: "share of exchanges",
        formula: "exchanges that took at most 2 s ÷ exchanges completed",
        source: "`response_time_ns`",
        parameters: Some(""),
        value: |seen| json!(seen.responses.share_within(2)),
    },
];
