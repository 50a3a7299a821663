//! SFB is stochastic fair BLUE. Every packet falls into one bin on each of a few levels, by independent hashes of its
//! flow. A bin counts the packets that it has in the queue, and keeps a probability as BLUE does: it rises when the bin
//! holds too many, and falls when a packet finds it empty. A packet is signalled with the least probability of its
//! bins, so that a flow suffers from another only if they share all of them. It is lost if none of its bins has room. A
//! flow whose bins have all reached 1 does not respond, and is limited to a few packets a second.
//!
//! Source: Feng, Kandlur, Saha and Shin, "BLUE: A New Class of Active Queue Management Algorithms", U. Michigan
//! CSE-TR-387-99, 1999, §4 ("the report"); "Stochastic Fair Blue: A Queue Management Algorithm for Enforcing Fairness",
//! INFOCOM 2001; parameters as in tc-sfb(8).
//!
//! | report | here |
//! |---|---|
//! | `L`, `N`, `B[l][n]` | `levels`, `bins`, `Table` |
//! | `bin_size`: beyond it a bin rises, and is full | `target`, `max` |
//! | `d1`, `d2` | `increment`, `decrement` |
//! | `p_m`, `p_min` | `Bin::probability`, `least` |
//! | moving hash: the second set of bins | `tables`, `rehash`, `db` |
//!
//! It reaches no queued packet and is a law: bins count by what arrives and leaves, which in a FIFO is the same order.
//!
//! The forms in use are one algorithm, and differ in this:
//!
//! | what | `paper` | `linux` |
//! |---|---|---|
//! | bins | 2 levels of 23 | 8 levels of 16 |
//! | a bin rises with a queue | above `target` | from `target` on |
//! | a bin is full | from where it rises on | from 25 packets on, or from where it rises |
//! | above a probability of one half | signals are as below it | a part of what may be marked is lost |
//! | the penalty's bucket is filled | all the time | when it has run empty, for ten seconds at most |
//!
//! The bucket of `linux` is filled with whole packets and forgets the rest each time it is asked, which starves a flow
//! that keeps sending. After a quiet start it gives a second burst with the first.
//!
//! Deviations. A packet is lost when all its bins are full, as in Linux; in the report's figure as it is reproduced
//! (the report was not at hand) one full bin is enough, and who shares it with a flood pays for the flood. While the
//! second table warms up, all packets count in its bins (Linux: those of flows at 1), though only flows at 1 move its
//! probabilities; it starts empty (Linux leaves the probabilities of the hash before in it). Probabilities are not
//! rounded to 1/65536 as in Linux, and a `penalty_rate` of 0 allows one burst (Linux: nothing).

use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Span, Stream, Time, maths};

const REPORT: &str = "Feng, Kandlur, Saha and Shin 1999";
const TC: &str = "tc-sfb(8)";

const fn integer(
    name: &'static str,
    default: &'static str,
    range: (f64, f64),
    doc: &'static str,
    source: &'static str,
) -> Param {
    Param { name, kind: Kind::Integer, default, range, doc, source }
}

