//! This file reads connection vectors in both published formats, which may be mixed from vector to vector.
//!
//! The original format (Weigle et al. 2006), times in microseconds, sizes in bytes:
//!
//! ```text
//! SEQ start epochs [id id]       CONC start units-of-initiator units-of-acceptor [id id]
//! w initiator acceptor           receive windows
//! r rtt                          smallest round-trip time
//! l forward back                 share of packets lost that the initiator, and that the acceptor sends
//! m initiator acceptor           segment sizes; may be missing
//! > bytes    < bytes    t wait   sequential: what initiator, acceptor write, with the time between
//! c> c< bytes    t> t< wait      concurrent: the same, each end for itself
//! ```
//!
//! The alternate format (ns-2 manual) has `S` and `C` for `SEQ` and `CONC`, the same lines `w r l m`, and a unit a
//! line: `I` or `A`, the wait from when this end wrote its unit before, the wait from when the other end's unit
//! arrived, bytes. Zero bytes close. One of the waits is always 0, and the order of lines says which one counts.
//!
//! `#` begins a comment. An epoch is counted at every unit of the initiator, and at every one of the acceptor that does
//! not follow one of the initiator; so are those of UNC's published vectors.
//!
//! # Who closes
//! A time after the last unit says how long after it the end that wrote it closes. Without such a time it closes after
//! a second, ns-2's default. In a concurrent vector each end may have such a time. If neither has, both close after
//! that second. If one has, the other closes when it has seen that and has nothing left to write.
//!
//! # Deviations
//! - `m` is checked and not used: segments are those of the hosts.
//! - A time of 0 stays 0; ns-2 makes it a microsecond, because its alternate format cannot tell it from no wait.

use super::{ACCEPTOR, Head, INITIATOR, Unit, Vectors};

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub problem: String,
}

/// Until the last to write closes, where nothing is said (ns-2's `fin_time_`).
const CLOSES_AFTER_US: u64 = 1_000_000;
/// Longest round-trip time.
const LONGEST_RTT_US: u64 = 600_000_000;
/// Largest receive window: 65,535 bytes scaled by 2^14 (RFC 7323 §2.3).
const LARGEST_WINDOW: u64 = 1 << 30;

/// Reads a set.
///
/// # Errors
/// The first line that is not as expected.
pub fn read(text: &str) -> Result<Vectors, Malformed> {
    let mut reader = Reader::default();
    let mut last = 1;
    // Some editors begin a text with its encoding.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        let mut fields = Fields { words: content.split_ascii_whitespace() };
        let Some(word) = fields.words.next() else { continue };
        reader.line(word, &mut fields, number, last).map_err(|refusal| refusal.at(number))?;
        last = number;
    }
    reader.finish(last).map_err(|refusal| refusal.at(last))?;
    if reader.set.is_empty() {
        let problem = "expected connection vectors, which begin with SEQ, CONC, S or C".to_owned();
        return Err(Malformed { line: 1, problem });
    }
    reader.set.heads.shrink_to_fit();
    reader.set.units.shrink_to_fit();
    Ok(reader.set)
}

/// Shortens a word, so that an error about it stays readable.
fn shortened(word: &str) -> String {
    const LENGTH: usize = 60;
    match word.char_indices().nth(LENGTH) {
        None => word.to_owned(),
        Some(_) => word.chars().take(LENGTH - 3).chain("...".chars()).collect(),
    }
}

/// A problem, on the current line or on another one.
struct Refusal {
    line: Option<usize>,
    problem: String,
}

impl Refusal {
    fn at(self, line: usize) -> Malformed {
        Malformed { line: self.line.unwrap_or(line), problem: self.problem }
    }
}

fn refuse<T>(problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { line: None, problem: problem.into() })
}

#[derive(Default)]
struct Reader {
    set: Vectors,
    open: Option<Open>,
}

