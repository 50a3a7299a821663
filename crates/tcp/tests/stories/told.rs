//! Stories as text: a line for what an end sends at an instant, beside what the specification lets it send.
//!
//! ```text
//!   0 client  data 1 2* 3..6
//!  53 server  ack 1 1               -- out of order: at once
//! 104 client  again 2               -- the third duplicate
//! ```
//! Segments are counted from 1, acknowledgements say how many the sender has in order; `x4` is four times the same.
//! A packet that is lost has a `*`, a marked one a `^`, a late one a `~`; `e` is ECN-Echo, `c` CWR, `+fin` a FIN that
//! rides along or is acknowledged. What follows ` -- ` is the reason.

use crate::common::{Bench, CLIENT, Fate, Kind, Packet};
use std::fmt::Write;
use tcp::Flags;

/// Runs `bench` to the end of the story and compares; prints both, side by side, where they differ.
pub fn assert_told(title: &str, bench: &mut Bench, expected: &str) {
    bench.run();
    let lines: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let expected: Vec<(String, &str)> = lines
        .into_iter()
        .map(|line| line.split_once(" -- ").unwrap_or((line, "")))
        .map(|(line, reason)| (line.split_whitespace().collect::<Vec<_>>().join(" "), reason))
        .collect();
    let seen = lines_of(bench);
    if expected.iter().map(|(line, _)| line).eq(&seen) {
        return;
    }
    let mut table = String::new();
    for row in 0..expected.len().max(seen.len()) {
        let (wanted, reason) = expected.get(row).map_or(("", ""), |(line, reason)| (line, reason));
        let got = seen.get(row).map_or("", String::as_str);
        let sign = if wanted == got { ' ' } else { '!' };
        let _ = writeln!(table, "{sign} {wanted:<58} {got:<58} {reason}");
    }
    panic!("{title}\n  {:<58} {:<58} why\n{table}", "expected", "seen");
}

/// What both ends sent.
fn lines_of(bench: &Bench) -> Vec<String> {
    let mut lines = vec![];
    let same = |a: &Packet, b: &Packet| (a.at, a.from) == (b.at, b.from);
    for packets in bench.story.chunk_by(same) {
        let mut line = format!(
            "{} {}",
            packets[0].at.ns() as f64 / 1e6,
            if packets[0].from == CLIENT { "client" } else { "server" }
        );
        for packets in packets.chunk_by(|a, b| a.kind == b.kind) {
            let _ = write!(line, " {}", word(packets[0].kind));
            let marks: Vec<String> = packets.iter().map(|packet| what(bench, packet)).collect();
            line += &shortened(&marks);
        }
        lines.push(line);
    }
    lines
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Syn => "SYN",
        Kind::SynAck => "SYN/ACK",
        Kind::Data => "data",
        Kind::Fin => "FIN",
        Kind::Resent => "again",
        Kind::Ack => "ack",
    }
}

/// Which segment, or how many are acknowledged, and what is special about it.
fn what(bench: &Bench, packet: &Packet) -> String {
    let (segment, fin) = (&packet.segment, packet.segment.flags.has(Flags::FIN));
    let mut text = match packet.kind {
        Kind::Syn | Kind::SynAck | Kind::Fin => String::new(),
        Kind::Data | Kind::Resent => {
            let mss = u64::from(bench.configs[packet.from].mss);
            if segment.payload == 0 { "FIN".into() } else { ((segment.seq - 1) / mss + 1).to_string() }
        }
        Kind::Ack => {
            let peer = 1 - packet.from;
            let mss = u64::from(bench.configs[peer].mss);
            let their_fin = bench.story.iter().find(|other| other.from == peer && other.segment.flags.has(Flags::FIN));
            let has_fin = their_fin.is_some_and(|other| other.segment.end() == segment.ack);
            let bytes = segment.ack - 1 - u64::from(has_fin);
            let count = if bytes % mss == 0 { (bytes / mss).to_string() } else { format!("{bytes}b") };
            format!("{count}{}", if has_fin { "+fin" } else { "" })
        }
    };
    if fin && segment.payload > 0 {
        text += "+fin";
    }
    let flags = segment.flags;
    // In the packets of the handshake both are part of the negotiation.
    for (flag, letter) in [(Flags::ECE, "e"), (Flags::CWR, "c")] {
        text += if flags.has(flag) { letter } else { "" };
    }
    text += match packet.fate {
        Fate::Pass => "",
        Fate::Lose => "*",
        Fate::Mark => "^",
        Fate::Late(_) => "~",
        Fate::Field(_) | Fate::Bits(_) | Fate::NoOption | Fate::ZeroedOption => "!",
    };
    text
}

/// Runs of three and more as `3..7`, repetitions as `2 x4`.
fn shortened(marks: &[String]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < marks.len() {
        let mark = &marks[at];
        let equal = marks[at..].iter().take_while(|other| *other == mark).count();
        let number = mark.parse::<u64>().ok();
        let rising = number.map_or(1, |first| {
            marks[at..].iter().zip(first..).take_while(|(other, wanted)| **other == wanted.to_string()).count()
        });
        if rising >= 3 {
            let last = &marks[at + rising - 1];
            let _ = write!(text, " {mark}..{last}");
            at += rising;
        } else if equal >= 2 {
            let _ = write!(text, " {mark} x{equal}");
            at += equal;
        } else {
            let _ = write!(text, "{}{mark}", if mark.is_empty() { "" } else { " " });
            at += 1;
        }
    }
    text
}

#[test]
fn a_story_that_differs_is_shown_side_by_side() {
    let told = std::panic::catch_unwind(|| {
        let mut bench = Bench::new(&crate::common::plain());
        bench.write(CLIENT, 2_000);
        assert_told("two segments", &mut bench, "0 client data 1 2\n60 server ack 1 2 -- no: it takes 50\n");
    });
    let message = told.expect_err("the story is another");
    let message = message.downcast_ref::<String>().expect("it is text");
    let lines: Vec<String> =
        message.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "two segments",
            "expected seen why",
            "0 client data 1 2 0 client data 1 2",
            "! 60 server ack 1 2 50 server ack 1 2 no: it takes 50",
        ]
    );
}