const PARAMS: &[Param] = &[
    registry::limit("1000p", "tc-sfb(8): the interface's txqueuelen"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["paper", "linux"]),
        default: "paper",
        range: Param::ANY,
        doc: "Number of bins, when a bin rises and is full, losses above one half, and the penalty's bucket.",
        source: REPORT,
    },
    integer("levels", "", (1.0, 8.0), "Levels of bins (L). Computed: 2, or 8 in linux.", REPORT),
    integer("bins", "", (2.0, 4096.0), "Bins on each level (N). Computed: 23, or 16 in linux.", REPORT),
    integer("target", "20", (0.0, 1e6), "Packets in a bin above which (linux: from which) its probability rises.", TC),
    integer(
        "max",
        "",
        (1.0, 1e7),
        "A packet all of whose bins hold this many is lost. Computed: one more than target; linux: 25 or target, \
         whichever is more.",
        "Feng, Kandlur, Saha and Shin 1999: a bin holds no more than its size; tc-sfb(8): 25 (from a target, tc itself \
         makes a quarter more)",
    ),
    Param {
        name: "increment",
        kind: Kind::Number,
        default: "0.0005",
        range: (0.0, 1.0),
        doc: "How much the probability of a bin rises with a packet that finds it full (d1).",
        source: "tc-sfb(8); the kernel's own is 0.001",
    },
    Param {
        name: "decrement",
        kind: Kind::Number,
        default: "0.00005",
        range: (0.0, 1.0),
        doc: "How much the probability of a bin falls with a packet that finds it empty (d2).",
        source: "tc-sfb(8); the kernel's own is 0.00017",
    },
    Param {
        name: "rehash",
        kind: Kind::Time,
        default: "600s",
        range: (0.0, 1e6),
        doc: "Time between two changes of the hash, so that nobody shares bins for ever; 0 is never.",
        source: TC,
    },
    Param {
        name: "db",
        kind: Kind::Time,
        default: "60s",
        range: (0.0, 1e6),
        doc: "For how long before a change of the hash the next table is warmed up.",
        source: TC,
    },
    Param {
        name: "penalty_rate",
        kind: Kind::Number,
        default: "10",
        range: (0.0, 1e9),
        doc: "Packets a second that all flows together may send that do not respond.",
        source: TC,
    },
    integer("penalty_burst", "20", (0.0, 1e9), "Packets that they may send at once.", TC),
];

/// What differs between the forms in use.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    levels: u64,
    bins: u64,
    /// A bin rises from so many packets more than `target` on.
    above_target: u32,
    /// A bin is full at so many packets, or from where it rises on if that is more.
    full: u64,
    /// Above a probability of one half a part of what may be marked is lost.
    loses_above_half: bool,
    /// The penalty's bucket is filled when it has run empty, and then with whole packets.
    fills_when_empty: bool,
}

/// Feng, Kandlur, Saha and Shin 1999.
const PAPER: Dialect =
    Dialect { levels: 2, bins: 23, above_target: 1, full: 0, loses_above_half: false, fills_when_empty: false };

/// Linux sch_sfb.c.
const LINUX: Dialect =
    Dialect { levels: 8, bins: 16, above_target: 0, full: 25, loses_above_half: true, fills_when_empty: true };

impl Dialect {
    fn of(values: &Values) -> Self {
        match values.word("dialect") {
            "linux" => LINUX,
            _ => PAPER,
        }
    }
}

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let dialect = Dialect::of(values);
    values.fill("levels", Value::Integer(dialect.levels));
    values.fill("bins", Value::Integer(dialect.bins));
    let target = values.integer("target");
    let least = target + u64::from(dialect.above_target);
    values.fill("max", Value::Integer(dialect.full.max(least)));
    // A bin that is full before it rises would never signal.
    if values.integer("max") < least {
        return Err(Refusal::new("max", format!("at least {least}, from where on a bin rises with target = {target}")));
    }
    let (increment, decrement) = (values.number("increment"), values.number("decrement"));
    if decrement > increment {
        return Err(Refusal::new("decrement", format!("at most increment, {increment}")));
    }
    let (rehash, db) = (values.time("rehash"), values.time("db"));
    if rehash > Span::ZERO && db > rehash {
        return Err(Refusal::new("db", "at most rehash"));
    }
    Ok(())
}

/// One bin.
#[derive(Clone, Copy, Default, Debug)]
struct Bin {
    packets: u32,
    probability: f64,
}

/// The bins of a packet, one a level.
type Places = [u16; 8];

/// A set of bins under one hash.
#[derive(Clone, Debug)]
struct Table {
    salt: u64,
    levels: usize,
    per_level: usize,
    bins: Vec<Bin>,
    /// The first packet that it counts.
    first: u64,
}

impl Table {
    /// Forgets everything, under a new hash, to count from packet `first` on.
    fn restart(&mut self, salt: u64, first: u64) {
        self.salt = salt;
        self.first = first;
        self.bins.fill(Bin::default());
    }