/// The vector being read. Its head is in the set already.
struct Open {
    line: usize,
    is_original: bool,
    /// Epochs, or units of initiator and acceptor, as the first line says.
    declared: [u64; 2],
    /// The same as found.
    found: [u64; 2],
    has_windows: bool,
    has_rtt: bool,
    has_loss: bool,
    has_segments: bool,
    /// A time that was read and still waits for its unit: of the end that spoke last, or of each end.
    pending: [Option<u64>; 2],
    /// Whose unit came last; concurrent: whether each end had one.
    last: Option<usize>,
    wrote: [bool; 2],
    closed: [bool; 2],
    /// The acceptor's units of a concurrent vector, which follow the initiator's in the set.
    acceptor: Vec<Unit>,
}

/// The words of a line after the first.
struct Fields<'t> {
    words: std::str::SplitAsciiWhitespace<'t>,
}

impl Fields<'_> {
    fn whole(&mut self, what: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, Refusal> {
        match self.words.next() {
            None => refuse(format!("the line ends early, expected {what}")),
            Some(word) => match word.parse() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => refuse(format!(
                    "found {}, expected {what}, a whole number from {} to {}",
                    shortened(word),
                    range.start(),
                    range.end()
                )),
            },
        }
    }

    fn size(&mut self, least: u64) -> Result<u64, Refusal> {
        self.whole("a size in bytes", least..=Unit::LIMIT - 1)
    }

    fn time(&mut self) -> Result<u64, Refusal> {
        self.whole("a time in microseconds", 0..=Unit::LIMIT - 1)
    }

    fn share(&mut self) -> Result<f32, Refusal> {
        let expected = "the share of packets lost, a number from 0 to below 1";
        match self.words.next() {
            None => refuse(format!("the line ends early, expected {expected}")),
            Some(word) => match word.parse::<f32>() {
                Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
                _ => refuse(format!("found {}, expected {expected}", shortened(word))),
            },
        }
    }

    fn end(&mut self) -> Result<(), Refusal> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => refuse(format!("found {}, expected the end of the line", shortened(word))),
        }
    }
}

impl Reader {
    /// One line; `last` is the one before it that said something.
    fn line(&mut self, word: &str, fields: &mut Fields<'_>, number: usize, last: usize) -> Result<(), Refusal> {
        match word {
            "SEQ" | "CONC" | "S" | "C" => {
                self.finish(last)?;
                return self.begin(word, fields, number);
            }
            _ => {}
        }
        let Some(open) = &mut self.open else {
            let found = shortened(word);
            return refuse(format!("found {found}, expected a vector to begin with SEQ, CONC, S or C"));
        };
        let head = self.set.heads.last_mut().expect("the vector being read has a head");
        let units = &mut self.set.units;
        match word {
            "w" | "r" | "l" | "m" => {
                open.condition(word, head, fields)?;
                return fields.end();
            }
            _ => open.has_conditions()?,
        }
        match (word, open.is_original, head.is_concurrent) {
            (">" | "<", true, false) => open.sequential(units, end_of(word), None, fields.size(1)?)?,
            ("t", true, false) => open.time(INITIATOR, fields.time()?)?,
            ("c>" | "c<", true, true) => open.concurrent(units, end_of(word), None, fields.size(1)?)?,
            ("t>" | "t<", true, true) => open.time(end_of(word), fields.time()?)?,
            ("I" | "A", false, is_concurrent) => {
                let waits = [fields.time()?, fields.time()?];
                let (end, bytes) = (usize::from(word == "A"), fields.size(0)?);
                if is_concurrent {
                    open.concurrent(units, end, Some(waits), bytes)?;
                } else {
                    open.sequential(units, end, Some(waits), bytes)?;
                }
            }
            (_, is_original, is_concurrent) => {
                let expected = match (is_original, is_concurrent) {
                    (true, false) => ">, < or t",
                    (true, true) => "c>, t>, c< or t<",
                    (false, _) => "I or A",
                };
                return refuse(format!("found {}, expected {expected} or the next vector", shortened(word)));
            }
        }
        fields.end()
    }

