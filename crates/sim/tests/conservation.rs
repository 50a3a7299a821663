//! What goes in comes out: packets are conserved interval by interval, no interval carries more than the link can, and
//! the tables agree with each other and with the summary.

use record::{DropRow, ExchangeRow, Meter, QueueRow, Sink};

const RATE_BPS: u64 = 10_000_000;
const INTERVAL_S: f64 = 0.1;
/// The largest packet of the scenario: a full segment.
const LARGEST_BYTES: u64 = 1500;

fn scenario(qdisc: &str) -> String {
    format!(
        r#"
        duration = "20s"
        warmup = "0s"
        [link]
        rate = "{RATE_BPS}bit"
        qdisc = {qdisc}
        [record]
        drops = true
        interval = "{INTERVAL_S}s"
        [tcp]
        stack = "freebsd4"
        ecn = "on"
        [[traffic]]
        kind = "web"
        users = 2400
        [[traffic]]
        kind = "cbr"
        flows = 2
        rate = "1mbit"
        "#
    )
}

/// Everything there is.
#[derive(Default)]
struct Tables {
    exchanges: u64,
    queue: Vec<QueueRow>,
    drops: Vec<DropRow>,
}

impl Sink for Tables {
    fn exchange(&mut self, row: &ExchangeRow) {
        assert!(row.setup <= row.response_time, "{row:?}");
        self.exchanges += 1;
    }
    fn queue(&mut self, row: &QueueRow) {
        self.queue.push(*row);
    }
    fn drop(&mut self, row: &DropRow) {
        self.drops.push(*row);
    }
}

#[test]
fn packets_are_conserved() {
    for qdisc in [
        "{ kind = 'pfifo', limit = '40p' }",
        "{ kind = 'bfifo', limit = '30000b' }",
        "{ kind = 'red', ecn = true }",
        "{ kind = 'ared', ecn = true }",
        "{ kind = 'pi', qref = '10p', ecn = true }",
        "{ kind = 'rem', target = '10p', ecn = true }",
    ] {
        let none = |_: &str| Err("no files here".to_owned());
        let resolved = scenario::resolve(&scenario(qdisc), "conservation.toml", &[], &none).expect("a sound scenario");
        let mut tables = Tables::default();
        let run = resolved.scenario().expect("nothing to calibrate");
        let outcome = sim::run(run, &mut tables, &mut |_| true).expect("not broken off");

        for direction in 0..2 {
            check_direction(qdisc, direction, &tables, &outcome.meters[direction as usize]);
        }
        assert_eq!(tables.exchanges, outcome.responses.count(), "{qdisc}");
        assert!(
            tables.exchanges > 500 && tables.drops.len() > 100,
            "{qdisc}: {} exchanges, {} drops",
            tables.exchanges,
            tables.drops.len()
        );
    }
}

fn check_direction(qdisc: &str, direction: u8, tables: &Tables, meter: &Meter) {
    let window = meter.window();
    let what = format!("{qdisc}, direction {direction}");
    let (mut offered, mut delivered, mut dropped, mut marked) = (0_u64, 0_u64, 0_u64, 0_u64);
    for row in tables.queue.iter().filter(|row| row.direction == direction) {
        offered += u64::from(row.offered_packets);
        delivered += u64::from(row.delivered_packets);
        dropped += u64::from(row.dropped_packets);
        marked += u64::from(row.marked_packets);
        let sending = offered - delivered - dropped - u64::from(row.queue_packets);
        assert!(sending <= 1, "{what}: {sending} packets in transmission at {:?}", row.time);
        assert!(sending == 1 || row.queue_packets == 0, "{what}: packets wait for an idle link at {:?}", row.time);
        // A packet may have begun before the interval and end within it.
        let most = (RATE_BPS as f64 * INTERVAL_S / 8.0) as u64 + LARGEST_BYTES;
        assert!(row.delivered_bytes <= most, "{what}: {} bytes in the interval to {:?}", row.delivered_bytes, row.time);
    }
    assert_eq!((offered, delivered), (window.offered, window.delivered), "{what}");
    assert_eq!((dropped, marked), (window.dropped_total(), window.marked_total()), "{what}");
    let rows = |is_mark| tables.drops.iter().filter(|row| row.direction == direction && row.is_mark == is_mark).count();
    assert_eq!((dropped, marked), (rows(false) as u64, rows(true) as u64), "{what}");
}
