//! Step marking signals every packet beyond one threshold and none below. Senders that respond in proportion to the
//! share of marks (DCTCP, Prague) need no smoothing by the network, as they average marks themselves. A threshold that
//! is a length judges the arriving packet by the queue that it would make (DCTCP's K). A threshold that is a time
//! judges the leaving packet by how long it stayed (L4S).
//!
//! Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; RFC 8257. By time: RFC 9332, the step of Linux's
//! dualpi2, and the `ce_threshold` of CoDel.
//!
//! | source | here |
//! |---|---|
//! | `K` (DCTCP) | `threshold` as a length |
//! | `step_thresh` (tc-dualpi2), `ce_threshold` (tc-codel) | `threshold` as a time |
//! | `min_qlen_step` (tc-dualpi2), `Th_len` (RFC 9332 Appendix A) | `min_qlen_step` |
//!
//! A queue with the packet in hand longer than K is a queue of K or more before it. Deviations: `min_qlen_step` counts
//! what waits behind the leaving packet, as in the RFC (Linux: the queue when the packet arrived). The RFC's ramp from
//! 800 to 1200 us is not a step and not here.

use super::threshold::Threshold;
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Ecn, Rate, Time};

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    Param { default: "true", source: "RFC 8257 and RFC 9332: a step is for marks", ..registry::ECN },
    registry::only(&["paper"], "Alizadeh et al. 2010; RFC 8257; RFC 9332"),
    Param {
        name: "threshold",
        kind: Kind::LengthOrTime,
        default: "1ms",
        range: (0.0, 4e9),
        doc: "Signal beyond it: an arriving packet that makes the queue longer than this length, or a leaving one that \
              stayed longer than this time. A length should be more than a seventh of what is in flight.",
        source: "Linux dualpi2 step_thresh; DCTCP has 20 packets at 1 Gb/s and 65 at 10 Gb/s",
    },
    Param {
        name: "not_ect",
        kind: Kind::Word(&["forward", "drop"]),
        default: "",
        range: Param::ANY,
        doc: "What becomes of a packet beyond the threshold that cannot be marked. Computed: forward, or drop without \
              ecn, where nothing else would ever be signalled.",
        source: "forward: DCTCP's switches; drop: the low-latency queue of Linux dualpi2",
    },
    Param {
        name: "min_qlen_step",
        kind: Kind::Integer,
        default: "0",
        range: (0.0, 1e6),
        doc: "With a time: nothing is signalled while fewer packets than this wait behind (dualpi2's th_len). Slow \
              links, on which one packet takes longer than the threshold, need 1 or 2.",
        source: "tc-dualpi2(8); RFC 9332 Appendix A has more than 1",
    },
];

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let marks = values.flag("ecn");
    values.fill("not_ect", Value::Word(if marks { "forward" } else { "drop" }));
    if !marks && values.word("not_ect") == "forward" {
        return Err(Refusal::new("not_ect", "drop: with ecn = false a step that forwards never signals"));
    }
    if values.find_length("threshold").is_some() && values.integer("min_qlen_step") > 0 {
        return Err(Refusal::new("min_qlen_step", "0: it goes with a threshold that is a time"));
    }
    Ok(())
}

/// The law.
#[derive(Clone, Debug)]
pub struct Step {
    threshold: Threshold,
    min_behind: u64,
    ecn_enabled: bool,
    drops: bool,
    /// Whether the last packet judged was beyond the threshold, and what it was judged by: packets, bytes or seconds.
    is_beyond: bool,
    measured: f64,
}

impl Step {
    /// The step from resolved values.
    pub fn new(values: &Values) -> Self {
        Self {
            threshold: Threshold::find(values, "threshold").expect("the threshold has a default"),
            min_behind: values.integer("min_qlen_step"),
            ecn_enabled: values.flag("ecn"),
            drops: values.word("not_ect") == "drop",
            is_beyond: false,
            measured: 0.0,
        }
    }

    fn verdict(&self, ecn: Ecn) -> Verdict {
        if !self.is_beyond {
            return Verdict::Pass;
        }
        match Verdict::signal(self.ecn_enabled, ecn, Cause::FORCED) {
            Verdict::Drop(_) if !self.drops => Verdict::Pass,
            verdict => verdict,
        }
    }
}

impl Law for Step {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        let Backlog { packets, bytes } = arrival.backlog;
        let with_it = Backlog { packets: packets + 1, bytes: bytes + u64::from(arrival.size) };
        match self.threshold {
            Threshold::Length(Length::Packets(_)) => self.measured = f64::from(with_it.packets),
            Threshold::Length(Length::Bytes(_)) => self.measured = with_it.bytes as f64,
            Threshold::Sojourn(_) => return Verdict::Pass,
        }
        self.is_beyond = self.threshold.is_exceeded_by(with_it);
        self.verdict(arrival.ecn)
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        if !matches!(self.threshold, Threshold::Sojourn(_)) {
            return Verdict::Pass;
        }
        let sojourn = now.since(departure.enqueued);
        self.measured = sojourn.secs_f64();
        self.is_beyond =
            self.threshold.is_exceeded_in(sojourn) && u64::from(departure.backlog.packets) >= self.min_behind;
        self.verdict(departure.ecn)
    }

    fn on_idle(&mut self, _now: Time) {
        self.is_beyond = false;
        self.measured = 0.0;
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: Some(f64::from(u8::from(self.is_beyond))),
            control: Some(self.measured),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        *self = Self { is_beyond: self.is_beyond, measured: self.measured, ..Self::new(values) };
    }
}

impl LawRow for Step {
    const ROW: Row = Row {
        name: "step",
        aliases: &[],
        doc: "Marks every packet beyond a threshold of queue length (DCTCP) or sojourn time (L4S), and none below.",
        source: "Alizadeh et al. 2010; RFC 8257; RFC 9332",
        year: 2010,
        marks: true,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("1 if the last packet was beyond the threshold, else 0."),
            Gauge::control(
                "measured",
                "packets, bytes or s",
                "What the last packet was judged by: the queue, or its time in it.",
            ),
        ],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, _site: Site) -> Self {
        Self::new(values)
    }
}
