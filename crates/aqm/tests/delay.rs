//! What disciplines of the waiting time must do with a load that does not respond, by their own equations; and what
//! fair queueing owes each flow.
//!
//! Poisson arrivals of 1.25 times the link's rate. An integrating controller rests only with the mean waiting time at
//! its target and a fifth of the packets lost, whatever its gains. Means are compared within four standard errors from
//! batch means, as in the tests of theory, and half a packet's time, by which an arriving packet's wait exceeds what is
//! ahead of it in the queue; each bound says how small those must be.

use crate::common::{Deaf, Parcel, built, estimate};
use aqm::Egress;
use base::{Ecn, Rate, Stream, Time, maths};

const RATE: Rate = Rate::from_bps(100_000_000);
const SIZE: u32 = 1000;
/// Seconds that a packet takes.
const SERVICE_S: f64 = 8e-5;
#[test]
fn controllers_of_the_waiting_time_settle_at_their_target() {
    let settled = [
        ("pie", vec![], 0.015),
        ("pie", vec![("dialect", "linux"), ("target", "20ms")], 0.020),
        // The time of 17 packets of 1000 bytes is taken for that of 16,384 (RFC 8033 §5.3): waits seem that much
        // longer.
        ("pie", vec![("dq_rate_estimator", "true")], 0.015 * 16_384.0 / 17_000.0),
        ("pie", vec![("dq_rate_estimator", "true"), ("dialect", "linux")], 0.015),
        ("fq_pie", vec![("flows", "1")], 0.015),
        // Its decay at short waits goes one way only, and moves the rest point.
        ("docsis_pie", vec![("latency_low", "0ms")], 0.010),
        ("pi2", vec![], 0.020),
        ("dualpi2", vec![], 0.015),
        ("dualpi2", vec![("dialect", "linux"), ("target", "10ms")], 0.010),
    ];
    for (name, written, target_s) in settled {
        let mut gaps = Stream::named(1, "gaps");
        let mut egress = Egress::new(RATE, built::<Parcel>(name, &written, RATE, Stream::named(1, "q")));
        let (mut waits, mut losses) = (vec![], vec![]);
        let (mut now_s, mut lost) = (0.0, 0);
        for number in 0..3_000_000 {
            now_s += -SERVICE_S / 1.25 * maths::ln(gaps.open_unit());
            let now = Time::from_secs_f64(now_s);
            let is_measured = number >= 1_000_000;
            while egress.next_event() <= now {
                if let Some(delivery) = egress.advance(now, &mut Deaf)
                    && is_measured
                {
                    waits.push(delivery.waited.secs_f64());
                }
            }
            egress.offer(Parcel { number, size: SIZE, ecn: Ecn::NotEct, flow: 0 }, now, &mut Deaf);
            if is_measured {
                losses.push((egress.counts().dropped_total() - lost) as f64);
            }
            lost = egress.counts().dropped_total();
        }
        egress.assert_conserved();
        let (wait, error) = estimate(&waits);
        let bound = 4.0 * error + SERVICE_S;
        assert!(bound <= 0.08 * target_s, "{name} {written:?}: {wait} s +- {error} is precise");
        assert!((wait - target_s).abs() <= bound, "{name} {written:?}: {wait} s +- {error} against {target_s}");
        let (loss, error) = estimate(&losses);
        assert!(4.0 * error <= 0.005, "{name}: {loss} +- {error} is precise");
        assert!((loss - 0.2).abs() <= 4.0 * error, "{name} {written:?}: {loss} +- {error} lost");
    }
}

#[test]
fn backlogged_flows_get_the_same_bytes_within_a_turn() {
    for name in ["fq_codel", "fq_pie", "cake"] {
        let mut qdisc = built::<Parcel>(name, &[], RATE, Stream::named(1, "q"));
        let mut sizes = Stream::named(1, "sizes");
        let (mut sent, mut greatest) = ([0_i64; 3], 0);
        // Large packets, small ones, any; each flow keeps ten waiting, none for long.
        let mut size = |flow: usize| [1500, 100, 40 + sizes.below(1461) as u32][flow];
        for number in 0..30 {
            let flow = (number % 3) as usize;
            let parcel = Parcel { number, size: size(flow), ecn: Ecn::NotEct, flow: flow as u64 };
            qdisc.offer(parcel, Time::ZERO, &mut Deaf);
        }
        for number in 30..100_000 {
            let held = qdisc.take(Time::ZERO, &mut Deaf).packet().expect("packets wait");
            let flow = held.packet.flow as usize;
            sent[flow] += i64::from(held.packet.size);
            let parcel = Parcel { number, size: size(flow), ecn: Ecn::NotEct, flow: flow as u64 };
            qdisc.offer(parcel, Time::ZERO, &mut Deaf);
            let spread = sent.iter().max().expect("three") - sent.iter().min().expect("three");
            greatest = greatest.max(spread);
        }
        // A flow has sent its turns less the credit left, of more than -1500 and at most 1514; turns differ by one.
        assert!((1400..2 * 1514 + 1500).contains(&greatest), "{name}: {greatest} bytes apart");
    }
}
