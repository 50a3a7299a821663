//! RED as ALTQ has it, in whole numbers: the average and its thresholds are kept in units of w / 4096 of a packet, for
//! a weight w that is a power of 1/2.
//!
//! Source: `altq_red.c` of ALTQ 3 (KAME, 2000 to 2004; the same in NetBSD), `red_addq`, `red_getq`, `drop_early`,
//! `pow_w`.
//!
//! | ALTQ | here |
//! |---|---|
//! | `red_avg`, `red_wshift` | `average`, `shift` |
//! | `red_thmin_s`, `red_thmax_s` | `min`, `max` |
//! | `red_probd` | `denominator` |
//! | `red_old`, `red_count` | `count`: [`OUTSIDE`] while `red_old` is 0 |
//! | `red_idle`, `red_last` | `idle_since` |
//! | `fp_len`, `d` of `drop_early` | `above`, `room` in [`Altq::is_drawn`] |
//!
//! What the source says. Every arrival is a sample, one that the limit refuses too. After idle time the average first
//! decays as if a packet had come every 800 us, less one, with (1 - w)^n to twelve binary digits, in which (1 - w) of a
//! weight below 1/4096 is 4095/4096. (800 us is what it takes where no packet time is configured; CBQ, HFSC and PRIQ
//! configure one for the rate of a class, which is not copied.) Nothing is signalled at a queue of one packet or none,
//! which leaves the band, nor the first packet in the band. Then the probability is p / (2 - count p), so that gaps are
//! spread over 1 to 2/p with a mean of 1/p. From `max` on every packet is lost, ECN-capable or not; below, ECN-capable
//! packets are marked.
//!
//! What it does not say. It has no gentle slope, no byte mode and no adaptive RED. The slope here is drawn like the
//! band; its end is a third threshold, asked after the two. The inverse of the maximum probability, in ALTQ a whole
//! number, may be any. In byte mode a queue is so many packets of `mean_packet` bytes, rounded down to 1/4096 of one,
//! and a packet's probability is scaled by its size before the spacing, as in the paper; what is asked of the queue's
//! length, whether it is one or none, is asked in packets all the same.
//!
//! With `average_overflow` every number has the 32 bits that it has in ALTQ and wraps around: a threshold of 64 packets
//! at a weight of 1/8192 is negative. Without, no number does.

use super::{Arrival, Gauges, OUTSIDE, Verdict, measure::Measure};
use crate::cause::Cause;
use crate::packet::Backlog;
use crate::param::{Length, Refusal, Value, Values};
use base::{Ecn, Span, Stream, Time, maths};

/// Binary digits of a packet's fractions.
const FRACTION: u32 = 12;
/// The time for which an idle link is taken to have sent a packet, 1000 bytes at 10 Mb/s: ALTQ's where none is
/// configured.
const PACKET_TIME: Span = Span::from_us(800);
/// The smallest weight is 2 to minus this: a packet at it is 2^31.
const MOST_SHIFT: u32 = 31 - FRACTION;

/// Where an average lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Zone {
    Below,
    Band,
    Slope,
    Above,
}

/// RED in ALTQ's arithmetic, without the stream it draws from.
#[derive(Clone, Debug)]
pub struct Altq {
    measure: Measure,
    /// The weight is 2^-shift.
    shift: u32,
    overflows: bool,
    average: i64,
    min: i64,
    max: i64,
    /// Where the slope ends: `max` unless gentle.
    end: i64,
    /// The thresholds as they were written, in packets.
    written: [f64; 3],
    max_p: f64,
    /// The maximum probability that was given; adaptive RED moves it.
    first_max_p: f64,
    /// Twice the width of the band over the maximum probability, in 1/4096 of a packet.
    denominator: i64,
    /// Packets since the last signal, [`OUTSIDE`] the band.
    count: i64,
    /// Since when the link is idle; [`Time::NEVER`] while it is busy.
    idle_since: Time,
    ecn_enabled: bool,
    /// ECN-capable packets are marked up to here, and up to the probability `mark_p`.
    mark_until: Zone,
    mark_p: f64,
}

