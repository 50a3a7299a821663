//! A stretch of time comes to the same as its events one by one, for every discipline and whatever its parameters:
//! packet by packet, who leaves when and after what wait, who is lost or marked, and in what state the link is left.

use crate::common::Told;
use crate::operations::{Parcel, Recorder, Setup};
use aqm::param::{Length, Text};
use aqm::registry::{self, Row, Site};
use aqm::{Counts, Delivery, Due, Egress, Framing, Gauges, Packet};
use base::{Ecn, Span, Stream, Time};
use proptest::prelude::*;

/// One that comes: how long after the one before, in 256ths of what 1500 bytes take of the link, or none for the very
/// instant at which the link does its next thing; and what it is.
type Coming = (Option<u16>, u32, Ecn, u8);

/// From 10 Mb/s to 10 Gb/s, as parts of the range of a [`Setup`]: the fastest laws tick a thousand times a packet at
/// the slowest of these.
const RATES: std::ops::RangeInclusive<u16> = 23_230..=54_980;

/// The state that a stretch leaves a link in.
#[derive(Debug, PartialEq)]
struct State {
    counts: Counts,
    ticks: u64,
    next_event: Time,
    waiting: u128,
    gauges: Gauges,
}

/// What happened in a stretch.
#[derive(Debug, PartialEq)]
struct Happened {
    left: Vec<(u64, Ecn, Time, Span)>,
    told: Vec<Told>,
    state: State,
}

fn coming() -> impl Strategy<Value = Vec<Coming>> {
    let gap = prop_oneof![6 => Just(0_u16), 6 => 1_u16..600, 1 => 600_u16..20_000];
    let gap = prop_oneof![4 => gap.prop_map(Some), 1 => Just(None)];
    let size = prop_oneof![Just(40_u32), Just(576), Just(1500), 1_u32..=9000];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let packet = (gap, size, ecn, 0_u8..7);
    // Repetitions make the bursts that fill a queue.
    proptest::collection::vec((packet, 1_usize..12), 20..80)
        .prop_map(|runs| runs.into_iter().flat_map(|(one, times)| std::iter::repeat_n(one, times)).collect())
}

fn setup() -> impl Strategy<Value = Setup> {
    let limit = prop_oneof![
        (1_u32..200).prop_map(|packets| Length::Packets(f64::from(packets))),
        (0_u32..300_000).prop_map(|bytes| Length::Bytes(f64::from(bytes))),
    ];
    let choices = proptest::collection::vec(any::<u32>(), 1..24);
    (RATES, limit, any::<bool>(), choices, any::<u64>()).prop_map(|(rate, limit, ecn, choices, seed)| Setup {
        rate,
        limit,
        ecn,
        choices,
        seed,
    })
}

/// A link behind a discipline of these parameters: each time the same.
fn link(row: &Row<Text>, setup: &Setup) -> Egress<Parcel> {
    let (rate, values) = (setup.rate(), setup.completed(row, setup.given(row)));
    let site = Site { rate, stream: Stream::named(setup.seed, "stretches") };
    Egress::new(rate, registry::build(&row.name, &values, site))
        .with_framing(Framing { overhead: 38, ..Framing::default() })
}

fn state(link: &Egress<Parcel>, at: Time) -> State {
    State {
        counts: *link.counts(),
        ticks: link.ticks(),
        next_event: link.next_event(),
        waiting: link.waiting_packet_ns(at),
        gauges: link.gauges(),
    }
}

fn happened(link: &Egress<Parcel>, out: &[Delivery<Parcel>], heard: Recorder, at: Time) -> Happened {
    // Of packets that are accepted in a row only the first is told of in a stretch.
    let told = heard.0.into_iter().filter(|told| !matches!(told, Told::Accepted(_))).collect();
    let left = out.iter().map(|one| (one.packet.number, one.packet.ecn(), one.at, one.waited)).collect();
    Happened { left, told, state: state(link, at) }
}

/// What happens before `before` while these come, one event after the other. The wire goes first where both are due.
fn one_by_one(link: &mut Egress<Parcel>, arrivals: &[Due<Parcel>], before: Time) -> (usize, Happened) {
    let (mut out, mut heard, mut came) = (Vec::new(), Recorder::default(), 0);
    for next in arrivals.iter().take_while(|next| next.at < before) {
        while link.next_event() <= next.at {
            out.extend(link.advance(next.at, &mut heard));
        }
        link.offer(next.packet, next.at, &mut heard);
        came += 1;
    }
    while link.next_event() < before {
        out.extend(link.advance(before - Span::from_ns(1), &mut heard));
    }
    (came, happened(link, &out, heard, before))
}

/// When each of these arrives, in turn, and the 256th part of what 1500 bytes take of the link, in ns.
fn arrivals_of(row: &Row<Text>, setup: &Setup, coming: &[Coming]) -> (Vec<Due<Parcel>>, f64) {
    let unit = 1500.0 * 8.0 / setup.rate().bps_f64() * 1e9 / 256.0;
    let (mut link, mut heard) = (link(row, setup), Recorder::default());
    let (mut at, mut arrivals) = (Time::ZERO, Vec::new());
    for (number, &(gap, size, ecn, flow)) in coming.iter().enumerate() {
        at = match gap {
            Some(gap) => at + Span::from_ns((f64::from(gap) * unit) as u64),
            None if link.next_event().is_set() => link.next_event(),
            None => at,
        };
        let packet = Parcel::new(number as u64 + 1, size, ecn, flow);
        while link.next_event() <= at {
            link.advance(at, &mut heard);
        }
        link.offer(packet, at, &mut heard);
        arrivals.push(Due { at, source: 0, packet });
    }
    (arrivals, unit)
}

fn in_one(link: &mut Egress<Parcel>, arrivals: &[Due<Parcel>], before: Time) -> (usize, Happened) {
    let (mut out, mut heard) = (Vec::new(), Recorder::default());
    let came = link.pass(arrivals, before, &mut out, &mut heard);
    (came, happened(link, &out, heard, before))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stretch_comes_to_the_same_as_its_events_one_by_one(
        setup in setup(),
        coming in coming(),
        lengths in proptest::collection::vec(1_u64..40_000, 1..12),
    ) {
        for row in registry::rows() {
            let (arrivals, unit) = arrivals_of(row, &setup, &coming);
            let at = arrivals.last().expect("there are some").at;
            let (mut one, mut other) = (link(row, &setup), link(row, &setup));
            let (mut before, mut left) = (Time::ZERO, &arrivals[..]);
            let mut turns = lengths.iter().cycle();
            while before <= at {
                let length = turns.next().expect("there is a length");
                before += Span::from_ns((*length as f64 * unit) as u64 + 1);
                let (came, what) = one_by_one(&mut one, left, before);
                prop_assert_eq!((came, what), in_one(&mut other, left, before), "{} {:?}", row.name, &setup);
                left = &left[came..];
            }
        }
    }
}
