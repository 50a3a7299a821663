//! The core of RIO is one queue with two REDs. Packets inside their profile (IN) are judged by the queue of IN packets
//! alone, packets outside (OUT) by the whole queue, so that OUT is lost first (Clark and Fang 1998).
//!
//! | paper | here |
//! |---|---|
//! | `avg_in`, `min_in`, `max_in`, `P_max_in` | `inside` |
//! | `avg_total`, `min_out`, `max_out`, `P_max_out` | `outside` |

use super::dsred::{self, Dsred};
use crate::gauge::Gauge;
use crate::law::red::{self, Detector};
use crate::law::{Arrival, Departure, Gauges, Verdict, measure};
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use base::{Rate, Stream, Time};
use std::collections::VecDeque;

const PAPER: &str = "Clark and Fang 1998";

/// For how many packets there is room for tags, a byte each, before the list grows.
pub const TAGS: usize = 64;

/// Says by which average OUT packets are judged, and whose details hold.
pub const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["coupled", "decoupled", "ns2", "ns2_decoupled"]),
    default: "coupled",
    range: Param::ANY,
    doc: "OUT packets are judged by the average of the whole queue (coupled, RIO-C), or of the OUT packets in it \
          (decoupled, RIO-D). ns2, ns2_decoupled: both as in ns-2's Diffserv module, with its ways of deciding.",
    source: PAPER,
};
/// Lower threshold of IN.
pub const MIN_IN: Param = Param {
    name: "min_in",
    default: "40p",
    doc: "Average queue of IN packets below which none of them is signalled.",
    source: PAPER,
    ..red::param::MIN
};
/// Upper threshold of IN.
pub const MAX_IN: Param = Param {
    name: "max_in",
    default: "70p",
    doc: "Average queue of IN packets at which their probability reaches its maximum; in the unit of min_in.",
    source: PAPER,
    ..red::param::MAX
};
/// Maximum probability of IN.
pub const PROBABILITY_IN: Param = Param {
    name: "probability_in",
    default: "0.02",
    doc: "Probability of IN packets at an average of max_in.",
    source: PAPER,
    ..red::param::PROBABILITY
};
/// Lower threshold of OUT.
pub const MIN_OUT: Param = Param {
    name: "min_out",
    default: "10p",
    doc: "Average queue below which no OUT packet is signalled.",
    source: PAPER,
    ..red::param::MIN
};
/// Upper threshold of OUT.
pub const MAX_OUT: Param = Param {
    name: "max_out",
    default: "30p",
    doc: "Average queue at which the probability of OUT packets reaches its maximum; in the unit of min_out.",
    source: PAPER,
    ..red::param::MAX
};
/// Maximum probability of OUT.
pub const PROBABILITY_OUT: Param = Param {
    name: "probability_out",
    default: "0.2",
    doc: "Probability of OUT packets at an average of max_out.",
    source: PAPER,
    ..red::param::PROBABILITY
};

/// The names of a class's parameters, and what RED calls them.
const IN: [(&str, &str); 3] = [("min", "min_in"), ("max", "max_in"), ("probability", "probability_in")];
const OUT: [(&str, &str); 3] = [("min", "min_out"), ("max", "max_out"), ("probability", "probability_out")];

/// What RIO and RIO-PS show: numbers of OUT packets, to which nearly all signals go.
pub const GAUGES: &[Gauge] = &[
    Gauge::probability("Probability of an OUT packet of mean size, before spacing."),
    Gauge::control("average", "packets", "Average queue that OUT packets are judged by."),
];

fn is_ns2(values: &Values) -> bool {
    matches!(values.word("dialect"), "ns2" | "ns2_decoupled")
}

/// RED's values for a class.
fn class(values: &Values, names: [(&'static str, &'static str); 3], rate: Rate) -> Result<Values, Refusal> {
    let mut red = values.clone();
    red.0.insert("dialect".into(), Value::Word("paper"));
    for (name, ours) in names {
        red.0.insert(name.into(), values.0[ours].clone());
    }
    red::resolve(&mut red, rate).map_err(|refusal| {
        // What RED says of `max` and `min` is said of this class's.
        let of_class = names.iter().find(|(name, _)| *name == refusal.param);
        let param = of_class.map_or(refusal.param, |(_, ours)| (*ours).into());
        let (min, ours) = names[0];
        Refusal { param, expected: refusal.expected.replace(&format!("{min},"), &format!("{ours},")) }
    })?;
    Ok(red)
}

