//! Rules that transfers seldom meet (`benches/peers/linux/transfers_cases_rules.py`): the same data in the same order,
//! the same echoes, and the same windows and thresholds.

use crate::pair::Pair;
use crate::path;
use crate::record::records;
use std::env;

/// How far windows may be apart, of the kernel's mean.
const ALIKE: f64 = 0.03;
/// Where they are farther apart: after a timeout that was taken back, what was sent again before still counts as being
/// in the network in Linux, so that the next timeout leaves two segments and not one (see `undoing.rs`).
const WITH_ONE_MORE: &str = "lost 3 times behind 700 ms";

#[test]
fn seldom_rules_are_as_linuxs() {
    let told = env::var("TRANSFER").unwrap_or_default();
    let (mut seen, mut wrong) = (0, vec![]);
    for record in &records("rules") {
        let config = path::stack(record).expect("its controller is there");
        for transfer in &record.transfers {
            let pair = Pair { record, transfer, ours: path::replay(record, transfer, &config) };
            if told == pair.name() {
                println!("{}", pair.story());
            }
            seen += 1;
            let apart = pair.window_difference().expect("windows are kept");
            let is_alike = apart < ALIKE || pair.name().ends_with(WITH_ONE_MORE);
            let (theirs, ours) = (transfer.threshold, pair.ours.threshold);
            let echoes = pair.echoes();
            if !pair.has_same_order() || !is_alike || theirs != ours || echoes.0 != echoes.1 {
                let apart = apart * 100.0;
                let what = format!("windows {apart:.1} % apart, thresholds {theirs:?} and {ours:?}, echoes {echoes:?}");
                wrong.push(format!("{}: {what}", pair.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {seen} differ:\n{}", wrong.len(), wrong.join("\n"));
}