    fn begin(&mut self, word: &str, fields: &mut Fields<'_>, number: usize) -> Result<(), Refusal> {
        let is_concurrent = word.starts_with('C');
        let start_us = fields.time()?;
        if let Some(before) = self.set.heads.last().filter(|before| start_us < before.start_us) {
            return refuse(format!(
                "found a start at {start_us}, expected vectors in the order of their starts: the one before is at {}",
                before.start_us
            ));
        }
        let mut declared = [0; 2];
        for count in &mut declared[..1 + usize::from(is_concurrent)] {
            let what = if is_concurrent { "how many units an end writes" } else { "how many epochs there are" };
            *count = fields.whole(what, 0..=u32::MAX.into())?;
        }
        // Two numbers that identify the connection where it was recorded.
        for _ in 0..2 {
            if fields.words.clone().next().is_some() {
                fields.whole("an identifier", 0..=u64::MAX)?;
            }
        }
        fields.end()?;
        let Ok(first) = u32::try_from(self.set.units.len()) else {
            return refuse("found more data units than expected: 2^32 is the most");
        };
        self.set.heads.push(Head { start_us, first, rtt_us: 0, windows: [0; 2], loss: [0.0; 2], is_concurrent });
        self.open = Some(Open {
            line: number,
            is_original: word.len() > 1,
            declared,
            found: [0; 2],
            has_windows: false,
            has_rtt: false,
            has_loss: false,
            has_segments: false,
            pending: [None; 2],
            last: None,
            wrote: [false; 2],
            closed: [false; 2],
            acceptor: Vec::new(),
        });
        Ok(())
    }

    /// The vector being read is over, with the line `last`.
    fn finish(&mut self, last: usize) -> Result<(), Refusal> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let begins = open.line;
        let at_last = |problem: String| Err(Refusal { line: Some(last), problem });
        let head = self.set.heads.last().expect("the vector being read has a head");
        if open.wrote == [false; 2] {
            return at_last(format!("the vector of line {begins} ends here without data, expected at least one unit"));
        }
        if open.found != open.declared {
            let count = |n: [u64; 2]| {
                if head.is_concurrent { format!("{} and {} units", n[0], n[1]) } else { format!("{} epochs", n[0]) }
            };
            return at_last(format!(
                "the vector of line {begins} ends here with {}, expected {} as it says",
                count(open.found),
                count(open.declared)
            ));
        }
        if !head.is_concurrent {
            let end = open.last.expect("somebody wrote");
            if !open.closed[end] {
                let wait_us = open.pending[INITIATOR].unwrap_or(CLOSES_AFTER_US);
                self.set.units.push(Unit::new(end, wait_us, 0));
            }
            return Ok(());
        }
        for end in [INITIATOR, ACCEPTOR] {
            open.closed[end] |= open.pending[end].is_some();
        }
        let neither = open.closed == [false; 2];
        for (end, units) in [(INITIATOR, &mut self.set.units), (ACCEPTOR, &mut open.acceptor)] {
            match open.pending[end] {
                Some(wait_us) => units.push(Unit::new(end, wait_us, 0)),
                None if neither && open.wrote[end] => units.push(Unit::new(end, CLOSES_AFTER_US, 0)),
                None => {}
            }
        }
        self.set.units.append(&mut open.acceptor);
        Ok(())
    }
}

/// The end whose arrow this is.
fn end_of(word: &str) -> usize {
    if word.ends_with('>') { INITIATOR } else { ACCEPTOR }
}

impl Open {
    /// A line of the conditions.
    fn condition(&mut self, word: &str, head: &mut Head, fields: &mut Fields<'_>) -> Result<(), Refusal> {
        let (has, name) = match word {
            "w" => (&mut self.has_windows, "receive windows"),
            "r" => (&mut self.has_rtt, "a round-trip time"),
            "l" => (&mut self.has_loss, "shares of packets lost"),
            _ => (&mut self.has_segments, "segment sizes"),
        };
        if *has || self.last.is_some() || self.pending != [None; 2] {
            return refuse(format!("found {name} ({word}), expected them once and before the data"));
        }
        *has = true;
        match word {
            "w" => {
                for window in &mut head.windows {
                    *window = fields.whole("a receive window in bytes", 1..=LARGEST_WINDOW)? as u32;
                }
            }
            "r" => head.rtt_us = fields.whole("a round-trip time in microseconds", 0..=LONGEST_RTT_US)? as u32,
            "l" => {
                for share in &mut head.loss {
                    *share = fields.share()?;
                }
            }
            _ => {
                for _ in 0..2 {
                    fields.whole("a segment size in bytes", 1..=65_535)?;
                }
            }
        }
        Ok(())
    }

