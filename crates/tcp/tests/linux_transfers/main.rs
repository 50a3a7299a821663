//! Single transfers of the stack `linux` against those of a Linux kernel: the same path, the same applications, the
//! same packets lost, marked, late or out of order. What was recorded, and how, is in `benches/peers/linux`
//! (`transfers_kernel.py`) and docs/validation.md.
//!
//! `TRANSFER="cubic-10m-40ms: segment 3, 10" cargo test -p aqmlab-tcp --test linux_transfers -- --nocapture` tells one
//! transfer packet by packet, the kernel's beside ours; `TRANSFER=differences` lists all that differ in anything.

#![expect(clippy::print_stdout, reason = "the table is for people to read")]

mod option;
mod pair;
mod path;
mod pauses;
mod record;
mod rules;

use pair::{Pair, is_close};
use record::{Record, records};
use std::collections::BTreeMap;
use std::env;
use tcp::EcnMode;

/// Transfers whose completion times may differ, and why.
const EXCUSED: &[(&str, &str)] = &[
    (
        "bbr-10m-100ms: last two, 1000",
        "the probe for the tail waits for about 504 ms, from which on the slots of the timer wheel are of 64 ms and not \
         of 8: a round-trip time that differs by some milliseconds makes it 96 ms later",
    ),
    ("cubic-accecn-100m-20ms: mark 3, lose 7, 100", NEWER),
    ("cubic-accecn-10m-40ms: mark 10, 100", NEWER),
    ("cubic-accecn-10m-40ms: mark all of 11 to 90, 100", NEWER_AND_SLOW),
    ("reno-accecn-10m-40ms: mark all of 11 to 90, 100", NEWER_AND_SLOW),
];
/// Of transfers of a later release than the profile's.
const NEWER: &str = "Linux 7.3 acknowledges fewer segments at once while the receiver's window grows than 6.12, which the \
                     profile is like; with the ECN of RFC 3168 this transfer takes the same other time in 7.3";
const NEWER_AND_SLOW: &str = "Linux 7.3 begins to acknowledge every second segment earlier than 6.12, which the profile \
                              is like, and from then on a window of two segments is acknowledged at once; with the ECN \
                              of RFC 3168 this does not show";
/// The sizes that are columns of the table, in segments.
const SIZES: [u64; 5] = [1, 3, 10, 100, 1000];