/// Fills in what RED computes, and checks that each class's thresholds are in order.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    if is_ns2(values) {
        dsred::resolve(values)?;
    }
    let inside = class(values, IN, rate)?;
    let outside = class(values, OUT, rate)?;
    for name in ["wait", "mark_until"] {
        values.fill(name, inside.0[name].clone());
    }
    let unit = |values: &Values| std::mem::discriminant(&values.length("min"));
    if unit(&inside) != unit(&outside) {
        return Err(Refusal::new("min_out", "a length in the unit of min_in"));
    }
    refuse_inversion(values)
}

/// Refuses values if one is more lenient to OUT than to IN and none is stricter. Both together are fine, as the
/// averages are of different queues: Guo and Matta 2001 themselves have the higher `max` for OUT.
fn refuse_inversion(values: &Values) -> Result<(), Refusal> {
    const PAIRS: [(&str, &str); 3] =
        [("min_in", "min_out"), ("max_in", "max_out"), ("probability_out", "probability_in")];
    if PAIRS.iter().any(|(strict, lenient)| values.ordered(strict, lenient).is_err()) {
        return Ok(());
    }
    let rule = "or a higher probability_out: OUT is to be lost before IN";
    for (ours, theirs) in [("min_out", "min_in"), ("max_out", "max_in")] {
        values
            .ordered(ours, theirs)
            .map_err(|refusal| Refusal { expected: format!("{}, {rule}", refusal.expected), ..refusal })?;
    }
    values.ordered("probability_in", "probability_out").map_err(|_| {
        let least = values.number("probability_in");
        Refusal::new("probability_out", format!("at least probability_in, {least}: OUT is to be lost before IN"))
    })
}

/// The two REDs of a queue, and what waits in it of each class.
#[derive(Clone, Debug)]
pub struct Pair {
    reds: Reds,
    /// Whether each waiting packet is IN, in the order in which they arrived and leave.
    tags: VecDeque<bool>,
    stream: Stream,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each queue")]
enum Reds {
    Paper(Paper),
    Ns2(Dsred),
}

impl Pair {
    /// The two REDs from resolved values.
    pub fn new(values: &Values, rate: Rate, stream: Stream) -> Self {
        let dialect = values.word("dialect");
        let reds = match dialect {
            "ns2" | "ns2_decoupled" => Reds::Ns2(Dsred::new(values, rate, dialect == "ns2")),
            _ => Reds::Paper(Paper::new(values, rate, dialect == "coupled")),
        };
        Self { reds, tags: VecDeque::with_capacity(TAGS), stream }
    }

    /// Takes over other parameters and another rate of the link, and keeps averages, spacing and tags.
    pub fn retune(&mut self, values: &Values, rate: Rate) {
        let fresh = Self::new(values, rate, self.stream.clone()).reds;
        self.reds = match (fresh, &self.reds) {
            (Reds::Paper(fresh), Reds::Paper(before)) => Reds::Paper(fresh.instead_of(before)),
            (Reds::Ns2(fresh), Reds::Ns2(before)) => Reds::Ns2(fresh.instead_of(before)),
            (fresh, _) => fresh,
        };
    }

    /// The stream of random numbers, for the classifier too.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Decides about an arriving packet.
    #[inline]
    pub fn judge(&mut self, arrival: &Arrival, is_in: bool, now: Time) -> Verdict {
        let verdict = match &mut self.reds {
            Reds::Paper(reds) => reds.judge(arrival, is_in, &mut self.stream, now),
            Reds::Ns2(reds) => reds.judge(arrival, is_in, &mut self.stream, now),
        };
        if !matches!(verdict, Verdict::Drop(_)) {
            self.tags.push_back(is_in);
        }
        verdict
    }

    /// Hears that the queue refused an arriving packet.
    pub fn overflow(&mut self, arrival: &Arrival, is_in: bool, now: Time) {
        if let Reds::Paper(reds) = &mut self.reds {
            reds.overflow(arrival, is_in, now);
        }
    }

    /// Hears that a packet left the queue.
    #[inline]
    pub fn depart(&mut self, departure: &Departure, now: Time) {
        let is_in = self.tags.pop_front().expect("what leaves had arrived");
        match &mut self.reds {
            Reds::Paper(reds) => reds.depart(departure, is_in),
            Reds::Ns2(reds) => reds.depart(is_in, now),
        }
    }

