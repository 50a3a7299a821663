//! Transfers at random instants and finite bulk transfers, against what a hand finds.

use crate::common::run;

/// A link that is shared equally serves Poisson arrivals as an M/G/1 queue with processor sharing: a transfer of x
/// bytes takes x/(C (1 - rho)) in the mean, whatever the distribution of sizes (Kleinrock 1976, vol. II §4.4). Under
/// DRR, with round trips short against transfers, TCP comes to that.
#[test]
fn random_transfers_take_as_long_as_under_processor_sharing() {
    let ran = run(r#"
        duration = "10000s"
        warmup = "100s"
        record.interval = "10s"
        link = { rate = "10mbit", reverse_rate = "100mbit", qdisc = { kind = "drr", limit = "100000p" } }
        path.rtt = "1ms"
        tcp = { stack = "linux", window = "64kb" }
        [[traffic]]
        kind = "poisson"
        arrivals = "2.5hz"
        size = { pareto = { mean = "240000b", shape = 2.5 } }
    "#);
    // Of 1,500 bytes on the link 1,448 are data; sizes below one segment do not occur.
    let rate = 10e6 / 8.0 * 1448.0 / 1500.0;
    let load = 2.5 * 240_000.0 / rate;
    let rows = &ran.rows.exchanges;
    // Slowdowns against an idle link, of transfers in twenty parts of the run: their spread tells the standard error.
    let slowdown = |row: &record::ExchangeRow| row.response_time.secs_f64() / (row.response_bytes as f64 / rate);
    let parts: Vec<f64> = rows
        .chunks(rows.len() / 20)
        .take(20)
        .map(|part| part.iter().map(slowdown).sum::<f64>() / part.len() as f64)
        .collect();
    let mean = parts.iter().sum::<f64>() / 20.0;
    let error = (parts.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 19.0 / 20.0).sqrt();
    let expected = 1.0 / (1.0 - load);
    // Handshake and request take two round trips more: 2 ms against x bytes at the rate, in the mean over 1/x, which is
    // shape/(shape + 1) over the smallest size of a Pareto.
    let overhead = 0.002 * rate * (2.5 / 3.5) / (240_000.0 * 1.5 / 2.5);
    assert!(error < 0.015 * expected, "the run tells the mean to a few per cent: {error}");
    assert!((mean - expected).abs() < 4.0 * error + overhead, "{mean} against {expected}, standard error {error}");
}

/// Transfers over a queue of eight packets that their first windows overflow, and what they take in Linux 6.12: whole,
/// short and lost last segments, one of them with the FIN behind it lost too. What differs by microseconds is time
/// that its hosts take.
#[test]
fn transfers_that_lose_their_tail_take_as_long_as_linuxs() {
    const LINUX: [(f64, u64, f64); 12] = [
        (50.9, 14_480, 241.7),
        (50.9, 15_000, 243.1),
        (50.9, 16_328, 194.6),
        (50.9, 17_374, 194.6),
        (50.9, 17_375, 194.6),
        (50.9, 61_000, 286.1),
        (220.0, 14_480, 1002.6),
        (220.0, 17_000, 786.6),
        (20.0, 14_480, 110.5),
        (20.0, 16_328, 94.4),
        (17.0, 14_756, 100.8),
        (60.0, 10_915, 120.6),
    ];
    for (rtt, size, linux) in LINUX {
        let ran = run(&format!(
            r#"
            duration = "10s"
            warmup = "0s"
            link = {{ rate = "3mbit", reverse_rate = "100mbit", qdisc = {{ kind = "pfifo", limit = "8p" }} }}
            path = {{ access_rate = "1gbit", rtt = "{rtt}ms" }}
            tcp.stack = "linux"
            [[traffic]]
            kind = "bulk"
            size = "{size}b"
            start = "1s"
            "#
        ));
        let ours = ran.rows.exchanges[0].response_time.secs_f64() * 1e3;
        assert!((ours / linux - 1.0).abs() < 0.001, "{size} bytes over {rtt} ms: {ours}, Linux {linux}");
    }
}

/// Sizes of finite transfers are drawn for each flow, from the stated distribution, with a file's as with any.
#[test]
fn each_transfer_has_its_own_size() {
    let ran = run(r#"
        duration = "100s"
        warmup = "0s"
        link = { rate = "100mbit", qdisc = { kind = "pfifo", limit = "10000p" } }
        [[traffic]]
        kind = "bulk"
        flows = 2000
        size = { table = [["10kb", 0.0], ["20kb", 0.5], ["20kb", 1.0]] }
    "#);
    let sizes: Vec<u64> = ran.rows.exchanges.iter().map(|row| row.response_bytes).collect();
    assert_eq!(sizes.len(), 2000, "all are complete");
    // Half of them are uniform from 10 to 20 kb, the others 20 kb: four standard errors.
    let large = sizes.iter().filter(|&&size| size == 20 * 1024).count() as f64;
    assert!((large - 1000.0).abs() < 4.0 * 500_f64.sqrt(), "{large}");
    let small: Vec<f64> = sizes.iter().filter(|&&size| size < 20 * 1024).map(|&size| size as f64 / 1024.0).collect();
    let mean = small.iter().sum::<f64>() / small.len() as f64;
    assert!((mean - 15.0).abs() < 4.0 * 10.0 / (12.0 * small.len() as f64).sqrt(), "{mean} kb");
    assert!(small.iter().all(|&size| size >= 10.0));
}

/// A flow that is held to a rate has that and no more, as IP packets, whatever its stack's window would carry; and what
/// it sends comes one by one, so that on a faster link nothing waits. Of 60 s an acknowledgement that is late takes a
/// packet's time at most once, and the start a round trip or two: one per cent.
#[test]
fn a_flow_that_is_held_to_a_rate_has_it_and_leaves_no_queue() {
    for stack in ["freebsd4\"\nwindow = \"1mb", "linux", "linux\"\ncc = \"bbr"] {
        let ran = run(&format!(
            r#"
            duration = "70s"
            warmup = "10s"
            [link]
            rate = "100mbit"
            qdisc = {{ kind = "pfifo", limit = "100000p" }}
            [path]
            rtt = "50ms"
            [tcp]
            stack = "{stack}"
            [[traffic]]
            kind = "bulk"
            start = "0s"
            max_pacing_rate = "5mbit"
            pacing_burst = 1
        "#
        ));
        let rate = ran.number("forward.throughput_bps");
        // BBR itself sends at 99 % of what it has found, and looks for less at times.
        let least = if stack.contains("bbr") { 0.9 } else { 0.99 };
        assert!((least * 5e6..1.01 * 5e6).contains(&rate), "{stack}: {rate}");
        // Sent in pairs at least, as Linux does: the second of a pair waits for the first.
        let longest = ran.rows.queue.iter().map(|row| row.queue_packets).max();
        assert!(longest <= Some(2), "{stack}: {longest:?} packets wait");
    }
}

/// Nobody could complete an exchange, which is not the same as that nobody did.
#[test]
fn exchanges_that_nobody_can_complete_are_none() {
    let completed = |blocks: &str| {
        let ran = run(&format!("duration = '2s'\nwarmup = '1s'\nlink.rate = '10mbit'\npath.rtt = '10ms'\n{blocks}"));
        ran.summary["exchanges"]["completed"].as_u64()
    };
    let (endless, udp) = ("[[traffic]]\nkind = 'bulk'\n", "[[traffic]]\nkind = 'cbr'\nrate = '1mbit'\n");
    for blocks in [endless, udp, &format!("{endless}{udp}")] {
        assert_eq!(completed(blocks), None, "{blocks}");
    }
    let late = "[[traffic]]\nkind = 'bulk'\nsize = '1kb'\nstart = '1999ms'\n";
    assert_eq!(completed(late), Some(0), "it has not arrived yet");
    assert_eq!(completed(&format!("{endless}{}", late.replace("1999ms", "1s"))), Some(1));
    let arrivals = "[[traffic]]\nkind = 'poisson'\narrivals = '100hz'\nsize = '1kb'\nrequest = '0b'\n";
    assert!(completed(arrivals).is_some_and(|completed| completed > 50));
}
