//! Transfers one way: nobody asks, nobody answers.

use crate::common::run;

/// A transfer of two segments is a SYN, its answer, two segments and two acknowledgements, and takes a round trip and a
/// half: nothing else is on the link, and nothing stays open.
#[test]
fn a_transfer_is_what_is_sent_and_its_acknowledgements() {
    let ran = run(r#"
        duration = "100s"
        warmup = "0s"
        link = { rate = "100mbit", qdisc = { kind = "pfifo", limit = "1000p" } }
        path = { rtt = "100ms", access_rate = "1gbit" }
        tcp = { stack = "ns2", handshake = true, one_way = true }
        [[traffic]]
        kind = "poisson"
        arrivals = "20hz"
        size = "2920b"
        request = "0b"
        direction = "forward"
    "#);
    let rows = &ran.rows.exchanges;
    assert!(rows.len() > 1_500, "{} transfers", rows.len());
    // 40, 40 and 3000 bytes on 100 Mb/s, and on access links of 1 Gb/s twice; two transfers that meet wait for a packet
    // or a few.
    let least = 0.150 + 3_080.0 * 8.0 / 100e6;
    for row in rows {
        assert!((least..least + 0.002).contains(&row.response_time.secs_f64()), "{}", row.response_time.secs_f64());
        assert_eq!((row.direction, row.request_bytes, row.response_bytes), (0, 0, 2920));
    }
    let [forward, reverse] = [0, 1].map(|direction| {
        let of = |row: &&record::QueueRow| row.direction == direction;
        ran.rows.queue.iter().filter(of).map(|row| u64::from(row.offered_packets)).sum::<u64>()
    });
    // But for those under way at the end.
    let complete = 3 * rows.len() as u64;
    assert!((complete..complete + 30).contains(&forward), "{forward} for {}", rows.len());
    assert!(forward - reverse <= 30 && reverse <= forward, "{reverse} for {forward}");
}
