//! Several links, links that change, and delays behind links: against what follows from rates and times alone. Every
//! run asserts that packets are conserved on each link.

use crate::common::run;
use base::Span;

/// Packets of 1000 bytes, IP, every so often.
fn cbr(rate: &str, more: &str) -> String {
    format!("[[traffic]]\nkind = 'cbr'\nrate = '{rate}'\npacket = '1000b'\nstart = '0s'\nrtt = '0s'\n{more}\n")
}

const RUN: &str = "duration = '60s'\nwarmup = '10s'\nrecord.interval = '1s'\n";

#[test]
fn a_second_link_that_is_no_slower_lets_nobody_wait() {
    // Constant packets that come out of a link one after the other find the next one free.
    let poisson =
        "[[traffic]]\nkind = 'udp-poisson'\narrivals = '1000hz'\npacket = '1000b'\nroute = ['first', 'second']\n";
    let text = format!("{RUN}[links.first]\nrate = '10mbit'\n[links.second]\nrate = '10mbit'\n{poisson}");
    let summary = run(&text).summary;
    let wait = |link: &str| summary["links"][link]["forward"]["queue_delay_mean_s"].as_f64().expect("packets left");
    // M/D/1 at load 0.8: the wait is rho/(2 (1 - rho)) = 2 services of 0.8 ms; over 50,000 packets, whose waits hang
    // together for some 1/(1 - rho)² services, its standard error is some 4 %.
    assert!((wait("first") / 1.6e-3 - 1.0).abs() < 0.16, "{}", wait("first"));
    assert!(wait("second") < 1e-6, "rounding alone: {}", wait("second"));
    assert!(summary["links"]["second"]["forward"]["dropped_packets"] == 0);
}

#[test]
fn each_link_loses_what_is_beyond_its_rate() {
    let links = "[links.wide]\nrate = '8mbit'\n[links.narrow]\nrate = '4mbit'\nreverse_rate = '16mbit'\n";
    let both = cbr("10mbit", "route = ['wide', 'narrow']");
    let summary = run(&format!("{RUN}{links}{both}")).summary;
    let of = |link: &str, key: &str| summary["links"][link]["forward"][key].as_f64().expect("a number");
    assert!((of("wide", "loss_ratio") - 0.2).abs() < 1e-3 && (of("narrow", "loss_ratio") - 0.5).abs() < 1e-3);
    assert!((of("wide", "utilisation") - 1.0).abs() < 1e-3 && (of("narrow", "utilisation") - 1.0).abs() < 1e-3);
    // Of what was sent, counted once: 0.4 have come through.
    let udp = &summary["udp"];
    assert!((udp["loss_ratio"].as_f64().expect("a number") - 0.6).abs() < 2e-3, "{udp}");
    // What they waited for each link, by their route.
    let routes = &summary["routes"]["0"]["forward"];
    for (place, link) in ["wide", "narrow"].into_iter().enumerate() {
        assert_eq!(routes[place]["link"], link);
        let waited = routes[place]["queue_delay_mean_s"].as_f64().expect("a number");
        assert!((waited / of(link, "queue_delay_mean_s") - 1.0).abs() < 1e-9, "{link}");
    }
    assert_eq!(summary["forward"], summary["links"]["wide"]["forward"], "the first link's");
}

#[test]
fn who_crosses_one_link_meets_the_others_there_alone() {
    let links = "[links.left]\nrate = '10mbit'\n[links.right]\nrate = '10mbit'\n";
    let through = cbr("4mbit", "route = ['left', 'right']");
    let (left, right) = (cbr("5mbit", "route = ['left']"), cbr("3mbit", "route = ['right']"));
    let summary = run(&format!("{RUN}{links}{through}{left}{right}")).summary;
    let busy = |link: &str| summary["links"][link]["forward"]["utilisation"].as_f64().expect("a number");
    assert!((busy("left") - 0.9).abs() < 2e-3 && (busy("right") - 0.7).abs() < 2e-3, "{summary}");
    for block in ["0", "1", "2"] {
        let links = summary["routes"][block]["forward"].as_array().expect("it sent");
        assert_eq!(links.len(), if block == "0" { 2 } else { 1 });
    }
}

