//! Recordings: what is asked for on an uncongested link, asked again on others.

use crate::common::{Ran, run_with};
use record::table::Tables;
use record::{Demanded, ExchangeRow};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Web users and PackMime's connections: persistent connections and single ones, closed by either side, servers that
/// take time, both directions.
const RECORDED: &str = r#"
    duration = "60s"
    tcp.stack = "freebsd4"
    warmup = "0s"
    record.demands = true
    link = { rate = "100mbit", qdisc = { kind = "pfifo", limit = "100000p" } }
    [[traffic]]
    kind = "web"
    users = 150
    [[traffic]]
    kind = "web"
    model = "packmime"
    arrivals = "20hz"
    persistent = 0.5
"#;

fn replayed(link: &str) -> String {
    format!(
        "warmup = '0s'\ntcp.stack = 'freebsd4'\nlink = {link}\n\
         [[traffic]]\nkind = 'replay'\ndemands = 'demands-0.csv'\n\
         [[traffic]]\nkind = 'replay'\ndemands = 'demands-1.csv'\n"
    )
}

/// Records into a folder of this name; the answer is the folder and what happened.
fn recorded(name: &str) -> (PathBuf, Ran) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let ran = run_with(RECORDED, &|_| Err("no files here".to_owned()));
    let mut tables =
        Tables::create(&folder, ["link"].into_iter(), false, false).expect("it can be written").with_demands(&folder);
    ran.rows.demands.iter().for_each(|row| record::Sink::demand(&mut tables, row));
    tables.finish().expect("it can be written");
    (folder, ran)
}

fn replay(folder: &Path, link: &str) -> Ran {
    run_with(&replayed(link), &|name| fs::read_to_string(folder.join(name)).map_err(|error| error.to_string()))
}

/// Of each exchange: block, instant asked, sizes, direction; and how long it took. In nanoseconds.
fn exchanges(rows: &[ExchangeRow]) -> BTreeMap<(u16, u64, u32, u64, u8), u64> {
    let key = |r: &ExchangeRow| (r.traffic, r.start.ns(), r.request_bytes, r.response_bytes, r.direction);
    let found: BTreeMap<_, _> = rows.iter().map(|row| (key(row), row.response_time.ns())).collect();
    assert_eq!(found.len(), rows.len(), "no two exchanges are alike");
    found
}

/// On the link on which it was recorded a replay is the same run, to the nanosecond.
#[test]
fn a_replay_on_the_same_link_is_the_same_run() {
    let (folder, original) = recorded("replay-same");
    let again =
        replay(&folder, "{ rate = '100mbit', qdisc = { kind = 'pfifo', limit = '100000p' } }\nduration = '60s'");
    let (before, after) = (exchanges(&original.rows.exchanges), exchanges(&again.rows.exchanges));
    assert!(before.len() > 1_500, "{} exchanges", before.len());
    assert_eq!(before, after);
    for side in 0..2 {
        let [one, other] = [&original, &again].map(|ran| {
            let counts = ran.outcome.meters[side].window();
            (counts.offered, counts.delivered_bytes)
        });
        assert_eq!(one, other, "the same packets");
    }
}

/// Congested links and disciplines change when answers come, and neither what is asked for nor when: given time, all of
/// it is answered, by each of them.
#[test]
fn disciplines_meet_the_same_demands() {
    let (folder, original) = recorded("replay-disciplines");
    let asked = original.rows.demands.iter().filter_map(|row| match row.demanded {
        Demanded::Exchange { request_bytes, response_bytes, .. } => {
            Some((row.traffic, row.at.ns(), request_bytes, response_bytes))
        }
        Demanded::Close => None,
    });
    let mut asked: Vec<_> = asked.collect();
    asked.sort_unstable();
    let mut times = Vec::new();
    for qdisc in ["{ kind = 'pfifo', limit = '20p' }", "{ kind = 'pi', qref = '5p' }", "{ kind = 'codel' }"] {
        let ran = replay(&folder, &format!("{{ rate = '1mbit', qdisc = {qdisc} }}\nduration = '1000s'"));
        let found = exchanges(&ran.rows.exchanges);
        let met: Vec<_> =
            found.keys().map(|&(block, at, request, response, _)| (block, at, request, response)).collect();
        assert_eq!(met, asked, "{qdisc}");
        let lost: u64 = ran.outcome.meters.iter().map(|meter| meter.window().dropped_total()).sum();
        assert!(lost > 500, "{qdisc}: {lost} packets lost on a congested link");
        times.push(found);
    }
    assert!(times.windows(2).all(|pair| pair[0] != pair[1]), "the disciplines made a difference");
}

/// Recording changes nothing.
#[test]
fn recording_changes_nothing() {
    let (_, original) = recorded("replay-nothing");
    let without = RECORDED.replace("record.demands = true", "");
    let unrecorded = run_with(&without, &|_| Err("no files here".to_owned()));
    assert_eq!(unrecorded.rows.exchanges, original.rows.exchanges);
    assert_eq!(unrecorded.outcome.events, original.outcome.events);
    assert!(unrecorded.rows.demands.is_empty());
}
