//! Hosts of which only the opener sends, as ns-2's one-way agents are (ns-2.35, tcp.cc with `syn_` and `delay_growth_`,
//! tcp-sink.cc).

use crate::common::{Bench, CLIENT, Kind, SERVER, stack};
use base::Span;
use tcp::{Config, Flags};

fn transfer(segments: u64) -> Bench {
    let mut bench = Bench::new(&Config { mss: 1000, handshake: true, one_way: true, ..stack("ns2") });
    bench.write(CLIENT, segments * 1000).close(CLIENT);
    bench
}

#[test]
fn the_answer_to_the_syn_opens_both_ends_and_nothing_is_closed_in_return() {
    let mut bench = transfer(4);
    bench.run();
    // The SYN, four segments; its answer, four acknowledgements.
    assert_eq!(bench.times(CLIENT, Kind::Syn), [0]);
    assert_eq!(bench.flights(CLIENT), [(100, vec![1, 2]), (200, vec![3, 4])]);
    assert_eq!([CLIENT, SERVER].map(|end| bench.story.iter().filter(|packet| packet.from == end).count()), [5, 5]);
    assert!(bench.story.iter().all(|packet| packet.from == CLIENT || !packet.segment.flags.has(Flags::FIN)));
    assert!(bench.ends.iter().all(tcp::Endpoint::is_done));
    assert_eq!(bench.ends[SERVER].received(), 4_000);
    assert_eq!(bench.ends[CLIENT].srtt(), Some(Span::from_ms(100)));
}

#[test]
fn an_answer_that_is_lost_is_given_again() {
    let mut bench = transfer(4);
    bench.lose(SERVER, Kind::SynAck, &[1]).run();
    // rtxcur_init_ is 3 s; nothing but the second SYN brings the second answer.
    assert_eq!(bench.times(CLIENT, Kind::Syn), [0, 3_000]);
    assert_eq!(bench.times(SERVER, Kind::SynAck), [50, 3_050]);
    // One segment, the threshold at two: the second acknowledgement, the first of the window of two, adds half a
    // segment.
    assert_eq!(bench.flights(CLIENT), [(3_100, vec![1]), (3_200, vec![2, 3]), (3_300, vec![4])]);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 2_000.0);
    assert_eq!(bench.ends[SERVER].received(), 4_000);
}

#[test]
fn the_back_off_of_the_syn_lasts_until_a_sample() {
    let mut bench = transfer(1);
    bench.lose(CLIENT, Kind::Syn, &[1]).lose(CLIENT, Kind::Data, &[1]).run();
    // 3 s twice.
    assert_eq!(bench.flights(CLIENT), [(3_100, vec![1]), (9_100, vec![1])]);
    assert!(bench.ends.iter().all(tcp::Endpoint::is_done));
}

#[test]
fn an_answer_that_comes_twice_is_answered_by_nothing() {
    // The SYN is late by more than its timer; the second one overtakes nothing, and both are answered.
    let mut bench = transfer(4);
    bench.delay(CLIENT, Kind::Syn, &[1], Span::from_ms(3_020)).run();
    assert_eq!(bench.times(CLIENT, Kind::Syn), [0, 3_000]);
    assert_eq!(bench.times(SERVER, Kind::SynAck), [3_050, 3_070]);
    assert!(bench.packets(CLIENT, Kind::SynAck).next().is_none());
    assert_eq!(bench.ends[SERVER].received(), 4_000);
    assert!(bench.ends.iter().all(tcp::Endpoint::is_done));
}
