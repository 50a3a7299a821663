//! Windows of time come to the same as events taken one by one: in whole runs, to the last row.
//!
//! Where losses are written down, events are taken one by one (`Network::lookahead`); nothing else of a run depends on
//! whether they are.

use crate::common::{Kept, Ran, run_with};
use base::Stream;

/// Connection vectors of both kinds, ten a second.
fn vectors() -> String {
    let pair = |start: u64| {
        let after = start + 100_000;
        format!(
            "SEQ {start} 2 0 0\nw 65535 65535\nr 30000\nl 0.01 0.01\n> 300\nt 7000\n< 20000\nt 250000\n> 1000\nt 3000\n\
             < 100\nt 1000\nCONC {after} 2 1 0 0\nw 65535 65535\nr 40000\nl 0 0\nc> 10000\nt> 500000\nc> 20\nt> 1000\n\
             c< 30000\nt< 700000\n"
        )
    };
    (0..25).map(|k| pair(k * 200_000)).collect()
}

/// What is asked for: all kinds of sources.
const TRAFFIC: [&str; 9] = [
    "kind = 'bulk'\nflows = 12\ndirection = 'both'\n",
    "kind = 'bulk'\nflows = 200\nrtt = '20ms'\n",
    "kind = 'web'\nusers = 300\n",
    "kind = 'web'\nusers = 200\ndirection = 'both'\n[[traffic]]\nkind = 'probe'\n[[traffic]]\nkind = 'probe'\ndirection = 'reverse'\n",
    "kind = 'poisson'\narrivals = '60hz'\nsize = '20kb'\n[[traffic]]\nkind = 'cbr'\nrate = '1mbit'\npacket = '200b'\n",
    "kind = 'onoff'\nflows = 20\nrate = '1mbit'\npacket = '250b'\n[[traffic]]\nkind = 'bulk'\nflows = 3\n",
    "kind = 'tmix'\nvectors = 'set.cvec'\n[[traffic]]\nkind = 'bulk'\nflows = 2\n",
    "kind = 'web'\nmodel = 'packmime'\narrivals = '40hz'\n",
    "kind = 'rtp_video'\nflows = 3\nmax_rate = '2mbit'\nect = 'ect1'\ndirection = 'both'\n[[traffic]]\nkind = 'bulk'\nflows = 2\n",
];

const QDISCS: [&str; 9] = [
    "kind = 'pfifo', limit = '20p'",
    "kind = 'bfifo', limit = '30kb'",
    "kind = 'red', min = '5p', max = '15p', limit = '40p', ecn = true",
    "kind = 'pie', ecn = true",
    "kind = 'pi'",
    "kind = 'fq_codel'",
    "kind = 'cake'",
    "kind = 'cake', bandwidth = '1mbit'",
    "kind = 'choke'",
];

const PATHS: [&str; 6] = [
    "path.rtt = '0s'",
    "path.rtt = '300us'",
    "path.rtt = { uniform = ['2ms', '90ms'] }",
    "path.rtt = '50ms'\npath.access_rate = '2mbit'",
    "path.rtt = { exponential = '40ms' }",
    "path.rtt = '40ms'\npath.loss = 0.01",
];

const LINKS: [&str; 6] = [
    "",
    "delay = '3ms'\n",
    "device_queue = '8p'\n",
    "overhead = '38b'\nreverse_rate = '1mbit'\n",
    "schedule = [{ at = '1s', rate = '3mbit' }, { at = '2s', outage = '300ms' }]\nperiod = '4s'\n",
    "trace = 'link.trace'\n",
];

const STACKS: [&str; 4] = ["linux", "freebsd4", "ns2", "linux"];

fn run(text: &str, writes_drops: bool) -> Ran {
    let files = |name: &str| match name {
        "set.cvec" => Ok(vectors()),
        "link.trace" => Ok((0..500).map(|k| format!("{}\n", k * k / 100)).collect()),
        _ => Err(format!("{name}: there is none")),
    };
    run_with(&format!("record.drops = {writes_drops}\n{text}"), &files)
}

/// A link of this rate; one that follows a trace has its.
fn link(rate: &str, keys: &str) -> String {
    if keys.starts_with("trace") { keys.to_owned() } else { format!("rate = '{rate}'\n{keys}") }
}

#[test]
fn windows_come_to_the_same_as_events_one_by_one() {
    let mut stream = Stream::named(1, "windows");
    let mut pick = |of: &[&'static str]| of[stream.below(of.len() as u64) as usize];
    let mut dropped = 0;
    for case in 0..72 {
        let (traffic, qdisc, path) = (TRAFFIC[case % TRAFFIC.len()], pick(&QDISCS), pick(&PATHS));
        let text = format!(
            "seed = {case}\nduration = '6s'\nwarmup = '1s'\nrecord.interval = '500ms'\n{path}\ntcp.stack = '{}'\n\
             [link]\nqdisc = {{ {qdisc} }}\n{}[[traffic]]\n{traffic}",
            pick(&STACKS),
            link(pick(&["2mbit", "10mbit", "40mbit"]), pick(&LINKS)),
        );
        let (windows, one_by_one) = (run(&text, false), run(&text, true));
        assert_eq!(windows.summary, one_by_one.summary, "{text}");
        let rows = |ran: &Ran| {
            let Kept { exchanges, queue, probes, frames, .. } = &ran.rows;
            format!("{exchanges:?}\n{queue:?}\n{probes:?}\n{frames:?}")
        };
        assert!(rows(&windows) == rows(&one_by_one), "{text}");
        assert!(windows.rows.drops.is_empty());
        dropped += one_by_one.rows.drops.len();
    }
    assert!(dropped > 10_000, "losses are part of it: {dropped}");
}
