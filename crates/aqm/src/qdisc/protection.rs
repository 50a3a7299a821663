//! Queue protection keeps a short queue short: packets of those flows that built it go to another queue. It holds no
//! list of flows that are allowed or not. Each flow has a score that says how much of the queue is its doing, and a
//! packet is sanctioned where both the score and the queue are too much.
//!
//! Source: Briscoe and White, "The DOCSIS Queue Protection Algorithm to Preserve Low Latency", RFC 9957, 2026, §4;
//! DOCSIS 3.1 MULPI, Annex P.
//!
//! | RFC 9957 | here |
//! |---|---|
//! | `CRITICALqL` | `critical_delay` |
//! | `CRITICALqLSCORE` | `critical_score` |
//! | `AGING`, `2^LG_AGING` bytes a second | `aging` |
//! | `probNative` | the native probability of the queue at the arrival |
//! | `buckets[h].t_exp` | `expires` of a [`Bucket`]: the score is the time until then |
//! | `pick_bucket`, `fill_bucket` | [`Protection::bucket_of`], [`Protection::fill`] |
//! | `NBUCKETS`, `ATTEMPTS` | [`BUCKETS`], [`ATTEMPTS`] |
//!
//! A flow that is marked with probability p sends at a congestion rate of p times its rate. Its score grows by the
//! bytes of that rate over `aging` and falls as time goes by. So a flow whose congestion rate is below `aging` has no
//! score that lasts, and memory of flows that behave is free at once. A responsive flow's congestion rate is small,
//! whatever its rate: two marks a round trip.
//!
//! Deviations. Scores are whole nanoseconds, rounded down, and end at five seconds as in CableLabs' own model of
//! Annex P. `aging` is the 2^19 bytes a second that the RFC states; its pseudocode has 2^-11 bytes a nanosecond, which
//! are 488,281 a second. Flows are hashed with this project's hash.

use crate::param::{Kind, Param, Values};
use base::{FlowKey, Span, Time};

/// Buckets for flows of their own (`BI_SIZE` is 5). One more is for all the others.
const BUCKETS: usize = 1 << BITS;
const BITS: u32 = 5;
/// In so many places a flow may have its bucket.
const ATTEMPTS: u32 = 2;
/// No score is longer: so long after it has ceased a flow is sanctioned at most.
const LONGEST: Span = Span::from_secs(5);
/// Of the flows' hash.
const SALT: u64 = 0;

const RFC: &str = "RFC 9957 §4.1";

/// Whether there is any.
pub const QUEUE_PROTECTION: Param = Param {
    name: "queue_protection",
    kind: Kind::Flag,
    default: "",
    range: Param::ANY,
    doc: "Packets of flows that built the L-queue go to the Classic one (RFC 9957). Computed: true for docsis.",
    source: "DOCSIS 3.1 MULPI, Annex P; RFC 9330 §8.2 leaves it open",
};

/// `CRITICALqL`.
pub const CRITICAL_DELAY: Param = Param {
    name: "critical_delay",
    kind: Kind::Time,
    default: "",
    range: (1e-6, 10.0),
    doc: "Waiting time of the L-queue up to which nothing is sanctioned. Computed: where the L-queue's own marks \
          reach 1, or 1ms where these go by packets.",
    source: "RFC 9957 §4.1: MAXTH",
};

/// `CRITICALqLSCORE`.
pub const CRITICAL_SCORE: Param = Param {
    name: "critical_score",
    kind: Kind::Time,
    default: "4ms",
    range: (1e-6, 5.0),
    doc: "Score at which a flow's packets are sanctioned while the L-queue waits critical_delay; with longer waits \
          less will do.",
    source: RFC,
};

/// `AGING`.
pub const AGING: Param = Param {
    name: "aging",
    kind: Kind::Rate,
    default: "4194304bit",
    range: (1e3, 1e12),
    doc: "Congestion rate, marks times rate, at which a flow's score neither grows nor falls.",
    source: "RFC 9957 §4.1: 2^19 bytes a second",
};

/// What is known of a flow, or of those without a bucket of their own.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    owner: Option<FlowKey>,
    expires: Time,
}

/// The scores of flows.
#[derive(Clone, Debug)]
pub struct Protection {
    critical_delay: Span,
    critical_score: Span,
    aging_bps: f64,
    buckets: [Bucket; BUCKETS + 1],
}

impl Protection {
    /// No score yet, from resolved values; `None` without protection.
    pub fn of(values: &Values) -> Option<Self> {
        values.flag(QUEUE_PROTECTION.name).then(|| Self {
            critical_delay: values.time(CRITICAL_DELAY.name),
            critical_score: values.time(CRITICAL_SCORE.name),
            aging_bps: values.rate(AGING.name).bps_f64(),
            buckets: [Bucket::default(); BUCKETS + 1],
        })
    }

    /// This one with the scores of `before`.
    #[must_use]
    pub fn instead_of(self, before: Option<&Self>) -> Self {
        Self { buckets: before.map_or(self.buckets, |before| before.buckets), ..self }
    }

