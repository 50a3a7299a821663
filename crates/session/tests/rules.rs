//! The rules, with a driver whose every exchange takes as long as it is told.

use base::{Span, Time};
use record::Demanded;
use scenario::{Resolved, resolve};
use session::{Command, Owner, Recorder, Sources};
use std::collections::BTreeMap;

const SECONDS: u64 = 20;

fn scenario(blocks: &str) -> Resolved {
    let text = format!("duration = \"{SECONDS}s\"\nwarmup = \"0s\"\n[record]\ndemands = true\n{blocks}");
    let read = |name: &str| match name {
        "v.cvec" => Ok("SEQ 0 1 1 1\nw 1000 1000\nr 100000\nl 0 0\n> 10\nt 0\n< 10\nt 0\n\
                        SEQ 500000 1 1 1\nw 1000 1000\nr 50000\nl 0 0\n> 20\nt 0\n< 30\nt 0\n"
            .to_owned()),
        "d.csv" => Ok("connection,time_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last\n\
                       0,0.5,forward,0.05,300,1000,0,0\n1,0.6,reverse,0.02,310,2000,0,1\n0,0.7,,,320,3000,0,1\n"
            .to_owned()),
        _ => Err(format!("{name}: there is no such file")),
    };
    resolve(&text, "rules.toml", &[], &read).expect("it makes sense")
}

/// What happens to an exchange in this test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Completes,
    /// Its connection is given up.
    Fails,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Due(u32),
    Over(u32, u32, bool),
}

/// What was commanded, when: whatever the driver calls its sources and connections.
fn commanded(resolved: &Resolved, side: Option<u8>, takes: Span, fate: impl Fn(usize) -> Fate) -> Vec<String> {
    let scenario = resolved.scenario().expect("it has no load to calibrate");
    let mut sources = Sources::new(scenario, side, u64::MAX);
    let mut agenda = BTreeMap::new();
    for (index, source) in sources.all().iter().enumerate() {
        agenda.insert((source.first, 0_usize, index), Event::Due(index as u32));
    }
    let (mut said, mut out, mut connections, mut sequence) = (Vec::new(), Vec::new(), 0_u64, 0);
    while let Some(((now, ..), event)) = agenda.pop_first() {
        if now > Time::ZERO + Span::from_secs(SECONDS) {
            break;
        }
        match event {
            Event::Due(source) => sources.due(source, now, now, &mut out),
            Event::Over(source, lane, true) => sources.completed(Owner { source, lane }, now, &mut out),
            Event::Over(source, lane, false) => sources.given_up(Owner { source, lane }, true, now, &mut out),
        }
        for command in out.drain(..) {
            sequence += 1;
            let ns = now.ns();
            match command {
                Command::Wake { source, at } => {
                    agenda.insert((at, sequence, 0), Event::Due(source));
                }
                Command::Open { opening, owner, ask, is_last, since } => {
                    connections += 1;
                    said.push(format!("{ns} open {opening:?} {ask:?} {is_last} {since:?}"));
                    if let Some(owner) = owner {
                        sources.keep(owner, connections, is_last);
                        let completes = fate(said.len()) == Fate::Completes;
                        let over = Event::Over(owner.source, owner.lane, completes);
                        agenda.insert((now + takes, sequence, 0), over);
                    }
                }
                Command::Ask { owner, ask, is_last, since } => {
                    assert_ne!(sources.connection(owner), u64::MAX, "whoever asks again has a connection");
                    said.push(format!("{ns} ask {ask:?} {is_last} {since:?} {}", sources.row(owner)));
                    agenda.insert((now + takes, sequence, 0), Event::Over(owner.source, owner.lane, true));
                }
                Command::Close { owner } => {
                    assert_ne!(sources.connection(owner), u64::MAX, "whoever closes has a connection");
                    said.push(format!("{ns} close {}", sources.row(owner)));
                }
                Command::Datagram { source, bytes } => {
                    let source = &sources.all()[source as usize];
                    said.push(format!("{ns} datagram {} {} {} {bytes}", source.block, source.number, source.client));
                }
                other @ (Command::Transfer { .. } | Command::Vector { .. }) => said.push(format!("{ns} {other:?}")),
            }
        }
    }
    said.sort();
    said
}