/// Refuses what ALTQ has not, and makes the weight the nearest that it has.
pub fn resolve(values: &mut Values) -> Result<(), Refusal> {
    if values.word("mode") == "packet" && matches!(values.length("min"), Length::Bytes(_)) {
        return Err(Refusal::new(
            "min",
            "a number of packets such as 5p: without mode = \"byte\" ALTQ counts no bytes",
        ));
    }
    if values.flag("wait") {
        return Err(Refusal::new("wait", "false: ALTQ draws for every packet in the band but the first"));
    }
    let weight = 1.0 / f64::from(1_u32 << shift(values.number("wq")));
    values.0.insert("wq".into(), Value::Number(weight));
    Ok(())
}

/// The power of 1/2 that is nearest to `weight`.
fn shift(weight: f64) -> u32 {
    (-maths::ln(weight) / std::f64::consts::LN_2).round().clamp(0.0, f64::from(MOST_SHIFT)) as u32
}

impl Altq {
    /// RED from resolved values.
    pub fn new(values: &Values) -> Self {
        let measure = Measure::new(values, values.length("min"));
        let [min, max, gentle_end] = ["min", "max", "gentle_end"].map(|name| measure.length(values.length(name)));
        let end = if values.flag("gentle") { gentle_end } else { max };
        let first_max_p = values.number("probability");
        let mut altq = Self {
            measure,
            shift: shift(values.number("wq")),
            overflows: values.flag("average_overflow"),
            average: 0,
            min: 0,
            max: 0,
            end: 0,
            written: [min, max, end],
            max_p: 0.0,
            first_max_p,
            denominator: 0,
            count: OUTSIDE,
            idle_since: Time::ZERO,
            ecn_enabled: values.flag("ecn"),
            mark_until: match values.word("mark_until") {
                "max" => Zone::Band,
                "end" => Zone::Slope,
                _ => Zone::Above,
            },
            mark_p: values.number("mark_p"),
        };
        [altq.min, altq.max, altq.end] = altq.written.map(|length| altq.fit((length * altq.packet()) as i64));
        altq.set_max_p(first_max_p);
        altq
    }

    /// This one in the place of `before`, whose average and spacing it takes over; and whose maximum probability,
    /// unless another one was given.
    #[must_use]
    pub fn instead_of(self, before: &Self) -> Self {
        let average = match self.shift.checked_sub(before.shift) {
            Some(more) => before.average << more,
            None => before.average >> (before.shift - self.shift),
        };
        let mut altq = Self { average: self.fit(average), count: before.count, idle_since: before.idle_since, ..self };
        if altq.first_max_p == before.first_max_p {
            altq.set_max_p(before.max_p);
        }
        altq
    }

    /// Takes a queue of `backlog` into the average, which happens at each arrival before [`Altq::judge`].
    pub fn observe(&mut self, backlog: Backlog, now: Time) {
        let average = self.decayed(now);
        self.idle_since = Time::NEVER;
        self.average = self.fit(average + self.length(backlog) - (average >> self.shift));
    }

    /// Decides about an arriving packet by the average as it is.
    pub fn judge(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        let zone = self.zone();
        if zone == Zone::Below || arrival.backlog.packets <= 1 {
            self.count = OUTSIDE;
            return Verdict::Pass;
        }
        if zone == Zone::Above {
            self.count = self.count.min(0);
            return self.signal(arrival.ecn, Cause::FORCED, zone);
        }
        if self.count == OUTSIDE {
            self.count = 1;
            return Verdict::Pass;
        }
        self.count += 1;
        if !self.is_drawn(zone, arrival.size, stream) {
            return Verdict::Pass;
        }
        self.count = 0;
        self.signal(arrival.ecn, Cause::EARLY, zone)
    }

    /// The queue refused an arriving packet, after [`Altq::observe`]. ALTQ judges first: the band is entered or left
    /// all the same, and then the loss restarts the spacing. Only the draw that it then wastes is not taken.
    pub fn overflow(&mut self, arrival: &Arrival) {
        let zone = self.zone();
        let is_outside = zone == Zone::Below || arrival.backlog.packets <= 1;
        self.count = if is_outside || zone == Zone::Above && self.count == OUTSIDE { OUTSIDE } else { 0 };
    }

