//! Connection vectors in whole runs.

use crate::common::{Ran, across, run_with};
use base::{Rate, Span, Stream};
use std::fmt::Write;

/// Runs `vectors` on an idle link of 1 Gb/s.
fn play(vectors: &str, block: &str) -> Ran {
    let text = format!(
        "duration = '200s'\nwarmup = '0s'\ntcp.stack = 'freebsd4'\nlink.rate = '1gbit'\nlink.qdisc = {{ kind = 'pfifo', limit = '100000p' }}\n\
         [[traffic]]\nkind = 'tmix'\nvectors = 'set.cvec'\n{block}\n"
    );
    run_with(&text, &|_| Ok(vectors.to_owned()))
}

/// Nanoseconds that packets of `sizes`, sent together, take one way of a 40 ms round trip.
fn crossing(sizes: &[u64]) -> u64 {
    *across(0, sizes, Rate::from_bps(1_000_000_000), 20_000_000).last().expect("there are packets")
}

#[test]
fn times_on_an_idle_link_are_sums() {
    let vectors = "SEQ 1500000 2 0 0\nw 65535 65535\nr 40000\nl 0 0\n\
                   > 300\nt 7000\n< 2000\nt 250000\n> 1000\nt 3000\n< 100\nt 1000\n";
    for direction in ["forward", "reverse", "both"] {
        let ran = play(vectors, &format!("direction = '{direction}'"));
        let [first, second] = ran.rows.exchanges.as_slice() else { panic!("{:?}", ran.rows.exchanges) };
        // SYN and SYN/ACK carry the option for the segment size.
        let handshake = crossing(&[44]) * 2;
        // The request leaves behind the acknowledgement that completes the handshake; the response is two packets.
        let expected = handshake + crossing(&[40, 340]) + 7_000_000 + crossing(&[1500, 580]);
        assert_eq!(ran.response_times_ns()[0], expected, "{direction}");
        assert_eq!(first.setup.ns(), handshake);
        // Asked 250 ms after: nothing else is on its way, the acknowledgement of two segments left long ago.
        let asked = 1_500_000_000 + expected + 250_000_000;
        assert_eq!(second.start.ns(), asked);
        assert_eq!(ran.response_times_ns()[1], crossing(&[1040]) + 3_000_000 + crossing(&[140]));
        assert_eq!((first.request_bytes, first.response_bytes), (300, 2000));
        assert_eq!((second.request_bytes, second.response_bytes, second.setup), (1000, 100, Span::ZERO));
        assert_eq!(first.direction, u8::from(direction == "reverse"));
        assert_eq!(ran.number("tcp.flows_completed"), 1.0);
    }
}

#[test]
fn a_concurrent_connection_is_one_exchange() {
    let vectors = "CONC 0 2 1 0 0\nw 65535 65535\nr 40000\nl 0 0\nc> 10\nt> 500000\nc> 20\nt> 1000\nc< 30\nt< 700000\n";
    let ran = play(vectors, "");
    let [row] = ran.rows.exchanges.as_slice() else { panic!("{:?}", ran.rows.exchanges) };
    // The last bytes are the initiator's second unit.
    assert_eq!(ran.response_times_ns()[0], crossing(&[44]) * 2 + 500_000_000 + crossing(&[60]));
    assert_eq!((row.request_bytes, row.response_bytes), (30, 30));
    assert_eq!(ran.number("tcp.flows_completed"), 1.0);
}

/// A set of `count` connections of every shape, in the first hundred seconds, with losses of `loss` each way; also how
/// many bytes their ends write and how many epochs have both parts.
fn any_set(count: u64, loss: [f64; 2]) -> (String, [u64; 2], usize) {
    let mut stream = Stream::named(3, "set");
    let (mut text, mut bytes, mut exchanges) = (String::new(), [0; 2], 0);
    for i in 0..count {
        let is_concurrent = stream.chance(0.2);
        let units: Vec<(usize, u64, u64)> = (0..1 + stream.below(8))
            .map(|_| (stream.below(2) as usize, 1 + stream.below(20_000), stream.below(1_000_000)))
            .collect();
        let of_end = |end: usize| units.iter().filter(|unit| unit.0 == end).count();
        let begins = |k: usize| units[k].0 == 0 || k == 0 || units[k - 1].0 == 1;
        let epochs = (0..units.len()).filter(|&k| begins(k)).count();
        let start = i * 100_000_000 / count;
        if is_concurrent {
            exchanges += 1;
            writeln!(text, "CONC {start} {} {} 0 {i}", of_end(0), of_end(1)).expect("to a string");
        } else {
            exchanges += (1..units.len()).filter(|&k| units[k - 1].0 == 0 && units[k].0 == 1).count();
            writeln!(text, "SEQ {start} {epochs} 0 {i}").expect("to a string");
        }
        writeln!(text, "w 8760 17520\nr {}\nl {} {}", 1000 + stream.below(100_000), loss[0], loss[1])
            .expect("to a string");
        for (end, size, wait) in units {
            bytes[end] += size;
            let arrow = [">", "<"][end];
            match is_concurrent {
                true => writeln!(text, "c{arrow} {size}\nt{arrow} {wait}"),
                false => writeln!(text, "{arrow} {size}\nt {wait}"),
            }
            .expect("to a string");
        }
    }
    (text, bytes, exchanges)
}

