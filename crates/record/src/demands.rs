//! Demands are recorded as text: who asks for how much, and when, in the form that `kind = "replay"` reads.

use crate::rows::{DemandRow, Demanded};
use base::{Span, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::{Path, PathBuf};

const HEADING: &str = "connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last";

/// Writes the files `demands-N.csv`, one for each block of traffic that asks for something.
pub struct Recording {
    folder: PathBuf,
    files: BTreeMap<u16, BufWriter<File>>,
}

impl Recording {
    /// A recording whose files go into `folder`, which must exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: BTreeMap::new() }
    }

    /// Writes one demand as one line of its block's file.
    pub fn push(&mut self, row: &DemandRow) -> Result<()> {
        if !self.files.contains_key(&row.traffic) {
            let mut file = BufWriter::new(File::create(self.folder.join(format!("demands-{}.csv", row.traffic)))?);
            writeln!(file, "{HEADING}")?;
            self.files.insert(row.traffic, file);
        }
        let file = self.files.get_mut(&row.traffic).expect("it has just been made");
        write!(file, "{},{},", row.connection, Seconds(row.at.since(Time::ZERO)))?;
        match row.demanded {
            Demanded::Close => writeln!(file, ",,,,,"),
            Demanded::Exchange { opened, request_bytes, response_bytes, server_delay, is_last } => {
                match opened {
                    Some((direction, rtt)) => {
                        write!(file, "{},{}", ["forward", "reverse"][usize::from(direction)], Seconds(rtt))?;
                    }
                    None => write!(file, ",")?,
                }
                let (delay, last) = (Seconds(server_delay), u8::from(is_last));
                writeln!(file, ",{request_bytes},{response_bytes},{delay},{last}")
            }
        }
    }

    /// Writes what is left.
    pub fn finish(self) -> Result<()> {
        self.files.into_values().try_for_each(|mut file| file.flush())
    }
}

/// Seconds to the nanosecond, without more digits than it takes.
struct Seconds(Span);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.ns() / 1_000_000_000, self.0.ns() % 1_000_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_and_short() {
        for (ns, text) in [(0, "0"), (80_000_000, "0.08"), (1, "0.000000001"), (12_345_678_901, "12.345678901")] {
            assert_eq!(Seconds(Span::from_ns(ns)).to_string(), text);
            let read: f64 = text.parse().expect("a number");
            assert_eq!(Span::from_secs_f64(read), Span::from_ns(ns));
        }
    }
}