    /// Data begins: whatever the conditions are must be known.
    fn has_conditions(&self) -> Result<(), Refusal> {
        for (has, expected) in [
            (self.has_windows, "receive windows (w)"),
            (self.has_rtt, "the round-trip time (r)"),
            (self.has_loss, "the shares of packets lost (l)"),
        ] {
            if !has {
                return refuse(format!(
                    "found data, expected {expected} of the vector of line {} before it",
                    self.line
                ));
            }
        }
        Ok(())
    }

    /// A time between units, in the original format.
    fn time(&mut self, of: usize, wait_us: u64) -> Result<(), Refusal> {
        if self.pending[of].is_some() {
            return refuse("found a second time, expected data between two times");
        }
        self.pending[of] = Some(wait_us);
        Ok(())
    }

    /// A unit of a sequential vector: in the alternate format with its waits from writing and from receiving.
    fn sequential(
        &mut self,
        units: &mut Vec<Unit>,
        end: usize,
        waits: Option<[u64; 2]>,
        bytes: u64,
    ) -> Result<(), Refusal> {
        if self.closed != [false; 2] {
            return refuse("found more data after the end that closes, expected the next vector");
        }
        let wait_us = match (waits, self.last) {
            (None, None) if self.pending[0].is_some() => return refuse("found data after a time, expected data first"),
            (None, None) => 0,
            (None, Some(_)) => match self.pending[INITIATOR].take() {
                Some(wait_us) => wait_us,
                None => return refuse("found data after data, expected a time (t) between them"),
            },
            (Some([0, 0]), None) if bytes > 0 => 0,
            (Some(_), None) => return refuse("expected 0 0 and a size above zero for the first unit"),
            (Some([wait_us, 0]), Some(last)) if last == end => wait_us,
            (Some([0, wait_us]), Some(last)) if last != end => wait_us,
            (Some(_), Some(last)) => {
                let (first, second) = if last == end { ("", "not ") } else { ("not ", "") };
                return refuse(format!(
                    "expected a wait {first}from writing (first number) and {second}from receiving (second): the unit \
                     before is {} end's",
                    if last == end { "the same" } else { "the other" }
                ));
            }
        };
        if bytes > 0 {
            let answers = end == ACCEPTOR && self.last == Some(INITIATOR);
            self.found[0] += u64::from(!answers);
            self.wrote[end] = true;
        } else {
            self.closed[end] = true;
        }
        self.last = Some(end);
        units.push(Unit::new(end, wait_us, bytes));
        Ok(())
    }

    /// A unit of a concurrent vector.
    fn concurrent(
        &mut self,
        units: &mut Vec<Unit>,
        end: usize,
        waits: Option<[u64; 2]>,
        bytes: u64,
    ) -> Result<(), Refusal> {
        if self.closed[end] {
            return refuse("found more data of an end that closed, expected none");
        }
        let wait_us = match waits {
            Some([wait_us, 0]) => wait_us,
            Some(_) => {
                return refuse("expected 0 as the wait from receiving (second number): the ends are independent");
            }
            None if !self.wrote[end] => self.pending[end].take().unwrap_or(0),
            None => match self.pending[end].take() {
                Some(wait_us) => wait_us,
                None => return refuse("found data after data of the same end, expected its time between them"),
            },
        };
        if bytes > 0 {
            self.found[end] += 1;
            self.wrote[end] = true;
        } else {
            self.closed[end] = true;
        }
        self.last = Some(end);
        let units = if end == INITIATOR { units } else { &mut self.acceptor };
        units.push(Unit::new(end, wait_us, bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