#[test]
fn everything_that_was_written_arrives() {
    for loss in [[0.0; 2], [0.05, 0.02]] {
        let (vectors, bytes, exchanges) = any_set(400, loss);
        let ran = play(&vectors, "direction = 'forward'");
        let arrived = |way: &str| (ran.number(&format!("tcp.{way}_goodput_bps")) * 200.0 / 8.0).round() as u64;
        assert_eq!([arrived("reverse"), arrived("forward")], bytes, "{loss:?}");
        assert_eq!(ran.number("tcp.flows_completed"), 400.0);
        assert_eq!(ran.rows.exchanges.len(), exchanges);
        assert_eq!(ran.number("forward.dropped_packets"), 0.0, "the link loses nothing itself");
        let lost = ran.number("tcp.lost_before_link_packets");
        // Initiators send in reverse. Five standard deviations of that many coin flips.
        let expected: f64 = ["reverse", "forward"]
            .iter()
            .zip(loss)
            .map(|(way, loss)| ran.number(&format!("{way}.offered_packets")) * loss / (1.0 - loss))
            .sum();
        assert!((lost - expected).abs() <= 5.0 * expected.sqrt(), "{lost} of {expected}");
    }
    let (vectors, ..) = any_set(50, [0.1, 0.1]);
    let without = play(&vectors, "loss = false");
    assert_eq!(without.number("tcp.retransmitted_segments"), 0.0);
    assert!(without.summary["tcp"]["lost_before_link_packets"].is_null());
}

#[test]
fn a_connection_has_the_windows_of_its_vector() {
    let vectors = |window: u64| {
        format!(
            "SEQ 0 1 0 0\nw {window} 65535\nr 100000\nl 0 0\n> 100\nt 0\n< 292000\nt 1000\n\
             SEQ 50000000 1 0 0\nw 65535 65535\nr 100000\nl 0 0\n> 100\nt 0\n< 292000\nt 1000\n"
        )
    };
    // 200 segments at four a round trip, after one for the connection and before that of slow start, which is two.
    let times = |window| play(&vectors(window), "").response_times_ns().iter().map(|&ns| ns as f64 * 1e-9).collect();
    let [four, wide]: [f64; 2] = Vec::<f64>::try_into(times(5840)).expect("two connections");
    assert!((5.1..5.4).contains(&four), "{four} s: fifty round trips of 0.1 s and what opens the window");
    // The other has 44 segments: two, half as many again every round trip, come to 200 with the tenth.
    assert!((1.1..1.3).contains(&wide), "{wide} s");
    // Less than a segment is a segment: one a round trip, some of them when the delayed acknowledgement comes.
    let [one, _]: [f64; 2] = Vec::<f64>::try_into(times(100)).expect("two connections");
    assert!((20.1..200.0 * 0.2 + 0.3).contains(&one), "{one} s: two hundred round trips");
}

/// The same connections in the other format, and again, are the same run.
#[test]
fn a_run_is_a_function_of_its_vectors() {
    let original = "SEQ 10 2 0 0\nw 9000 9000\nr 40000\nl 0.1 0.1\n> 300\nt 7\n< 9000\nt 250\n> 70\nt 9\n< 60\nt 8\n";
    let alternate =
        "S 10 2 0 0\nw 9000 9000\nr 40000\nl 0.1 0.1\nI 0 0 300\nA 0 7 9000\nI 0 250 70\nA 0 9 60\nA 8 0 0\n";
    let many = |text: &str| (0..50).map(|_| text).collect::<String>();
    let [one, other] = [original, alternate].map(|text| play(&many(text), "scale = 2.5").rows.exchanges);
    // Two exchanges of each of 100 connections and half of 50 more: five standard deviations.
    assert!((one.len() as f64 - 2.0 * 125.0).abs() <= 2.0 * 5.0 * (50.0_f64 * 0.25).sqrt(), "{}", one.len());
    assert_eq!(one, other);
}

/// Thinned and duplicated sets are deterministic in number, and the discipline changes nothing of what begins.
#[test]
fn scales_change_how_many_begin() {
    let (vectors, ..) = any_set(400, [0.0; 2]);
    let completed = |scale: f64| play(&vectors, &format!("scale = {scale}")).number("tcp.flows_completed");
    // Thinning 400: five standard deviations; copies are whole.
    assert!((completed(0.25) - 100.0).abs() <= 5.0 * (400.0_f64 * 0.25 * 0.75).sqrt());
    assert_eq!(completed(3.0), 1200.0);
}

/// An acceptor that speaks first and is never heard gives up, whether its greeting is lost or the initiator's part of
/// the handshake: nobody waits for ever for one who has.
#[test]
fn an_acceptor_that_speaks_first_gives_up() {
    for loss in ["0 0.9", "0.9 0"] {
        let vector = format!("SEQ 0 2 1 1\nw 65535 65535\nr 40000\nl {loss}\n< 80\nt 1000\n> 5\n");
        let text = "duration = '4000s'\nwarmup = '0s'\ntcp.stack = 'freebsd4'\n[[traffic]]\nkind = 'tmix'\nvectors = 'set.cvec'\n";
        let ran = run_with(text, &|_| Ok(vector.repeat(300)));
        let [completed, failed] = ["completed", "failed"].map(|what| ran.number(&format!("tcp.flows_{what}")));
        // The longest chain of retries is some twenty minutes.
        assert_eq!(completed + failed, 300.0, "{loss}: {completed} and {failed}");
        assert!(failed > 50.0 && completed > 0.0, "{loss}: {completed} and {failed}");
    }
}
