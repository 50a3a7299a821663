//! Echoes until CWR arrives (RFC 3168 §6.1), when the packet that carries it meets the same fate as others.

use crate::common::{Bench, CLIENT, Kind, SERVER, plain, stack};
use crate::told::assert_told;
use base::Span;
use tcp::{Config, EcnMode, Flags};

/// Twenty-two segments, ten in the first window, of which the third is marked: the window is halved to six when twelve
/// are allowed, and 15 is the first segment after that.
fn marked() -> Bench {
    let config = Config { initial_window: 10, ecn: EcnMode::On, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 22_000).mark(CLIENT, Kind::Data, &[3]);
    bench
}

#[test]
fn the_echo_lasts_until_cwr_arrives() {
    assert_told(
        "RFC 3168 §6.1: one mark, one reduction",
        &mut marked(),
        "  0 client data 1 2 3^ 4..10
          50 server ack 1 2 3e 4e 5e 6e 7e 8e 9e 10e
         100 client data 11..14 15c 16      -- 10 + 2 at the echo of 3, halved to six; CWR on the first new segment
         150 server ack 11e 12e 13e 14e 15 16
         200 client data 17..22             -- echoes open nothing; 15 and 16 open a third of a segment
         250 server ack 17..22",
    );
}

#[test]
fn one_echo_is_enough() {
    let mut bench = marked();
    bench.lose(SERVER, Kind::Ack, &[3, 4, 5, 6, 7, 8, 9]);
    assert_told(
        "RFC 3168 §6.1.3: the echo is repeated because acknowledgements are lost",
        &mut bench,
        "  0 client data 1 2 3^ 4..10
          50 server ack 1 2 3e* 4e* 5e* 6e* 7e* 8e* 9e* 10e
         100 client data 11..14 15c 16
         150 server ack 11e 12e 13e 14e 15 16
         200 client data 17..22
         250 server ack 17..22",
    );
}

#[test]
fn a_lost_cwr_is_said_again_after_the_repair() {
    let mut bench = marked();
    bench.lose(CLIENT, Kind::Data, &[15]);
    assert_told(
        "RFC 3168 §6.1.2: CWR is lost",
        &mut bench,
        "  0 client data 1 2 3^ 4..10
          50 server ack 1 2 3e 4e 5e 6e 7e 8e 9e 10e
         100 client data 11..14 15c* 16
         150 server ack 11e 12e 13e 14e x2    -- 16 is out of order
         200 client data 17..20             -- all of the window that was reduced: no other reduction
         250 server ack 14e x4
         300 client again 15 data 21c 22      -- the third duplicate: 3 + 3, two more let 21 and 22 out
         350 server ack 20e 21 22",
    );
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.ecn_reductions, stats.recoveries), (1, 1));
    assert_eq!(bench.ends[CLIENT].ssthresh(), 3_000.0);
}

#[test]
fn a_mark_on_cwr_is_new_congestion() {
    let mut bench = marked();
    bench.mark(CLIENT, Kind::Data, &[15]);
    assert_told(
        "RFC 3168 §6.1.3: the packet with CWR is marked",
        &mut bench,
        "  0 client data 1 2 3^ 4..10
          50 server ack 1 2 3e 4e 5e 6e 7e 8e 9e 10e
         100 client data 11..14 15c^ 16
         150 server ack 11e 12e 13e 14e 15e 16e
         200 client data 17..20             -- the echo on 15 halves six to three, with five out
         250 server ack 17e 18e 19e 20e
         300 client data 21c 22
         350 server ack 21 22",
    );
    assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 2);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 3_000.0);
}

#[test]
fn a_repeated_syn_does_not_ask_for_ecn_again() {
    // RFC 3168 §6.1.1.1: a host that hears nothing of its SYN may send it without ECE and CWR; Linux does
    // (tcp_ecn_fallback).
    let config = Config { ecn: EcnMode::On, ..stack("linux") };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 100).lose(CLIENT, Kind::Syn, &[1]).run();
    let asks: Vec<bool> = bench.packets(CLIENT, Kind::Syn).map(|p| p.segment.flags.has(Flags::ECE)).collect();
    assert_eq!(asks, [true, false]);
    assert!(bench.packets(CLIENT, Kind::Data).all(|p| !p.segment.ecn.is_ect()));
}

#[test]
fn a_mark_on_what_was_here_already_is_not_echoed() {
    // tcp_data_queue of Linux: old data does not reach tcp_ecn_check_ce. The fifth is 60 ms late and comes before its
    // retransmission, which is marked.
    let config = Config { ecn: EcnMode::On, ect_on_retransmit: true, ..stack("linux") };
    for (name, echoes) in [("linux", 0), ("plain", 1)] {
        let plain = Config { repair: tcp::Repair::Rack, initial_window: 10, ..plain() };
        let config = match name {
            "linux" => config.clone(),
            _ => Config { ecn: EcnMode::On, ect_on_retransmit: true, dsack: true, ..plain },
        };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 10 * u64::from(config.mss)).delay(CLIENT, Kind::Data, &[5], Span::from_ms(60));
        bench.mark(CLIENT, Kind::Resent, &[1]).run();
        assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 1, "{name}");
        let told = bench.packets(SERVER, Kind::Ack).filter(|packet| packet.segment.flags.has(Flags::ECE)).count();
        assert_eq!(told, echoes, "{name}");
    }
}