    /// The link is idle from `now` on.
    pub fn idle_from(&mut self, now: Time) {
        self.idle_since = self.idle_since.min(now);
    }

    /// The average queue, and the probability that goes with it.
    pub fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.probability()), control: Some(self.average()), tracked_flows: None }
    }

    /// The average queue after the last sample, in packets.
    pub fn average(&self) -> f64 {
        self.average as f64 / self.packet()
    }

    /// The average queue at `now`, decayed if the link is idle.
    pub fn average_at(&self, now: Time) -> f64 {
        self.decayed(now) as f64 / self.packet()
    }

    /// The maximum probability.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Sets the maximum probability.
    pub fn set_max_p(&mut self, max_p: f64) {
        let [min, max, _] = self.written;
        self.max_p = max_p;
        self.denominator = self.fit((2.0 * (max - min) * f64::from(1 << FRACTION) / max_p).round() as i64);
    }

    /// The thresholds in packets, as they were written.
    pub fn band(&self) -> (f64, f64) {
        (self.written[0], self.written[1])
    }

    /// A queue in 1/4096 of a packet.
    fn length(&self, backlog: Backlog) -> i64 {
        if self.measure.weighs_size() {
            ((backlog.bytes << FRACTION) / u64::from(self.measure.mean_packet())) as i64
        } else {
            i64::from(backlog.packets) << FRACTION
        }
    }

    /// What an average of one packet is.
    fn packet(&self) -> f64 {
        f64::from(1_u32 << (FRACTION + self.shift))
    }

    /// What is left of a number in the bits that it has.
    fn fit(&self, number: i64) -> i64 {
        if self.overflows { i64::from(number as i32) } else { number }
    }

    /// The average at `now`, before the sample of an arrival.
    fn decayed(&self, now: Time) -> i64 {
        if self.idle_since >= now {
            return self.average;
        }
        // The clock shows whole microseconds.
        let idle_us = now.ns() / 1000 - self.idle_since.ns() / 1000;
        let packets = (idle_us * 1000 / PACKET_TIME.ns()).saturating_sub(1);
        if packets == 0 { self.average } else { (self.average >> FRACTION) * self.kept(packets) }
    }

    /// (1 - w)^packets in 1/4096, rounded down at each step.
    fn kept(&self, mut packets: u64) -> i64 {
        let mut kept = 1 << FRACTION;
        let mut factor = (((1 << self.shift) - 1) << FRACTION) >> self.shift;
        while packets > 0 && kept > 0 {
            if packets & 1 == 1 {
                kept = (kept * factor) >> FRACTION;
            }
            factor = (factor * factor) >> FRACTION;
            packets >>= 1;
        }
        kept
    }

    /// Where the average lies, as ALTQ asks: thresholds that have wrapped around are in no order.
    fn zone(&self) -> Zone {
        if self.average < self.min {
            Zone::Below
        } else if self.average < self.max {
            Zone::Band
        } else if self.average < self.end {
            Zone::Slope
        } else {
            Zone::Above
        }
    }

    /// By how much the average is above `min`, in 1/4096 of a packet.
    fn above(&self) -> i64 {
        self.fit(self.average - self.min) >> self.shift
    }

    /// The probability of a signal before spacing.
    fn probability(&self) -> f64 {
        match self.zone() {
            Zone::Below => 0.0,
            Zone::Band if self.max_p == 0.0 => 0.0,
            Zone::Band if self.denominator <= 0 => 1.0,
            Zone::Band => (2.0 * self.above() as f64 / self.denominator as f64).clamp(0.0, 1.0),
            Zone::Slope => {
                let [_, max, end] = self.written;
                let beyond = self.fit(self.average - self.max) as f64 / self.packet();
                (self.max_p + (1.0 - self.max_p) * beyond / (end - max)).clamp(0.0, 1.0)
            }
            Zone::Above => 1.0,
        }
    }

    /// Draws for a packet of `size` with probability p / (2 - count p).
    fn is_drawn(&self, zone: Zone, size: u32, stream: &mut Stream) -> bool {
        let (part, room) = match zone {
            Zone::Band => {
                if self.max_p == 0.0 {
                    return false;
                }
                let above = self.weighed(self.above(), size);
                let spent = self.fit(self.count.saturating_mul(above));
                (above as f64, self.fit(self.denominator.saturating_sub(spent)) as f64)
            }
            _ => {
                let p = self.probability() * self.measure.weight(size);
                (p, 2.0 - self.count as f64 * p)
            }
        };
        room <= 0.0 || part > 0.0 && (part >= room || stream.unit() * room < part)
    }

    /// A number that is scaled by a packet's `size` where bytes count.
    fn weighed(&self, number: i64, size: u32) -> i64 {
        if self.measure.weighs_size() {
            self.fit((number * i64::from(size)).div_euclid(i64::from(self.measure.mean_packet())))
        } else {
            number
        }
    }

    /// The signal as the packet can carry it.
    fn signal(&self, ecn: Ecn, cause: Cause, zone: Zone) -> Verdict {
        let is_light = zone <= self.mark_until && self.probability() <= self.mark_p;
        match Verdict::signal(self.ecn_enabled, ecn, cause) {
            Verdict::Mark(_) if !is_light => Verdict::Drop(Cause::OVERLOAD),
            verdict => verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altq(weight: f64, overflows: bool, lengths: [f64; 3]) -> Altq {
        in_mode("packet", weight, overflows, lengths)
    }

    fn in_mode(mode: &'static str, weight: f64, overflows: bool, lengths: [f64; 3]) -> Altq {
        let mut values = Values::default();
        values.fill("mode", Value::Word(mode));
        values.fill("mean_packet", Value::Size(500));
        for (name, length) in ["min", "max", "gentle_end"].into_iter().zip(lengths) {
            values.fill(name, Value::Length(Length::Packets(length)));
        }
        for (name, flag) in [("average_overflow", overflows), ("gentle", true), ("ecn", false)] {
            values.fill(name, Value::Flag(flag));
        }
        for (name, number) in [("wq", weight), ("probability", 0.1), ("mark_p", 1.0)] {
            values.fill(name, Value::Number(number));
        }
        values.fill("mark_until", Value::Word("max"));
        Altq::new(&values)
    }

    fn arrival(packets: u32) -> Arrival {
        let backlog = Backlog { packets, bytes: 500 * u64::from(packets) };
        Arrival { size: 500, ecn: Ecn::NotEct, flow: base::FlowKey(1), backlog }
    }

    #[test]
    fn the_weight_is_the_nearest_power_of_a_half() {
        for (weight, expected) in [(1.0, 0), (0.5, 1), (0.002, 9), (1.0 / 8192.0, 13), (0.00012, 13), (1e-12, 19)] {
            assert_eq!(shift(weight), expected, "{weight}");
        }
    }

    #[test]
    fn gaps_are_spread_over_1_to_2_over_p_with_a_mean_of_1_over_p() {
        // An average of 10 in a band of 5 to 15, p = 0.05: after a signal uniform on 1..=39, mean 20, variance
        // (39^2 - 1) / 12 = 126.7. The mean of 100,000 gaps is off by 0.036, four times that at most.
        let mut altq = Altq { idle_since: Time::NEVER, ..altq(1.0, false, [5.0, 15.0, 30.0]) };
        let mut stream = Stream::named(1, "altq");
        altq.observe(arrival(10).backlog, Time::ZERO);
        (altq.count, altq.idle_since) = (0, Time::NEVER);
        let mut gaps = Vec::new();
        for _ in 0..100_000 {
            gaps.push((1..).find(|_| altq.judge(&arrival(10), &mut stream) != Verdict::Pass).expect("it comes"));
        }
        let mean = gaps.iter().sum::<i64>() as f64 / gaps.len() as f64;
        assert!((mean - 20.0).abs() < 0.15, "{mean}");
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&39)));
    }

    #[test]
    fn in_byte_mode_large_packets_are_signalled_more_often_and_one_that_waits_spares_all() {
        // A queue of 5000 bytes is 10 packets of 500: with p = 0.05, one of 1000 bytes has a mean gap of 10, one of 250
        // of 40. The means of 50,000 gaps are off by 1/224 of the gaps' deviations, 5.5 and 22.8, four times that at
        // most.
        let mut altq = Altq { idle_since: Time::NEVER, ..in_mode("byte", 1.0, false, [5.0, 15.0, 30.0]) };
        let mut stream = Stream::named(1, "altq");
        let backlog = Backlog { packets: 4, bytes: 5000 };
        altq.observe(backlog, Time::ZERO);
        altq.count = 0;
        for (size, expected, within) in [(1000, 10.0, 0.1), (250, 40.0, 0.41)] {
            let arrival = Arrival { size, backlog, ..arrival(4) };
            let gap = |altq: &mut Altq, stream: &mut Stream| {
                (1..).find(|_| altq.judge(&arrival, stream) != Verdict::Pass).expect("it comes")
            };
            let mean = (0..50_000).map(|_| gap(&mut altq, &mut stream)).sum::<i64>() as f64 / 50_000.0;
            assert!((mean - expected).abs() < within, "{mean}");
        }
        let one = Arrival { backlog: Backlog { packets: 1, bytes: 5000 }, ..arrival(1) };
        assert_eq!((altq.judge(&one, &mut stream), altq.count), (Verdict::Pass, OUTSIDE));
    }

    #[test]
    fn idle_time_is_forgotten_in_twelve_digits() {
        // (1 - w) is 4095/4096 for every weight from 1/4096 down: what is left after n packets is at most exp(-n/4096),
        // and rounding down takes less than 14 for the 12 squarings and products up to n = 4096.
        let altq = altq(1.0 / 8192.0, false, [5.0, 15.0, 30.0]);
        assert_eq!((altq.kept(1), altq.kept(2), altq.kept(3)), (4095, 4094, 4093));
        let left = altq.kept(4096);
        let exact = 4096.0 * maths::exp(-1.0);
        assert!((left as f64) < exact && left as f64 > exact - 14.0 * 4.0, "{left} {exact}");
        // ALTQ forgets all after a minute, for fear of overflow: the table has nothing left by then.
        assert_eq!(altq.kept(60_000_000 / 800), 0);
    }

    #[test]
    fn thresholds_beyond_64_packets_wrap_around_at_a_weight_of_1_8192() {
        let weight = 1.0 / 8192.0;
        let wide = altq(weight, false, [120.0, 360.0, 720.0]);
        assert_eq!([wide.min, wide.max, wide.end], [120 << 25, 360 << 25, 720 << 25]);
        let narrow = altq(weight, true, [120.0, 360.0, 720.0]);
        assert_eq!([narrow.min, narrow.max, narrow.end], [-8 << 25, -24 << 25, -48 << 25]);
        assert_eq!((narrow.zone(), wide.zone()), (Zone::Above, Zone::Below), "of an average of 0");
        // 36 fits, and the end of gentle, 72, does not: everything is lost from 36 on.
        let mut band = altq(weight, true, [12.0, 36.0, 72.0]);
        for (packets, zone) in [(11, Zone::Below), (12, Zone::Band), (35, Zone::Band), (36, Zone::Above)] {
            band.average = packets << 25;
            assert_eq!(band.zone(), zone, "{packets}");
        }
    }

    #[test]
    fn the_average_wraps_around_where_it_overflows() {
        // A queue of 100 from then on: avg = 100 (1 - (8191/8192)^n) passes 64 at n = 8192 ln(1/0.36) = 8369.4.
        for overflows in [false, true] {
            let mut altq = altq(1.0 / 8192.0, overflows, [12.0, 36.0, 72.0]);
            for _ in 0..8360 {
                altq.observe(arrival(100).backlog, Time::ZERO);
            }
            assert!(altq.average() > 63.9 && altq.average() < 64.0, "{}", altq.average());
            for _ in 0..20 {
                altq.observe(arrival(100).backlog, Time::ZERO);
            }
            assert_eq!(altq.average() < -63.5, overflows, "{}", altq.average());
        }
    }
}