#[test]
fn delays_add_up_wherever_they_lie() {
    // Access link (1 Gb/s) 8 us, 10 ms, link 800 us, 3 ms, link 400 us, 4 ms, access link 8 us.
    let links = "[links.a]\nrate = '10mbit'\ndelay = '3ms'\n[links.b]\nrate = '20mbit'\ndelay = '4ms'\n";
    for lies in ["senders", "left", "right"] {
        for direction in ["forward", "reverse"] {
            let probe = format!(
                "[[traffic]]\nkind = 'probe'\ninterval = '20ms'\npacket = '1000b'\nrtt = '20ms'\nrtt_at = '{lies}'\n\
                 direction = '{direction}'\nroute = ['a', 'b']\n"
            );
            let ran = run(&format!("duration = '2s'\nwarmup = '0s'\n{links}{probe}"));
            assert!(ran.rows.probes.len() > 90);
            let expected = (8.0 + 10_000.0 + 800.0 + 3_000.0 + 400.0 + 4_000.0 + 8.0) * 1e-6;
            for delay in ran.rows.probes.iter().filter_map(|row| row.delay.map(Span::secs_f64)) {
                assert!((delay - expected).abs() < 1e-8, "{lies} {direction}: {delay}");
            }
        }
    }
}

/// Below the rate a queue is empty; above it grows by what is beyond, and goes as fast as there is rate to spare.
#[test]
fn a_queue_grows_by_what_is_beyond_a_rate_that_falls() {
    let link = "[link]\nrate = '10mbit'\nqdisc = { kind = 'pfifo', limit = '100000p' }\n\
        schedule = [{ at = '20s', rate = '6mbit' }, { at = '30s', rate = '10mbit' }]\n";
    let text = format!("{RUN}{link}{}", cbr("8mbit", ""));
    let ran = run(&text);
    let packets = |second: usize| {
        let row = ran.rows.queue.iter().filter(|row| row.direction == 0).nth(second - 1).expect("a row a second");
        f64::from(row.queue_packets)
    };
    for second in 1..=60 {
        // 250 packets a second come beyond 6 Mb/s, and as many leave beyond 8 Mb/s.
        let expected: f64 = match second {
            ..=20 => 0.0,
            21..=30 => 250.0 * (second as f64 - 20.0),
            31..=40 => 250.0 * (40.0 - second as f64),
            _ => 0.0,
        };
        assert!((packets(second) - expected).abs() <= 2.0, "{second} s: {}, not {expected}", packets(second));
    }
    // 10 s at 6 Mb/s and 40 at 10 in the window of 50; all that came in the window has left within it.
    let utilisation = ran.summary["forward"]["utilisation"].as_f64().expect("a number");
    assert!((utilisation - 8.0 * 50.0 / (6.0 * 10.0 + 10.0 * 40.0)).abs() < 1e-3, "{utilisation}");
}

#[test]
fn nothing_leaves_during_an_outage_and_all_of_it_afterwards() {
    for device in ["", "device_queue = '4p'\n"] {
        let link = format!(
            "[link]\nrate = '10mbit'\nqdisc = {{ kind = 'pfifo', limit = '10000p' }}\n{device}period = '10s'\n\
             schedule = [{{ at = '5s', outage = '500ms' }}]\n"
        );
        let text = format!("{RUN}record.interval = '100ms'\n{link}{}", cbr("5mbit", ""))
            .replace("record.interval = '1s'\n", "");
        let ran = run(&text);
        let rows: Vec<_> = ran.rows.queue.iter().filter(|row| row.direction == 0).collect();
        for round in 0..6 {
            // At 5.0 s begins an outage of five rows; one packet may be in transmission.
            let at = round * 100 + 50;
            let left: u32 = rows[at..at + 5].iter().map(|row| row.delivered_packets).sum();
            assert!(left <= 1, "{device}{round}: {left}");
            // 500 ms at 625 packets a second wait then, and are gone after as long again.
            let waiting = f64::from(rows[at + 4].queue_packets);
            assert!((waiting - 312.5).abs() <= 6.0, "{device}{round}: {waiting}");
            assert!(rows[at + 10].queue_packets <= 2, "{device}{round}");
        }
        assert_eq!(ran.summary["forward"]["dropped_packets"], 0);
    }
}

