//! The deterministic disciplines against those of a Linux kernel, decision by decision: the same packets at the same
//! times, and a request for a packet whenever the kernel sent one. Every packet must have the same fate, and leave in
//! the same place of the order. What was recorded, and how, is in `benches/peers/linux` and docs/validation.md.

#![expect(clippy::print_stdout, reason = "the table is for people to read")]

use crate::kernel::{self, Fate, Record, Replay};
use aqm::Cause;
use std::fmt::Write;

/// How many events before the first difference its story tells.
const TOLD: usize = 12;

#[test]
fn pfifo() {
    agree("pfifo-");
}

#[test]
fn bfifo() {
    agree("bfifo-");
}

#[test]
fn codel() {
    agree("codel-");
}

#[test]
fn fq_codel() {
    agree("fq_codel-");
}

#[test]
fn sfq() {
    agree("sfq-");
}

#[test]
fn drr() {
    agree("drr-");
}

/// Where nothing is drawn: turns, the step, the limit.
#[test]
fn dualpi2() {
    agree("dualpi2-sure-");
}

/// Of Linux 7.3: some cases again.
#[test]
fn fq_codel_of_7_3() {
    agree("7.3/fq_codel-");
}

/// Replays all records of a discipline, prints the table and tells the story of each first difference.
fn agree(beginning: &str) {
    let records = kernel::records(beginning);
    assert!(!records.is_empty(), "testdata/linux has no {beginning}*");
    let mut stories = String::new();
    println!("{:28} | packets | departures | lost: kernel, ours | marked: kernel, ours | the same fate", "case");
    for record in &records {
        let replay = record.replay(1);
        let fates = record.fates();
        let same = fates.iter().zip(&replay.fates).filter(|(theirs, ours)| theirs == ours).count();
        let count = |fates: &[Fate], fate| fates.iter().filter(|each| **each == fate).count();
        assert!(count(&fates, Fate::Lost) > 0, "{}: nothing was lost, so nothing is shown", record.case);
        println!(
            "{:28} | {:7} | {:10} | {:7}, {:9} | {:7}, {:11} | {same}",
            record.case,
            fates.len(),
            record.exits.len(),
            count(&fates, Fate::Lost),
            count(&replay.fates, Fate::Lost),
            count(&fates, Fate::Marked),
            count(&replay.fates, Fate::Marked),
        );
        if let Some(story) = difference(record, &replay) {
            writeln!(stories, "{story}").expect("a text can be written");
        }
    }
    assert!(stories.is_empty(), "{stories}");
}

/// The first difference, told with what came before it.
fn difference(record: &Record, replay: &Replay) -> Option<String> {
    let head = format!("{}: tc {}\n", record.case, record.text["tc"]);
    for (at, exit) in record.exits.iter().enumerate() {
        let ours = replay.taken[at];
        let arrived = &record.arrivals[exit.number];
        let is_marked = arrived.ecn != exit.ecn;
        let is_same = ours == Some(exit.number) && (replay.fates[exit.number] == Fate::Marked) == is_marked;
        if is_same {
            continue;
        }
        let mut story = head;
        for exit in &record.exits[at.saturating_sub(TOLD)..=at] {
            let arrival = &record.arrivals[exit.number];
            let (lost, marked) = (replay.fates[exit.number] == Fate::Lost, exit.ecn != arrival.ecn);
            writeln!(
                story,
                "  {:.9} s: the kernel sends #{}{} of flow {}, {} bytes, waited {} ns; {} arrived{}",
                exit.at.ns() as f64 * 1e-9,
                exit.number,
                if marked { " marked" } else { "" },
                arrival.flow,
                arrival.size,
                exit.at.ns() - arrival.at.ns(),
                exit.after,
                if lost { "; ours loses it" } else { "" },
            )
            .expect("a text can be written");
        }
        let fate = |number: usize| format!("#{number} {:?} {:?}", replay.fates[number], replay.losses[number]);
        writeln!(story, "  ours takes {:?}; the kernel's is {}", ours.map(fate), fate(exit.number))
            .expect("a text can be written");
        return Some(story);
    }
    if let Some(number) =
        record.refused.iter().find(|&&number| replay.losses[number].map(|loss| loss.1) != Some(number + 1))
    {
        let ours = &replay.losses[*number];
        return Some(format!("{head}  the kernel refuses #{number} when it arrives; ours: {ours:?}"));
    }
    let tail = replay.losses.iter().flatten().filter(|loss| loss.0 == Cause::TAIL).count() as u64;
    if let Some(counted) = record.counted("drop_overlimit").filter(|counted| *counted != tail) {
        return Some(format!("{head}  the kernel loses {counted} at the limit, ours {tail}"));
    }
    (replay.held > 0).then(|| format!("{head}  ours holds {} packets in the end", replay.held))
}