    /// Takes a packet that arrives at a queue with a waiting time of `delay`, which marks with probability `native`.
    /// Returns whether it is sanctioned.
    pub fn sanctions(&mut self, flow: FlowKey, bytes: u32, (delay, native): (Span, f64), now: Time) -> bool {
        let bucket = self.bucket_of(flow, now);
        let score = self.fill(bucket, bytes, native, now);
        let product = |delay: Span, score: Span| u128::from(delay.ns()) * u128::from(score.ns());
        delay > self.critical_delay && product(delay, score) > product(self.critical_delay, self.critical_score)
    }

    /// The bucket of `flow`: its own, an expired one that becomes its own, or the one of all others.
    fn bucket_of(&mut self, flow: FlowKey, now: Time) -> usize {
        let hash = flow.hash(SALT);
        let mut found = BUCKETS;
        for attempt in 0..ATTEMPTS {
            let place = (hash >> (attempt * BITS)) as usize % BUCKETS;
            let bucket = &self.buckets[place];
            if bucket.owner == Some(flow) {
                found = place;
                break;
            }
            if found == BUCKETS && bucket.expires <= now {
                found = place;
            }
        }
        let bucket = &mut self.buckets[found];
        (bucket.owner, bucket.expires) = (Some(flow), bucket.expires.max(now));
        found
    }

    /// Adds a packet to the score of a bucket. Returns the score.
    fn fill(&mut self, bucket: usize, bytes: u32, native: f64, now: Time) -> Span {
        let bucket = &mut self.buckets[bucket];
        let more = Span::from_ns((native * f64::from(bytes) * 8e9 / self.aging_bps) as u64);
        let score = (bucket.expires.since(now) + more).min(LONGEST);
        bucket.expires = now + score;
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Value;
    use base::Rate;

    const DELAY: Span = Span::from_ms(1);
    const SCORE: Span = Span::from_ms(4);

    fn protection() -> Protection {
        let mut values = Values::default();
        values.0.insert(QUEUE_PROTECTION.name.into(), Value::Flag(true));
        values.0.insert(CRITICAL_DELAY.name.into(), Value::Time(DELAY));
        values.0.insert(CRITICAL_SCORE.name.into(), Value::Time(SCORE));
        // A byte a microsecond.
        values.0.insert(AGING.name.into(), Value::Rate(Rate::from_bps(8_000_000)));
        Protection::of(&values).expect("it is on")
    }

    /// A packet of 1000 bytes that is marked for certain adds 1 ms, up to 5 s.
    #[test]
    fn a_score_grows_by_marks_and_falls_with_time() {
        let mut protection = protection();
        let now = Time::from_ns(1_000_000_000);
        let flow = FlowKey(7);
        let bucket = protection.bucket_of(flow, now);
        let scores = [1.0, 0.5, 0.0, 1.0, 1.0, 1.0].map(|native| protection.fill(bucket, 1_000, native, now));
        assert_eq!(scores.map(|score| score.ns() / 1_000), [1_000, 1_500, 1_500, 2_500, 3_500, 4_500]);
        // 3 ms later 1.5 ms are left, and after 5 nothing.
        let later = now + Span::from_ms(3);
        assert_eq!(protection.bucket_of(flow, later), bucket);
        assert_eq!(protection.fill(bucket, 1_000, 0.0, later), Span::from_us(1_500));
        let latest = now + Span::from_ms(9);
        assert_eq!(protection.bucket_of(flow, latest), bucket);
        assert_eq!(protection.fill(bucket, 1_000, 0.0, latest), Span::ZERO);
        let flooded = (0..5_001).map(|_| protection.fill(bucket, 1_000, 1.0, latest)).last();
        assert_eq!(flooded, Some(LONGEST));
    }

    /// A score of 2 ms is too much where the queue waits more than 2 ms, and never where it waits 1 ms or less.
    #[test]
    fn a_packet_is_sanctioned_for_score_times_delay() {
        let mut protection = protection();
        let now = Time::from_ns(5);
        let (ms, flow) = (Span::from_ms(1), FlowKey(3));
        assert!(!protection.sanctions(flow, 1_000, (ms, 1.0), now));
        assert!(!protection.sanctions(flow, 1_000, (ms * 2, 1.0), now), "2 ms times 2 ms is not above 1 times 4");
        assert!(protection.sanctions(flow, 0, (ms * 2 + Span::from_ns(1), 1.0), now));
        // Others, whose score is 0, pass.
        assert!(!protection.sanctions(FlowKey(4), 1_000, (ms * 9, 0.0), now));
        for _ in 0..9 {
            assert!(!protection.sanctions(flow, 1_000, (ms, 1.0), now), "the queue is short");
        }
    }

    /// Flows whose places are taken share the last bucket; once a place expires they may have it.
    #[test]
    fn flows_without_a_place_share_one() {
        let mut protection = protection();
        let now = Time::from_ns(0);
        let mut places = Vec::new();
        for flow in 0..2_000 {
            let place = protection.bucket_of(FlowKey(flow), now);
            protection.fill(place, 1_000, 1.0, now);
            places.push(place);
        }
        let own = places.iter().filter(|&&place| place < BUCKETS).count();
        assert_eq!(own, BUCKETS, "every place is taken once: {places:?}");
        assert!(protection.bucket_of(FlowKey(1_999), now + SCORE) < BUCKETS);
    }
}
