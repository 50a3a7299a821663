//! A transfer as the kernel did it and as aqmlab does it: how far they agree.

use crate::path::Replay;
use crate::record::{Record, Transfer, Word};
use std::collections::BTreeMap;

/// A completion time agrees within this share of the kernel's, or within [`CLOSE_US`].
const CLOSE: f64 = 0.03;
const CLOSE_US: f64 = 1000.0;
/// Packets are sent at the same time when no more than this lies between: a tick of the kernel's timers, and as much
/// again for a timer that is set on the other side of one.
const SAME_US: f64 = 2000.0;
/// Last windows agree within this share of the kernel's. Of 1000 segments one window a round trip is kept, which may
/// have gone on coming down.
const END: f64 = 0.2;

/// A transfer, done by both.
pub struct Pair<'a> {
    pub record: &'a Record,
    pub transfer: &'a Transfer,
    pub ours: Replay,
}

impl Pair<'_> {
    /// Its name among all.
    pub fn name(&self) -> String {
        format!("{}: {}", self.record.name, self.transfer.name)
    }

    /// Whether it took as long.
    pub fn is_close(&self) -> bool {
        match (self.transfer.completed_us, self.ours.completed_us) {
            (Some(theirs), Some(ours)) => is_close(theirs, ours),
            (theirs, ours) => theirs.is_none() && ours.is_none(),
        }
    }

    /// Whether the same data was sent in the same order, as far as it was kept: all of it, or what was sent again.
    pub fn has_same_order(&self) -> bool {
        let (theirs, ours) = self.packets();
        theirs.len() == ours.len() && theirs.iter().zip(&ours).all(|(theirs, ours)| theirs.what == ours.what)
    }

    /// Whether it was sent at the same times, too.
    pub fn has_same_times(&self) -> bool {
        let (theirs, ours) = self.packets();
        self.has_same_order()
            && theirs.iter().zip(&ours).all(|(theirs, ours)| (theirs.at_us - ours.at_us).abs() <= SAME_US)
    }

    /// The data that the server sent, and its FIN; without pure acknowledgements.
    fn packets(&self) -> (Vec<&Word>, Vec<&Word>) {
        let (theirs, ours) = match (&self.transfer.server, &self.transfer.again) {
            (Some(theirs), _) => (theirs, &self.ours.server),
            (None, Some(theirs)) => (theirs, &self.ours.again),
            (None, None) => panic!("{}: no packets were kept", self.transfer.name),
        };
        (data(theirs), data(ours))
    }

    /// The packets of the client that both have, as many times each, by what they acknowledge and report: how many have
    /// the same flags, and which have not.
    pub fn counts(&self) -> (usize, Vec<String>) {
        let Some(theirs) = &self.transfer.client else { return (0, vec![]) };
        let (theirs, ours) = (by_number(theirs), by_number(&self.ours.client));
        let (mut same, mut others) = (0, vec![]);
        for (number, flags) in theirs {
            match ours.get(number) {
                Some(own) if own.len() == flags.len() && *own == flags => same += own.len(),
                Some(own) if own.len() == flags.len() => others.push(format!("{number}: {flags:?} and {own:?}")),
                _ => {}
            }
        }
        (same, others)
    }

    /// How many packets of the client echo a mark, the kernel's first.
    pub fn echoes(&self) -> (usize, usize) {
        let of = |words: &[Word]| words.iter().filter(|word| word.what.ends_with('E')).count();
        (self.transfer.client.as_deref().map_or(0, of), of(&self.ours.client))
    }

    /// The mean difference between the windows while the answer was on its way, as a share of the kernel's mean.
    pub fn window_difference(&self) -> Option<f64> {
        let end = self.transfer.completed_us?;
        let begin = self.transfer.windows.first()?.0;
        let mut times: Vec<f64> = self.transfer.windows.iter().chain(&self.ours.windows).map(|&(at, _)| at).collect();
        times.retain(|at| (begin..end).contains(at));
        times.push(end);
        times.sort_by(f64::total_cmp);
        let (mut difference, mut area) = (0.0, 0.0);
        for span in times.windows(2) {
            let (theirs, ours) = (window_at(&self.transfer.windows, span[0]), window_at(&self.ours.windows, span[0]));
            difference += (theirs - ours).abs() * (span[1] - span[0]);
            area += theirs * (span[1] - span[0]);
        }
        (area > 0.0).then(|| difference / area)
    }

    /// Whether the window in the end is the kernel's within a fifth. It tells how often marks were answered even if all
    /// data had left before.
    pub fn ends_alike(&self) -> bool {
        let last = |windows: &[(f64, f64)]| windows.last().map_or(0.0, |window| window.1);
        let (theirs, ours) = (last(&self.transfer.windows), last(&self.ours.windows));
        (theirs - ours).abs() <= END * theirs
    }

    /// What is different, in a line; none if nothing is.
    pub fn difference(&self) -> Option<String> {
        let what = match (self.is_close(), self.has_same_order(), self.has_same_times()) {
            (true, true, true) => return None,
            (false, _, _) => "NOT CLOSE",
            (true, false, _) => "other packets",
            (true, true, false) => "other times",
        };
        let ms = |us: Option<f64>| us.unwrap_or(f64::NAN) / 1e3;
        Some(format!(
            "{}: complete after {:.3} and {:.3} ms, {} and {} packets: {what}",
            self.name(),
            ms(self.transfer.completed_us),
            ms(self.ours.completed_us),
            self.transfer.sent,
            self.ours.sent,
        ))
    }

    /// Packet by packet, side by side, with the windows.
    pub fn story(&self) -> String {
        let mut cells: Vec<(f64, usize, String)> = vec![];
        let mut put = |words: &[Word], column: usize| {
            cells.extend(words.iter().map(|word| (word.at_us, column, word.what.clone())));
        };
        let transfer = self.transfer;
        if let (Some(server), Some(client)) = (&transfer.server, &transfer.client) {
            put(server, 0);
            put(client, 1);
            put(&self.ours.server, 3);
            put(&self.ours.client, 4);
        } else if let Some(again) = &transfer.again {
            put(again, 0);
            put(&self.ours.again, 3);
        }
        for (windows, column) in [(&transfer.windows, 2), (&self.ours.windows, 5)] {
            cells.extend(windows.iter().map(|(at, window)| (*at, column, format!("cwnd {window}"))));
        }
        cells.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut lines = vec![format!("{} {:?}", self.name(), transfer.rules), line("ms", &HEADS)];
        for (at_us, column, what) in &cells {
            let mut row = [""; 6];
            row[*column] = what;
            lines.push(line(&format!("{:.3}", at_us / 1e3), &row));
        }
        lines.join("\n")
    }
}

const HEADS: [&str; 6] = ["kernel: server", "client", "", "ours: server", "client", ""];

fn line(at: &str, [a, b, c, d, e, f]: &[&str; 6]) -> String {
    format!("{at:>10}  {a:>14} {b:>20} {c:>9} || {d:>14} {e:>20} {f:>9}")
}

/// Whether two completion times agree.
pub fn is_close(theirs: f64, ours: f64) -> bool {
    (theirs - ours).abs() <= (CLOSE * theirs).max(CLOSE_US)
}

/// The flags of each packet, by what it acknowledges and reports.
fn by_number(words: &[Word]) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in words {
        // A SYN and the request begin with a letter.
        let flags = word.what[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(word.what.len(), |at| at + 1);
        let (number, flags) = word.what.split_at(flags);
        all.entry(number).or_default().push(flags);
    }
    all
}

fn data(words: &[Word]) -> Vec<&Word> {
    words.iter().filter(|word| !word.what.starts_with('A')).collect()
}

fn window_at(windows: &[(f64, f64)], at: f64) -> f64 {
    windows.iter().take_while(|window| window.0 <= at).last().or(windows.first()).map_or(0.0, |window| window.1)
}