    /// The link is idle from `now` on.
    pub fn idle_from(&mut self, now: Time) {
        if let Reds::Paper(reds) = &mut self.reds {
            reds.idle_from(now);
        }
    }

    /// The probability and the average of OUT packets, to which nearly all signals go.
    pub fn gauges(&self) -> Gauges {
        match &self.reds {
            Reds::Paper(reds) => reds.outside.gauges(),
            Reds::Ns2(reds) => reds.gauges(),
        }
    }
}

/// The two REDs as in the paper.
#[derive(Clone, Debug)]
struct Paper {
    inside: Detector,
    outside: Detector,
    is_coupled: bool,
    waiting_in: Backlog,
    /// Whether the link is idle. The next packet of either class ends that for both averages.
    is_idle: bool,
}

impl Paper {
    fn new(values: &Values, rate: Rate, is_coupled: bool) -> Self {
        let detector =
            |names| Detector::new(&class(values, names, rate).expect("the values were resolved before"), rate);
        Self { inside: detector(IN), outside: detector(OUT), is_coupled, waiting_in: Backlog::default(), is_idle: true }
    }

    fn instead_of(self, before: &Self) -> Self {
        let (inside, outside) = (self.inside.instead_of(&before.inside), self.outside.instead_of(&before.outside));
        Self { inside, outside, is_coupled: self.is_coupled, ..*before }
    }

    /// Takes what an arriving packet finds into the averages that its class belongs to.
    #[inline]
    fn observe(&mut self, arrival: &Arrival, is_in: bool, now: Time) {
        if std::mem::take(&mut self.is_idle) {
            // What ends an idle time is no sample: the averages have decayed until now instead.
            self.inside.observe(self.waiting_in, now);
            self.outside.observe(arrival.backlog, now);
            return;
        }
        if is_in {
            self.inside.observe(self.waiting_in, now);
        }
        if self.is_coupled {
            self.outside.observe(arrival.backlog, now);
        } else if !is_in {
            let waiting_out = Backlog {
                packets: arrival.backlog.packets - self.waiting_in.packets,
                bytes: arrival.backlog.bytes - self.waiting_in.bytes,
            };
            self.outside.observe(waiting_out, now);
        }
    }

    #[inline]
    fn judge(&mut self, arrival: &Arrival, is_in: bool, stream: &mut Stream, now: Time) -> Verdict {
        self.observe(arrival, is_in, now);
        let detector = if is_in { &mut self.inside } else { &mut self.outside };
        let verdict = detector.judge(arrival, stream);
        if is_in && !matches!(verdict, Verdict::Drop(_)) {
            self.waiting_in.packets += 1;
            self.waiting_in.bytes += u64::from(arrival.size);
        }
        verdict
    }

    fn overflow(&mut self, arrival: &Arrival, is_in: bool, now: Time) {
        self.observe(arrival, is_in, now);
        if is_in { &mut self.inside } else { &mut self.outside }.restart();
    }

    #[inline]
    fn depart(&mut self, departure: &Departure, is_in: bool) {
        if is_in {
            self.waiting_in.packets -= 1;
            self.waiting_in.bytes -= u64::from(departure.size);
        }
    }

    fn idle_from(&mut self, now: Time) {
        self.is_idle = true;
        self.inside.idle_from(now);
        self.outside.idle_from(now);
    }
}

/// The parameters of RED that both classes share.
pub const SHARED: [Param; 6] = [
    Param {
        doc: "Above its max let the probability of a class rise to 1 at twice that instead of jumping there; not in \
              the ns2 dialects.",
        ..red::param::GENTLE
    },
    red::param::MODE,
    measure::MEAN_PACKET,
    Param {
        doc: "Wait at least 1/p packets between signals, spacing them over 1/p to 2/p instead of 1 to 1/p; computed: \
              false, which it must be in the ns2 dialects.",
        ..red::param::WAIT
    },
    Param {
        doc: "With ecn, the average of its class up to which a packet is marked; above it it is dropped. max: as RFC \
              3168 advises. end: through the gentle slope (\"new gentle\", Le et al. 2007). full: always (RED* of \
              Kuzmanovic 2005). Computed: max, or full in the ns2 dialects, which have nothing else.",
        source: "RFC 3168 §7; ns-2's Diffserv module marks always",
        ..red::param::MARK_UNTIL
    },
    red::param::MARK_P,
];
