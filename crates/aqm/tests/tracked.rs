//! How many flows disciplines say that they keep: those that the test has shown them, by each one's own rule.

use crate::common::{Deaf, Parcel, built};
use aqm::Qdisc;
use base::{Ecn, Rate, Span, Stream, Time};

fn qdisc(name: &str, written: &[(&str, &str)]) -> Box<dyn Qdisc<Parcel> + Send> {
    built(name, written, Rate::from_bps(8_000_000), Stream::named(1, "q"))
}

/// Offers so many packets of 1000 bytes of each flow in turn.
fn offer(qdisc: &mut dyn Qdisc<Parcel>, packets: &[(u64, u32)]) {
    for &(flow, count) in packets {
        for number in 0..u64::from(count) {
            qdisc.offer(Parcel { number, size: 1000, ecn: Ecn::NotEct, flow }, Time::ZERO, &mut Deaf);
        }
    }
}

fn tracked(qdisc: &dyn Qdisc<Parcel>) -> Option<u32> {
    qdisc.gauges().tracked_flows
}

#[test]
fn dcn_keeps_flows_from_their_fourth_packet_until_they_are_below_the_share() {
    let packets = [(1, 4), (2, 3), (3, 5)];
    let mut full = qdisc("dcn", &[("hb", "1")]);
    offer(&mut *full, &packets);
    assert_eq!(tracked(&*full), Some(1), "a full table takes no more");

    let mut dcn = qdisc("dcn", &[]);
    assert_eq!(tracked(&*dcn), Some(0));
    offer(&mut *dcn, &packets);
    assert_eq!(tracked(&*dcn), Some(2));
    // A reduction by the share, which begins with all that the link sends in `tdec`, leaves nothing of either count. It
    // is due when `tdec` has passed, and done by the sweep at that time.
    let mut tick_until = |until: Time| {
        while dcn.next_tick() <= until {
            dcn.tick(dcn.next_tick());
        }
        tracked(&*dcn)
    };
    assert_eq!(tick_until(Time::ZERO + Span::from_ns(799_999_999)), Some(2));
    assert_eq!(tick_until(Time::ZERO + Span::from_ms(800)), Some(0));
}

#[test]
fn queues_of_flows_are_those_that_hold_packets() {
    for name in ["fq_codel", "fq_pie", "fq_red", "sfq", "drr", "fq", "cake"] {
        let mut qdisc = qdisc(name, &[]);
        assert_eq!(tracked(&*qdisc), Some(0), "{name}");
        offer(&mut *qdisc, &[(1, 3), (2, 1), (3, 2)]);
        assert_eq!(tracked(&*qdisc), Some(3), "{name}");
        while qdisc.take(Time::ZERO, &mut Deaf).packet().is_some() {}
        // CAKE remembers a flow that ran empty until its law is at rest.
        if name != "cake" {
            assert_eq!(tracked(&*qdisc), Some(0), "{name}");
        }
    }
}

#[test]
fn laws_that_count_by_flow_say_how_many_and_others_nothing() {
    // AFD samples every packet here. No flow has been signalled often enough for RED-PD.
    let cases = [
        ("fred", vec![], Some(3)),
        ("afd", vec![("sample", "1")], Some(3)),
        ("rio_ps", vec![], Some(3)),
        ("red_pd", vec![], Some(0)),
        ("pfifo", vec![], None),
        ("red", vec![], None),
        ("pi", vec![], None),
        ("codel", vec![], None),
        ("dualpi2", vec![], None),
    ];
    for (name, written, expected) in cases {
        let mut qdisc = qdisc(name, &written);
        offer(&mut *qdisc, &[(1, 3), (2, 1), (3, 2)]);
        assert_eq!(tracked(&*qdisc), expected, "{name}");
    }
}