    /// Sixteen bits of hash a level; a bin is likelier than another by at most bins / 65536.
    #[inline]
    fn places(&self, flow: FlowKey) -> Places {
        let low = flow.hash(self.salt);
        let high = if self.levels > 4 { maths::mix64(low) } else { 0 };
        std::array::from_fn(|level| {
            let bits = if level < 4 { low >> (16 * level) } else { high >> (16 * (level - 4)) } as u16;
            ((usize::from(bits) * self.per_level) >> 16) as u16
        })
    }

    #[inline]
    fn of(&mut self, places: Places) -> impl Iterator<Item = &mut Bin> {
        self.bins.chunks_exact_mut(self.per_level).zip(places).map(|(level, place)| &mut level[usize::from(place)])
    }
}

/// The law.
#[derive(Clone, Debug)]
pub struct Sfb {
    dialect: Dialect,
    tables: [Table; 2],
    /// Which table decides.
    current: usize,
    is_warming: bool,
    /// Since when the current table decides.
    since: Time,
    /// Packets that entered the queue, and that left it.
    entered: u64,
    left: u64,
    /// `p_min` of the last packet.
    least: f64,
    /// The queue of a bin at which it rises.
    full: u32,
    max: u32,
    increment: f64,
    decrement: f64,
    rehash: Span,
    db: Span,
    penalty: Penalty,
    ecn_enabled: bool,
    salts: Stream,
    stream: Stream,
}

impl Sfb {
    /// SFB from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let dialect = Dialect::of(values);
        let (levels, per_level) = (values.integer("levels") as usize, values.integer("bins") as usize);
        // A copy of the stream, so that the hash is another in each run and costs the law none of its draws.
        let mut salts = site.stream.clone();
        let mut table = || Table {
            salt: salts.bits(),
            levels,
            per_level,
            bins: vec![Bin::default(); levels * per_level],
            first: 0,
        };
        let target = values.integer("target") as u32;
        Self {
            dialect,
            tables: [table(), table()],
            current: 0,
            is_warming: false,
            since: Time::ZERO,
            entered: 0,
            left: 0,
            least: 0.0,
            full: target + dialect.above_target,
            max: values.integer("max") as u32,
            increment: values.number("increment"),
            decrement: values.number("decrement"),
            rehash: values.time("rehash"),
            db: values.time("db"),
            penalty: Penalty::new(values, dialect),
            ecn_enabled: values.flag("ecn"),
            salts,
            stream: site.stream,
        }
    }

    /// Changes the hash when it is time, and begins to warm up the next table some time before.
    fn turn(&mut self, now: Time) {
        let age = now.since(self.since);
        let is_over = age > self.rehash;
        if !self.is_warming && (is_over || self.db > Span::ZERO && age > self.rehash.saturating_sub(self.db)) {
            let salt = self.salts.bits();
            self.tables[1 - self.current].restart(salt, self.entered);
            self.is_warming = true;
        }
        if is_over {
            self.current = 1 - self.current;
            self.is_warming = false;
            self.since = now;
        }
    }

    /// A packet meets the bins of `table`: their probabilities move. Returns the least probability and the least queue.
    fn meet(&mut self, table: usize, places: Places) -> (f64, u32) {
        let (full, increment, decrement) = (self.full, self.increment, self.decrement);
        self.tables[table].of(places).fold((1.0_f64, u32::MAX), |(probability, packets), bin| {
            if bin.packets == 0 {
                bin.probability = (bin.probability - decrement).max(0.0);
            } else if bin.packets >= full {
                bin.probability = (bin.probability + increment).min(1.0);
            }
            (probability.min(bin.probability), packets.min(bin.packets))
        })
    }

    fn verdict(&mut self, arrival: &Arrival, places: [Places; 2], now: Time) -> Verdict {
        let (least, packets) = self.meet(self.current, places[self.current]);
        self.least = least;
        if packets >= self.max {
            return Verdict::Drop(Cause::TAIL);
        }
        if least >= 1.0 {
            if self.is_warming {
                let next = 1 - self.current;
                self.meet(next, places[next]);
            }
            return if self.penalty.admits(now) { Verdict::Pass } else { Verdict::Drop(Cause::FORCED) };
        }
        if least <= 0.0 {
            return Verdict::Pass;
        }
        let draw = self.stream.unit();
        if draw >= least {
            return Verdict::Pass;
        }
        match Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY) {
            Verdict::Mark(_) if self.dialect.loses_above_half && draw < 2.0 * (least - 0.5) => {
                Verdict::Drop(Cause::OVERLOAD)
            }
            verdict => verdict,
        }
    }
}