const EVERY_KIND: &str = r#"
[[traffic]]
kind = "web"
users = 12
direction = "both"
think_mean = "2s"
[[traffic]]
kind = "web"
model = "packmime"
arrivals = "5hz"
direction = "both"
[[traffic]]
kind = "web"
model = "feldmann-exp2"
users = 6
direction = "both"
[[traffic]]
kind = "poisson"
arrivals = "4hz"
request = "300b"
size = "2000b"
direction = "both"
[[traffic]]
kind = "poisson"
arrivals = "4hz"
size = "2000b"
direction = "both"
[[traffic]]
kind = "bulk"
flows = 3
direction = "both"
[[traffic]]
kind = "cbr"
rate = "100kbit"
direction = "both"
flows = 2
[[traffic]]
kind = "probe"
flows = 2
direction = "both"
[[traffic]]
kind = "tmix"
vectors = "v.cvec"
direction = "both"
"#;

/// The live hosts of each side have the sources of that side, the simulator those of both.
#[test]
fn the_hosts_of_both_sides_ask_together_what_one_driver_of_both_asks() {
    let resolved = scenario(EVERY_KIND);
    let takes = Span::from_ms(50);
    let whole = commanded(&resolved, None, takes, |_| Fate::Completes);
    let mut sides: Vec<String> =
        [0, 1].iter().flat_map(|&side| commanded(&resolved, Some(side), takes, |_| Fate::Completes)).collect();
    sides.sort();
    for what in ["open", "ask", "close", "datagram", "Transfer", "Vector"] {
        assert!(whole.iter().any(|line| line.contains(what)), "{what}: the scenario has all there is");
    }
    assert_eq!(whole, sides);
}

#[test]
fn whose_connections_fail_goes_on_all_the_same() {
    let resolved = scenario("[[traffic]]\nkind = \"web\"\nusers = 4\nthink_mean = \"1s\"\n");
    let all_fail = commanded(&resolved, None, Span::from_ms(20), |_| Fate::Fails);
    let late = all_fail.iter().filter(|line| {
        line.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).is_some_and(|ns| ns > 10_000_000_000)
    });
    assert!(late.count() > 0, "a user who got nothing thinks, and asks for the next page");
}

#[test]
fn a_recording_says_itself_what_is_asked_when() {
    let resolved = scenario("[[traffic]]\nkind = \"replay\"\ndemands = \"d.csv\"\n");
    let asked = |takes: Span| commanded(&resolved, None, takes, |_| Fate::Completes);
    let quick = asked(Span::from_ms(10));
    assert_eq!(quick.len(), 3, "{quick:?}");
    assert!(quick[0].starts_with("500000000 open") && quick[1].starts_with("600000000 open"), "{quick:?}");
    assert!(quick[2].starts_with("700000000 ask"), "on the connection that is there: {quick:?}");
    // An answer that is late keeps the next request waiting, which counts from its instant all the same.
    let slow = asked(Span::from_ms(300));
    assert!(slow[2].starts_with("800000000 ask") && slow[2].contains("0.7"), "{slow:?}");
}

#[test]
fn what_is_recorded_is_what_was_asked_for_but_for_recordings() {
    let resolved =
        scenario("[[traffic]]\nkind = \"web\"\nusers = 2\n[[traffic]]\nkind = \"replay\"\ndemands = \"d.csv\"\n");
    let mut recorder = Recorder::new(resolved.scenario().expect("it has no load to calibrate"));
    assert!(recorder.is_on());
    let ask = traffic::Exchange { request_bytes: 300, response_bytes: 9, top_level: true, server_delay: Span::ZERO };
    let now = Time::ZERO + Span::from_ms(7);
    recorder.asked((0, 5), &ask, false, Some((1, Span::from_ms(20))), now);
    recorder.asked((1, 6), &ask, false, None, now);
    recorder.closed((0, 5), now);
    let rows: Vec<_> = recorder.take().collect();
    assert_eq!(rows.iter().map(|row| (row.traffic, row.connection, row.at)).collect::<Vec<_>>(), [(0, 5, now); 2]);
    // A client on the right has its responses flow forward.
    let opened = Some((0, Span::from_ms(20)));
    let server_delay = Span::ZERO;
    assert_eq!(
        rows[0].demanded,
        Demanded::Exchange { opened, request_bytes: 300, response_bytes: 9, server_delay, is_last: false }
    );
    assert_eq!(rows[1].demanded, Demanded::Close);
    assert_eq!(recorder.take().count(), 0, "each once");
}
