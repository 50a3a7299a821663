//! Pages of today in whole runs: on an idle link they take the round trips that their protocol says.

use crate::common::run;
use record::ExchangeRow;

/// Pages of objects that fit into one segment, over 100 ms of round trip and a link that takes next to no time.
fn pages(keys: &str) -> Vec<(f64, usize)> {
    let size = if keys.contains("\nsize") { "" } else { "size = '1000b'\n" };
    let ran = run(&format!(
        "duration = '100s'\nwarmup = '0s'\nlink.rate = '10gbit'\npath = {{ rtt = '100ms', access_rate = '10gbit' }}\n\
         [tcp]\nstack = 'linux'\n[[traffic]]\nkind = 'web'\nmodel = 'archive2024'\nusers = 1\ndirection = 'forward'\n\
         think = '5s'\ndocument = '1000b'\n{size}{keys}"
    ));
    by_page(&ran.rows.exchanges)
}

/// How long each page took, and its exchanges: 5 s of reading lie between two pages.
fn by_page(rows: &[ExchangeRow]) -> Vec<(f64, usize)> {
    let mut rows: Vec<_> = rows.iter().map(|row| (row.start.secs_f64(), row.response_time.secs_f64())).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Vec<(f64, f64, usize)> = Vec::new();
    for (start, took) in rows {
        match found.last_mut() {
            Some((_, end, count)) if start < *end + 1.0 => (*end, *count) = (end.max(start + took), *count + 1),
            _ => found.push((start, start + took, 1)),
        }
    }
    // The last may be cut off.
    found.pop();
    assert!(found.len() > 10, "{} pages", found.len());
    found.into_iter().map(|(start, end, count)| (end - start, count)).collect()
}

fn all_take(found: &[(f64, usize)], seconds: f64, exchanges: usize) {
    for &(took, count) in found {
        // Packets take microseconds.
        assert!((took - seconds).abs() < 0.001, "{took} s instead of {seconds}");
        assert_eq!(count, exchanges);
    }
}

#[test]
fn a_page_takes_a_round_trip_for_the_connection_the_greeting_and_each_wave() {
    // One connection: opened, greeted on, asked for the document and for two waves, of nine objects in all.
    all_take(&pages("servers = 1\nobjects = 10\nown_share = 1.0"), 0.5, 4);
    // A page of one object has no wave after it.
    all_take(&pages("servers = 1\nobjects = 1"), 0.3, 2);
    all_take(&pages("servers = 1\nobjects = 1\ntls = false"), 0.2, 1);
}

#[test]
fn other_servers_cost_the_opening_of_connections() {
    // Of 200 small objects in one wave some are at each of three servers. Two of these are greeted first: 300 ms.
    all_take(&pages("servers = 3\nobjects = 200\nsize = '50b'\nwaves = 1"), 0.6, 2 + 1 + 2 * 2);
}

#[test]
fn connections_of_http_1_have_an_object_each() {
    // Six objects after the document: one on its connection, five on new ones, each of which greets.
    let h1 = "servers = 1\nprotocol = 'h1'\nwaves = 1";
    all_take(&pages(&format!("{h1}\nobjects = 7")), 0.3 + 0.3, 2 + 1 + 5 * 2);
    // Seven: the first connection carries two while five others are opened and carry one each.
    all_take(&pages(&format!("{h1}\nobjects = 8\ntls = false")), 0.2 + 0.2, 1 + 7);
}

/// A server behind a slow link: the page takes what its bytes take.
#[test]
fn a_page_is_not_faster_than_the_link() {
    let ran = run(
        "duration = '600s'\nwarmup = '0s'\nlink.rate = '8mbit'\nlink.qdisc = { kind = 'pfifo', limit = '1000p' }\n\
         path = { rtt = '10ms', access_rate = '1gbit' }\n[tcp]\nstack = 'linux'\n[[traffic]]\nkind = 'web'\n\
         model = 'archive2024'\nusers = 1\ndirection = 'forward'\nthink = '5s'\ndocument = '20000b'\nsize = '20000b'\n\
         objects = 101\nservers = 4",
    );
    // 101 objects of 20,000 bytes and 7 greetings of 3,500, in segments of 1448 of 1500 bytes.
    let least = 101.0 * 20_000.0 * 8.0 / 8e6 * 1500.0 / 1448.0;
    for (took, _) in by_page(&ran.rows.exchanges) {
        assert!((least..1.25 * least).contains(&took), "{took} s, least {least}");
    }
}

/// A link of ATM carries full packets in 33 cells of 53 bytes where each has 40 bytes of PPPoE over LLC/SNAP.
#[test]
fn cells_take_their_share_of_a_link() {
    let goodput = |framing: &str| {
        let ran = run(&format!(
            "duration = '60s'\nwarmup = '20s'\nlink.rate = '4mbit'\nlink.overhead = '40b'\n{framing}\n\
             path.rtt = '20ms'\n[tcp]\nstack = 'linux'\n[[traffic]]\nkind = 'bulk'\n"
        ));
        ran.number("forward.throughput_bps")
    };
    for (framing, wire) in [("", 1540.0), ("link.framing = 'atm'", 33.0 * 53.0), ("link.framing = 'ptm'", 1565.0)] {
        let (found, expected) = (goodput(framing), 4e6 * 1500.0 / wire);
        assert!((found / expected - 1.0).abs() < 0.002, "{framing}: {found} instead of {expected}");
    }
}