impl Law for Sfb {
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        if self.rehash > Span::ZERO {
            self.turn(now);
        }
        let mut places = [Places::default(); 2];
        places[self.current] = self.tables[self.current].places(arrival.flow);
        if self.is_warming {
            places[1 - self.current] = self.tables[1 - self.current].places(arrival.flow);
        }
        let verdict = self.verdict(arrival, places, now);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.entered += 1;
            self.tables[self.current].of(places[self.current]).for_each(|bin| bin.packets += 1);
            if self.is_warming {
                self.tables[1 - self.current].of(places[1 - self.current]).for_each(|bin| bin.packets += 1);
            }
        }
        verdict
    }

    fn on_departure(&mut self, departure: &Departure, _now: Time) -> Verdict {
        let number = self.left;
        self.left += 1;
        for index in [self.current, 1 - self.current] {
            let table = &mut self.tables[index];
            if number >= table.first && (index == self.current || self.is_warming) {
                let places = table.places(departure.flow);
                table.of(places).for_each(|bin| bin.packets -= 1);
            }
        }
        Verdict::Pass
    }

    fn follows_packets(&self) -> bool {
        true
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.least), control: None, tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        std::mem::swap(&mut fresh.tables, &mut self.tables);
        let Self { current, is_warming, since, entered, left, least, .. } = *self;
        let penalty = fresh.penalty.clone().instead_of(&self.penalty);
        let salts = self.salts.clone();
        *self = Self { current, is_warming, since, entered, left, least, penalty, salts, ..fresh };
    }
}

/// The bucket of flows that do not respond.
#[derive(Clone, Debug)]
struct Penalty {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: Time,
    dialect: Dialect,
}

impl Penalty {
    fn new(values: &Values, dialect: Dialect) -> Self {
        let burst = values.integer("penalty_burst") as f64;
        Self { rate: values.number("penalty_rate"), burst, tokens: burst, filled: Time::ZERO, dialect }
    }

    /// This bucket in the place of `before`: a full one is full, another holds what it held.
    fn instead_of(self, before: &Self) -> Self {
        let tokens = if before.tokens == before.burst { self.burst } else { before.tokens.min(self.burst) };
        Self { tokens, filled: before.filled, ..self }
    }

    fn admits(&mut self, now: Time) -> bool {
        let age_s = now.since(self.filled).secs_f64();
        if !self.dialect.fills_when_empty {
            self.tokens = (self.tokens + self.rate * age_s).min(self.burst);
            self.filled = now;
        } else if self.tokens < 1.0 {
            self.tokens = (self.rate * age_s.min(10.0)).floor().min(self.burst);
            self.filled = now;
        }
        let admits = self.tokens >= 1.0;
        if admits {
            self.tokens -= 1.0;
        }
        admits
    }
}

impl LawRow for Sfb {
    const ROW: Row = Row {
        name: "sfb",
        aliases: &[],
        doc: "BLUE in hashed bins: finds flows that do not respond without keeping state for each flow.",
        source: REPORT,
        year: 1999,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "levels", "bins"],
        gauges: &[Gauge::probability("Probability of the last packet: the least of its bins.")],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(values: &Values) -> usize {
        2 * (values.integer("levels") * values.integer("bins")) as usize * size_of::<Bin>()
    }
}
