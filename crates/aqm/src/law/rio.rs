//! RIO is RED with in and out. Each flow has a profile, a rate that it may count on. Packets beyond the profile are
//! tagged OUT where they enter the network, and a congested link loses those first.
//!
//! Source: Clark and Fang, "Explicit Allocation of Best-Effort Packet Delivery Service", IEEE/ACM ToN 6(4), 1998.
//!
//! | paper | here |
//! |---|---|
//! | time sliding window: `avg_rate`, `win_length`, `T_front` | `Meter`, `window` |
//! | `R_T` | `profile` |
//! | tagging with probability `(avg_rate - R_T) / avg_rate` | `tag` |
//! | the two REDs | [`pair`] |
//!
//! Packets carry no tag here. So the meters of the edge stand before the queue of the core, one for each flow, all with
//! the same profile.
//!
//! Deviations. A flow that was silent for ten windows is new. While 131,072 flows are metered (8 MB), each packet of
//! others is metered as the first of a flow. Both averages decay while the link is idle, as RED's do,
//! until a packet of either class arrives; the paper does not say. The `ns2` dialects are [`dsred`]; ns-2's other RIO,
//! rio.cc, does not sample the queue when OUT packets arrive, by mistake, and is not copied.

mod dsred;
pub mod pair;

use self::pair::Pair;
use super::clock::Clock;
use super::flows::FlowTable;
use super::{Arrival, Departure, Gauges, Law, Verdict, red};
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Span, Time};

const PAPER: &str = "Clark and Fang 1998";

/// Windows of silence after which a flow is new.
const SILENCE: u64 = 10;

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    pair::DIALECT,
    Param {
        name: "profile",
        kind: Kind::Rate,
        default: "",
        range: (1.0, 1e13),
        doc: "Rate that each flow may send IN (R_T); computed: a hundredth of the link's.",
        source: "a contract, without a default in the paper; a hundred such flows fill the link",
    },
    Param {
        name: "window",
        kind: Kind::Time,
        default: "1s",
        range: (1e-3, 1e3),
        doc: "Memory of a flow's rate (win_length).",
        source: "Clark and Fang 1998",
    },
    pair::MIN_IN,
    pair::MAX_IN,
    pair::PROBABILITY_IN,
    pair::MIN_OUT,
    pair::MAX_OUT,
    pair::PROBABILITY_OUT,
    red::param::WQ,
    pair::SHARED[0],
    pair::SHARED[1],
    pair::SHARED[2],
    pair::SHARED[3],
    pair::SHARED[4],
    pair::SHARED[5],
    registry::CAPACITY,
];

/// Computes the profile if it was not given.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    values.fill("profile", Value::Rate(Rate::from_bps((rate.bps() / 100).max(1))));
    pair::resolve(values, rate)
}

/// How many flows are metered at most.
const MOST_FLOWS: usize = 1 << 17;

/// Measures a flow's rate over a time sliding window.
#[derive(Clone, Copy, Debug)]
struct Meter {
    bytes_per_s: f64,
    last: Time,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Rio {
    reds: Pair,
    meters: FlowTable<Meter>,
    profile_bytes_per_s: f64,
    window: Span,
    sweeps: Clock,
}

impl Rio {
    /// RIO from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let window = values.time("window");
        Self {
            reds: Pair::new(values, site.rate, site.stream),
            meters: FlowTable::with_room_for(64),
            profile_bytes_per_s: values.rate("profile").bps_f64() / 8.0,
            window,
            sweeps: Clock::every(window * SILENCE),
        }
    }

    /// Meters a packet of `flow`. Returns whether it is IN.
    fn tag(&mut self, flow: FlowKey, size: u32, now: Time) -> bool {
        let mut fresh = Meter { bytes_per_s: self.profile_bytes_per_s, last: now };
        let is_full = self.meters.len() >= MOST_FLOWS && self.meters.get(flow).is_none();
        let meter = if is_full { &mut fresh } else { self.meters.get_or_insert(flow, fresh) };
        if now.since(meter.last) >= self.window * SILENCE {
            *meter = Meter { bytes_per_s: self.profile_bytes_per_s, last: now };
        }
        // Clark and Fang 1998: what the window holds, and how long it is with the gap before this packet.
        let window_s = self.window.secs_f64();
        let bytes = meter.bytes_per_s * window_s + f64::from(size);
        meter.bytes_per_s = bytes / (now.since(meter.last).secs_f64() + window_s);
        meter.last = now;
        let excess = 1.0 - self.profile_bytes_per_s / meter.bytes_per_s;
        !super::is_drawn(self.reds.stream(), excess)
    }
}

impl Law for Rio {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let is_in = self.tag(arrival.flow, arrival.size, now);
        self.reds.judge(arrival, is_in, now)
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        let is_in = self.tag(arrival.flow, arrival.size, now);
        self.reds.overflow(arrival, is_in, now);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.reds.depart(departure, now);
        Verdict::Pass
    }

    fn on_idle(&mut self, now: Time) {
        self.reds.idle_from(now);
    }

    fn next_tick(&self) -> Time {
        self.sweeps.next()
    }

    fn tick(&mut self, _backlog: Backlog, now: Time) {
        if self.sweeps.take(now) {
            let silence = self.window * SILENCE;
            self.meters.retain(|_, meter| now.since(meter.last) < silence);
        }
    }

    fn follows_packets(&self) -> bool {
        true
    }

    fn gauges(&self) -> Gauges {
        self.reds.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut reds = self.reds.clone();
        reds.retune(values, rate);
        let mut fresh = Self::new(values, Site { rate, stream: reds.stream().clone() });
        std::mem::swap(&mut fresh.meters, &mut self.meters);
        *self = Self { reds, sweeps: fresh.sweeps.instead_of(self.sweeps, now), ..fresh };
    }
}

impl LawRow for Rio {
    const ROW: Row = Row {
        name: "rio",
        aliases: &["rio_c"],
        doc: "RED that loses packets beyond their flow's profile before those within it.",
        source: PAPER,
        year: 1998,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: pair::GAUGES,
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(_values: &Values) -> usize {
        pair::TAGS + FlowTable::<Meter>::bytes_for(64)
    }
}
