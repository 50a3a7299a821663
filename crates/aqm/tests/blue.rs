//! What BLUE and stochastic fair BLUE must do with load that does not respond.

use crate::common::{Parcel, built};
use aqm::{Cause, Egress, Headers, Tap};
use base::{Ecn, Rate, Stream, Time, maths};

/// Ten megabits a second: 1250 packets of 1000 bytes.
const RATE: Rate = Rate::from_bps(10_000_000);
const CAPACITY: f64 = 1250.0;
/// One flow of 2500 packets a second, and twenty of 25: 2.4 times what the link can carry.
const FLOOD: f64 = 2500.0;
const SMALL: f64 = 25.0;
const FLOWS: u64 = 20;
const OFFERED: f64 = FLOOD + FLOWS as f64 * SMALL;

/// Packets of the flood and of all others.
#[derive(Default)]
struct Shares {
    offered: [u64; 2],
    lost: [u64; 2],
    delivered: [u64; 2],
    is_measuring: bool,
}

impl Tap<Parcel> for Shares {
    fn dropped(&mut self, packet: Parcel, _cause: Cause, _now: Time) {
        self.lost[usize::from(packet.flow > 0)] += u64::from(self.is_measuring);
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Shares {}

/// A hundred seconds of Poisson arrivals, the first twenty not counted.
fn run(name: &str, written: &[(&str, &str)]) -> Shares {
    let mut egress = Egress::new(RATE, built(name, written, RATE, Stream::named(1, "q")));
    let mut stream = Stream::named(1, "arrivals");
    let mut shares = Shares::default();
    let mut now_s = 0.0;
    let mut number = 0;
    while now_s < 100.0 {
        shares.is_measuring = now_s > 20.0;
        now_s += -maths::ln(stream.open_unit()) / OFFERED;
        let now = Time::from_secs_f64(now_s);
        while egress.next_event() <= now {
            if let Some(delivery) = egress.advance(now, &mut shares) {
                shares.delivered[usize::from(delivery.packet.flow > 0)] += u64::from(shares.is_measuring);
            }
        }
        let flow = if stream.chance(FLOOD / OFFERED) { 0 } else { 1 + stream.below(FLOWS) };
        number += 1;
        shares.offered[usize::from(flow > 0)] += u64::from(shares.is_measuring);
        egress.offer(Parcel { number, size: 1000, ecn: Ecn::NotEct, flow }, now, &mut shares);
    }
    egress.assert_conserved();
    shares
}

#[test]
fn blue_treats_all_alike() {
    let shares = run("blue", &[]);
    // All flows together lose at least what does not fit; each packet with the same probability.
    let [flood, small] = [0, 1].map(|who| shares.lost[who] as f64 / shares.offered[who] as f64);
    let least = 1.0 - CAPACITY / OFFERED;
    // Four standard errors of 40,000 binomial draws.
    let slack = 4.0 * (0.25 / shares.offered[1] as f64).sqrt();
    assert!(small >= least - slack && (flood - small).abs() <= slack, "{flood} {small}, at least {least}");
}

#[test]
fn sfb_makes_the_flood_pay() {
    // In a queue of a hundred, 80 ms, the others have two packets each: too few to fill a bin that they do not share
    // with the flood. So they are never signalled, and once the flood pays nobody meets the limit.
    let shares = run("sfb", &[("limit", "100p")]);
    assert_eq!(shares.lost[1], 0);
    // The flood gets no more than what is left; the queue of the first second may have been its own.
    let left = 80.0 * CAPACITY - shares.delivered[1] as f64;
    let flood = shares.delivered[0] as f64;
    assert!(flood <= left + 100.0, "{flood} of {left}");
    // And not much less: with steps of 10 to 1 its probability rests where its bins are empty ten times as often as
    // they hold more than 20. Were they an M/D/1 queue of their own, that is at a load r with exp(-2 (1 - r) 20 / r) =
    // (1 - r) / 10 or about 0.9; half as far off again is left for what they are not.
    assert!(flood >= 0.85 * left, "{flood} of {left}");
}

#[test]
fn sfb_holds_a_flow_at_one_to_its_rate() {
    // Probabilities that rise to 1 at once and never fall: the flood has its bucket, 10 packets a second of 80 seconds.
    let steps = [("limit", "100p"), ("increment", "1"), ("decrement", "0")];
    let shares = run("sfb", &steps);
    let passed = shares.offered[0] - shares.lost[0];
    assert!((795..=820).contains(&passed), "{passed}");
    assert_eq!(shares.lost[1], 0);
    // Linux's bucket forgets what is less than a packet: asked 2500 times a second it never fills again.
    let shares = run("sfb", &[&steps[..], &[("dialect", "linux")]].concat());
    assert_eq!(shares.offered[0], shares.lost[0]);
}