#[test]
fn a_delay_that_changes_is_that_of_the_packets_behind_it() {
    let link = "[link]\nrate = '100mbit'\ndelay = '20ms'\nschedule = [{ at = '5s', delay = '50ms' }]\n";
    let probe = "[[traffic]]\nkind = 'probe'\ninterval = '10ms'\npacket = '100b'\nrtt = '0s'\n";
    let ran = run(&format!("duration = '10s'\nwarmup = '0s'\n{link}{probe}"));
    for row in &ran.rows.probes {
        let Some(delay) = row.delay.map(Span::secs_f64) else { continue };
        let expected = if row.sent.secs_f64() < 5.0 { 0.020 } else { 0.050 };
        assert!((delay - expected).abs() < 2e-5, "{}: {delay}", row.sent.secs_f64());
    }
    assert!(ran.rows.probes.len() > 900);
}

/// A law that computes with the rate keeps its target in time only if it is told the rate.
#[test]
fn a_law_goes_by_the_rate_that_it_is_told() {
    let wait = |told: &str| {
        let text = format!(
            "duration = '60s'\nwarmup = '30s'\n[link]\nrate = '50mbit'\n\
             qdisc = {{ kind = 'pi', qref = '10ms', limit = '2000p' }}\nschedule = [{{ at = '10s', rate = '10mbit' }}]\n\
             told_rate = '{told}'\n[[traffic]]\nkind = 'bulk'\nflows = 10\nrtt = '40ms'\n"
        );
        run(&text).summary["forward"]["queue_delay_mean_s"].as_f64().expect("packets left")
    };
    // The reference of 10 ms is 62500 bytes at 50 Mb/s, which take 50 ms at 10 Mb/s.
    let (present, nominal) = (wait("present"), wait("nominal"));
    assert!((0.006..0.020).contains(&present), "{present}");
    assert!((0.035..0.065).contains(&nominal), "{nominal}");
}

/// A law that is told nothing of the rate goes by its capacity. Where that is the nominal rate, all is as if it had
/// been told that one. A link whose rate is another keeps the queue that the law takes for its reference.
#[test]
fn a_law_that_is_told_nothing_goes_by_its_capacity() {
    for kind in ["red", "ared", "pi", "rem", "docsis_pie", "dualpi2", "cobalt", "fq", "rio", "afd", "redopt", "fq_red"]
    {
        let [nominal, capacity, nothing] = [
            (String::new(), "told_rate = 'nominal'\n"),
            (", capacity = '20mbit'".to_owned(), "told_rate = 'present'\n"),
            (", capacity = '20mbit'".to_owned(), "told_rate = 'nothing'\n"),
        ]
        .map(|(capacity, told)| {
            let reference = if ["pi", "afd"].contains(&kind) { ", qref = '10ms'" } else { "" };
            let text = format!(
                "duration = '6s'\nwarmup = '1s'\n[link]\nrate = '20mbit'\n\
                 qdisc = {{ kind = '{kind}'{reference}{capacity} }}\nschedule = [{{ at = '3s', rate = '5mbit' }}]\n\
                 {told}[[traffic]]\nkind = 'bulk'\nflows = 10\nrtt = '40ms'\n"
            );
            run(&text).summary["links"].clone()
        });
        assert!(nominal["link"]["forward"]["packets"] != 0, "{kind}: {nominal}");
        assert_eq!(nominal, nothing, "{kind}");
        assert_eq!(nominal, capacity, "{kind}");
    }
}

/// TCP over three links in a row, some of it over one: what is lost anywhere comes again, and nobody starves.
#[test]
fn long_flows_cross_a_parking_lot() {
    let link = |name: &str| {
        format!("[links.{name}]\nrate = '10mbit'\ndelay = '5ms'\nqdisc = {{ kind = 'pfifo', limit = '60p' }}\n")
    };
    let block = |route: &str| format!("[[traffic]]\nkind = 'bulk'\nflows = 4\nrtt = '20ms'\nroute = [{route}]\n");
    let blocks = ["'a', 'b', 'c'", "'a'", "'b'", "'c'"].map(block).concat();
    let text = format!("{RUN}{}{}{}{blocks}", link("a"), link("b"), link("c"));
    let ran = run(&text);
    for name in ["a", "b", "c"] {
        let busy = ran.summary["links"][name]["forward"]["utilisation"].as_f64().expect("a number");
        assert!(busy > 0.97, "{name}: {busy}");
    }
    let bytes = &ran.outcome.tcp.bulk_bytes;
    let [long, short]: [u64; 2] = [bytes[..4].iter().sum(), bytes[4..8].iter().sum()];
    assert!(long > 0 && long < short, "who crosses three links has a longer way and more losses: {long}, {short}");
}