#[test]
fn transfers_take_as_long_as_linuxs() {
    let records = records("transfers");
    assert!(!records.is_empty(), "testdata/linux/transfers is empty");
    let told = env::var("TRANSFER").unwrap_or_default();
    println!("Linux {}; accurate ECN is of {}\n", kernel(&records, false), kernel(&records, true));
    println!("| path | what happens | 1 | 3 | 10 | 100 | 1000 | as long | same packets | at the same time | window |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let (mut wrong, mut used) = (vec![], vec![false; EXCUSED.len()]);
    let (mut all, mut close, mut ordered, mut timed) = (0, 0, 0, 0);
    for record in &records {
        let Some(config) = path::stack(record) else { continue };
        let replay = |transfer| Pair { record, transfer, ours: path::replay(record, transfer, &config) };
        let pairs: Vec<Pair<'_>> = record.transfers.iter().map(replay).collect();
        let mut groups: BTreeMap<(usize, &str), BTreeMap<u64, Vec<&Pair<'_>>>> = BTreeMap::new();
        for pair in &pairs {
            all += 1;
            close += usize::from(pair.is_close());
            ordered += usize::from(pair.has_same_order());
            timed += usize::from(pair.has_same_times());
            // In the order in which they were recorded.
            let (group, _) = pair.transfer.group.rsplit_once(", ").expect("a group says how large its transfers are");
            let first = pairs
                .iter()
                .position(|other| {
                    other.transfer.group.starts_with(group) && other.transfer.group[group.len()..].starts_with(", ")
                })
                .expect("it is there");
            groups.entry((first, group)).or_default().entry(pair.transfer.segments).or_default().push(pair);
            if told == pair.name() {
                println!("{}", pair.story());
            } else if told == "differences" {
                pair.difference().iter().for_each(|difference| println!("{difference}"));
            }
        }
        for ((_, group), sizes) in &groups {
            println!("{}", row(&record.name, group, sizes));
            for (size, pairs) in sizes {
                let judged: Vec<&Pair<'_>> = pairs.iter().copied().filter(|pair| !is_excused(pair)).collect();
                let (theirs, ours) = medians(&judged);
                if !is_close(theirs, ours) {
                    wrong.push(format!("{}: {group}, {size}: {theirs} and {ours} us in the median", record.name));
                }
            }
        }
        for pair in pairs.iter().filter(|pair| !pair.is_close() && !pair.transfer.group.starts_with("1 %")) {
            match EXCUSED.iter().position(|excuse| pair.name() == excuse.0) {
                Some(excuse) => used[excuse] = true,
                None => wrong.push(pair.difference().expect("it is not close")),
            }
        }
    }
    println!("| all | | | | | | | {close} of {all} | {ordered} of {all} | {timed} of {all} | |");
    for (name, reason) in EXCUSED {
        println!("\nExcused: {name}: {reason}.");
    }
    let idle: Vec<&str> = EXCUSED.iter().zip(&used).filter(|(_, used)| !**used).map(|(excuse, _)| excuse.0).collect();
    assert!(idle.is_empty(), "excused, but as long as Linux's: {idle:?}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The release that did those of accurate ECN, or the others.
fn kernel(records: &[Record], is_accurate: bool) -> &str {
    let of = records.iter().find(|record| (record.ecn == EcnMode::Accurate) == is_accurate);
    &of.expect("there are some of each").kernel
}

/// Whether a transfer may take another time.
fn is_excused(pair: &Pair<'_>) -> bool {
    EXCUSED.iter().any(|excuse| pair.name() == excuse.0)
}

/// Whatever else differs, the server sends the same segments in the same order with the same flags, and the same
/// acknowledgement of the client has the same count of marks. Some are there of one side alone: that release
/// acknowledges fewer segments at once.
#[test]
fn accurate_ecn_says_what_linuxs_does() {
    let (mut seen, mut told) = (0, [0; 2]);
    for record in records("transfers").iter().filter(|record| record.ecn == EcnMode::Accurate) {
        let config = path::stack(record).expect("its controller is there");
        for transfer in &record.transfers {
            let pair = Pair { record, transfer, ours: path::replay(record, transfer, &config) };
            assert!(pair.has_same_order(), "{}", pair.story());
            assert!(!transfer.group.contains("acknowledgements lost") || pair.ends_alike(), "{}", pair.story());
            let (same, others) = pair.counts();
            // A third SYN/ACK is not ECN-capable, and has no ECN flag. RFC 9768 §3.1.5 has its acknowledgement say how
            // the latest of them came; the kernel's says it of the first.
            let is_third_synack = record.cc == "dctcp" && transfer.name.starts_with("SYN/ACK");
            assert!(others.is_empty() || is_third_synack && others.len() == 1, "{others:?}\n{}", pair.story());
            (told[0], told[1]) = (told[0] + same, told[1] + pair.transfer.client.as_ref().map_or(0, Vec::len));
            seen += 1;
        }
    }
    // What docs/validation.md says of them: of so many packets of clients, how many have an equal in ours.
    assert_eq!((seen, told), (258, [9_612, 9_670]));
}

/// A line of the table.
fn row(record: &str, group: &str, sizes: &BTreeMap<u64, Vec<&Pair<'_>>>) -> String {
    let cell = |size| {
        sizes.get(size).map_or(String::new(), |pairs| {
            let (theirs, ours) = medians(pairs);
            format!("{:.1} ms, {:+.1} %", theirs / 1e3, (ours / theirs - 1.0) * 100.0)
        })
    };
    let cells: Vec<String> = SIZES.iter().map(cell).collect();
    let all: Vec<&Pair<'_>> = sizes.values().flatten().copied().collect();
    let share =
        |test: fn(&Pair<'_>) -> bool| format!("{} of {}", all.iter().filter(|pair| test(pair)).count(), all.len());
    let windows: Vec<f64> = all.iter().filter_map(|pair| pair.window_difference()).collect();
    let window = if windows.is_empty() { String::new() } else { format!("{:.1} %", median(windows) * 100.0) };
    format!(
        "| {record} | {group} | {} | {} | {} | {} | {window} |",
        cells.join(" | "),
        share(|pair| pair.is_close()),
        share(|pair| pair.has_same_order()),
        share(|pair| pair.has_same_times()),
    )
}

/// The medians of completion times, the kernel's first. A transfer that was never complete counts as endless.
fn medians(pairs: &[&Pair<'_>]) -> (f64, f64) {
    let of = |completed: fn(&Pair<'_>) -> Option<f64>| {
        median(pairs.iter().map(|pair| completed(pair).unwrap_or(f64::INFINITY)).collect())
    };
    (of(|pair| pair.transfer.completed_us), of(|pair| pair.ours.completed_us))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}
