//! The AccECN option, and peers and paths that change what is negotiated: each packet, in bytes, with its ECN field,
//! its flags and the counters of its option, against those of Linux 7.3.

use crate::pair::Pair;
use crate::path;
use crate::record::{Word, records};
use std::collections::BTreeMap;
use std::env;

/// Transfers in which packets of the same data differ, or acknowledgements of the same, how many, and why.
const EXPLAINED: &[(&str, usize, &str)] = &[
    (
        "reno-2-10m-40ms: all of the client marked, 10",
        2,
        "a host of Linux that has closed counts no marks any more, and so none on an acknowledgement that comes then",
    ),
    ("reno-1-10m-40ms: acknowledgements 3 to 7, mark 11 to 40, 100", 5, BEACONS),
    ("reno-1-10m-40ms: lose 40 to 42, mark 50 and 60, 100", 4, BEACONS),
    ("reno-1-10m-40ms: mark 30 to 40, 100", 7, BEACONS),
    ("reno-1-10m-40ms: mark all of 11 to 90, 100", 1, BEACONS),
    ("reno-1-10m-40ms: mark every other of 20 to 60, 100", 1, BEACONS),
];
const BEACONS: &str = "with `tcp_ecn_option = 1` options go with time: where 7.3 acknowledges other segments at once \
                       than 6.12, which the profile is like, they are on other packets, and these have other sizes";

/// Transfers that take another time, and why.
const OTHER_TIMES: &[(&str, &str)] = &[
    ("reno-1-10m-40ms: mark all of 11 to 90, 100", BEACONS),
    ("reno-1-10m-40ms: acknowledgements 3 to 7, mark 11 to 40, 100", BEACONS),
    ("reno-1-10m-40ms: SYN/ACK lost twice, 30", ZERO),
    ("reno-2-10m-40ms: SYN/ACK lost twice, 30", ZERO),
    ("reno-3-10m-40ms: SYN/ACK lost twice, 30", ZERO),
];
const ZERO: &str = "a client that was answered without ECN at last says zero where others count, which Linux takes for \
                    three marks; ours believes no such feedback, as RFC 9768 demands (note 1 of Table 4)";

#[test]
fn packets_are_linuxs_with_their_options() {
    let told = env::var("TRANSFER").unwrap_or_default();
    let (mut transfers, mut alike, mut served, mut other_times) = (0, 0, 0, vec![]);
    let (mut packets, mut options, mut common, mut same) = (0, 0, 0, 0);
    let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in &records("options") {
        let config = path::stack(record).expect("its controller is there");
        for transfer in &record.transfers {
            let pair = Pair { record, transfer, ours: path::replay(record, transfer, &config) };
            if told == pair.name() {
                println!("{}", pair.story());
            }
            transfers += 1;
            assert!(transfer.group != "acknowledgements lost" || pair.ends_alike(), "{}", pair.story());
            let sides = [(&transfer.server, &pair.ours.server), (&transfer.client, &pair.ours.client)];
            let mut is_alike = true;
            for (theirs, ours) in sides {
                let theirs = theirs.as_ref().expect("every packet was kept");
                is_alike &= theirs.iter().map(|word| &word.what).eq(ours.iter().map(|word| &word.what));
                packets += theirs.len();
                options += theirs.iter().filter(|word| word.what.contains('@')).count();
                let (theirs, ours) = (by_number(theirs), by_number(ours));
                for (number, tails) in &theirs {
                    let Some(own) = ours.get(number).filter(|own| own.len() == tails.len()) else { continue };
                    for (theirs, ours) in tails.iter().zip(own) {
                        common += 1;
                        same += usize::from(theirs == ours);
                        if theirs != ours {
                            others.entry(pair.name()).or_default().push(format!("{number}: {theirs} and {ours}"));
                        }
                    }
                }
            }
            alike += usize::from(is_alike);
            other_times.extend((!pair.is_close()).then(|| pair.name()));
            served += usize::from(pair.has_same_order());
            if told == "differences" && (!is_alike || !pair.is_close()) {
                println!("{}{}", pair.name(), if pair.has_same_order() { "" } else { ", other data" });
                pair.difference().iter().for_each(|difference| println!("{difference}"));
            }
        }
    }
    for (name, count, reason) in EXPLAINED {
        println!("{name}: {count}: {reason}.");
        let found = others.remove(*name).unwrap_or_default();
        assert_eq!(found.len(), *count, "{name}: {}", found.join("; "));
    }
    assert!(others.is_empty(), "{others:#?}");
    for (name, reason) in OTHER_TIMES {
        println!("{name} takes another time: {reason}.");
    }
    assert_eq!(other_times, OTHER_TIMES.iter().map(|one| one.0).collect::<Vec<_>>());
    // What docs/validation.md says of them.
    assert_eq!((alike, served, transfers), (89, 170, 178));
    assert_eq!((packets, options, common, same), (15_917, 12_955, 15_366, 15_346));
}

/// What packets say, in order, by what they are: data, or what they acknowledge and report.
fn by_number(words: &[Word]) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in words {
        // A SYN, the request and an acknowledgement of the server begin with a letter.
        let from = usize::from(word.what.starts_with(['S', 'R', 'A']));
        let flags = word.what[from..].find(|c: char| "FEWAxmd=".contains(c));
        let end = flags.map_or(word.what.len(), |at| from + at);
        let (number, tail) = word.what.split_at(end);
        all.entry(number).or_default().push(tail);
    }
    all
}
