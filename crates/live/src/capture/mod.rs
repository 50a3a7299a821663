//! A [`Capture`] writes down the packets before and after a queue, for Wireshark and for `aqmlab capture`.
//!
//! For each direction the file has interfaces, named after the points at which a packet is seen:
//!
//! | interface | packets | comment |
//! |---|---|---|
//! | `forward, before the queue` | as offered to the discipline | |
//! | `forward, dropped` | when the discipline loses them | `dropped: early (pie)` |
//! | `forward, after the queue` | as they leave the link | `marked: early (pie)` |
//!
//! Each has the ECN field that it has there: at a second link, as the first one left it.
//! So each packet before the queue is in the file once more, after it or dropped, unless it was held when the run
//! ended.
//! Times count from the start of the run, to the nanosecond, as all times of a run do. A reader shows them as times of
//! the first of January 1970.
//!
//! A slow disk never delays the router. The router encodes packets into chunks, which another thread writes. While all
//! chunks wait to be written, packets are left out and counted. The file itself (interface statistics) and
//! [`CaptureReport`] say how many.

mod pcapng;
mod places;

pub use places::Captures;

use crate::wire;
use aqm::Cause;
use aqm::param::Text;
use aqm::registry::Row;
use base::{Ecn, Span, Time};
use scenario::{Link, Scenario};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError, TrySendError};
use std::thread::{self, JoinHandle};

/// Bytes that are handed to the writer at a time.
const CHUNK: usize = 256 << 10;
/// The most chunks of all files together: 64 MiB, which hold two and a half seconds of 150,000 packets/s before and
/// after one queue.
const CHUNKS: usize = 256;
/// The least number of chunks of a file: one is filled while others are written.
const LEAST_CHUNKS: usize = 4;
/// A chunk that is not full is handed over after so long, so that a run that is killed loses no more than that.
const LONGEST: Span = Span::from_secs(1);

/// Points of a direction, see [`name`].
const BEFORE: usize = 0;
const DROPPED: usize = 1;
const AFTER: usize = 2;
const POINTS: usize = 3;

/// On which side of the queue packets are captured. What is dropped is written down with either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides {
    /// As they are offered.
    pub before: bool,
    /// As they are delivered.
    pub after: bool,
}

/// A capture under way.
pub struct Capture {
    sides: Sides,
    snap: usize,
    points: [[Point; POINTS]; 2],
    comments: [Comments; 2],
    /// Of the packets that wait, by the place of their bytes: the cause they were marked for.
    marks: Vec<Option<Cause>>,
    chunk: Vec<u8>,
    /// When the first packet of the chunk came.
    began: Time,
    last: Time,
    /// Whether there is no chunk to write into: the writer has them all.
    is_full: bool,
    made: usize,
    /// The most chunks it may have.
    most: usize,
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    writer: Option<JoinHandle<io::Result<u64>>>,
}

/// One point of one direction.
#[derive(Clone, Copy, Default)]
struct Point {
    /// Its number in the file; `None` where nothing is captured.
    interface: Option<u32>,
    seen: u64,
    missed: u64,
}

/// What is said of a packet that was dropped or marked, for each cause that its discipline may have.
struct Comments(Vec<(Cause, [String; 2])>);

/// What a capture came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureReport {
    /// Packets at the points that are captured.
    pub seen: u64,
    /// Those of them that are not in the file.
    pub missed: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Why the file ends early.
    pub error: Option<String>,
}

impl CaptureReport {
    /// All of it, as JSON.
    pub fn to_json(&self) -> Value {
        json!({ "seen": self.seen, "missed": self.missed, "bytes": self.bytes, "error": self.error })
    }
}

impl Capture {
    /// A capture of both directions of the first link of `scenario` into a new file at `path`, of which no packet has
    /// more than `snap` bytes.
    ///
    /// # Errors
    /// Where the file cannot be made or begun, or the thread not started.
    pub fn create(path: &Path, scenario: &Scenario, sides: Sides, snap: u32) -> io::Result<Self> {
        Self::of_link(path, scenario, (scenario.link(), [true; 2]), sides, snap, CHUNKS)
    }

    /// A capture of some directions of a link, with a limit on the chunks that it may have. Call it from a thread of
    /// ordinary priority: the thread that writes inherits its priority.
    fn of_link(
        path: &Path,
        scenario: &Scenario,
        (link, ways): (&Link, [bool; 2]),
        sides: Sides,
        snap: u32,
        most: usize,
    ) -> io::Result<Self> {
        let Link { rates, qdiscs, .. } = link;
        let mut head = Vec::new();
        let application = concat!("aqmlab ", env!("CARGO_PKG_VERSION"));
        let at = if scenario.has_routes() { format!("link {}; ", link.name) } else { String::new() };
        let about = format!("{}; {at}seed {}; times count from the start of the run", scenario.name, scenario.seed);
        pcapng::section(&mut head, application, &system(), &about);
        let mut points = [[Point::default(); POINTS]; 2];
        let mut number = 0;
        for (side, rate) in rates.iter().enumerate() {
            for (point, is_wanted) in [(BEFORE, sides.before), (DROPPED, true), (AFTER, sides.after)] {
                if is_wanted && ways[side] {
                    pcapng::interface(&mut head, name(side, point), snap, rate.bps());
                    points[side][point].interface = Some(number);
                    number += 1;
                }
            }
        }
        let mut file = File::create(path)?;
        file.write_all(&head)?;
        let (full, to_write) = mpsc::sync_channel(most);
        let (written, empty) = mpsc::sync_channel(most);
        let bytes = head.len() as u64;
        let writer = thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_down(file, bytes, &to_write, &written))?;
        Ok(Self {
            sides,
            snap: snap as usize,
            points,
            comments: qdiscs.each_ref().map(|qdisc| Comments::new(qdisc.entry.row())),
            marks: Vec::new(),
            chunk: chunk(),
            began: Time::ZERO,
            last: Time::ZERO,
            is_full: false,
            made: 1,
            most,
            full: Some(full),
            empty,
            writer: Some(writer),
        })
    }

    /// Writes a packet down that came from `side` and is about to be offered, with `ecn` in its header.
    #[inline]
    pub fn offered(&mut self, side: usize, packet: &[u8], ecn: Ecn, now: Time) {
        if self.sides.before {
            self.put(side, BEFORE, packet, ecn, None, now);
        }
    }

    /// Writes down that the packet at `place` was lost, with `ecn` in its header.
    pub fn dropped(&mut self, side: usize, place: u32, packet: &[u8], ecn: Ecn, cause: Cause, now: Time) {
        self.take_mark(place);
        self.put(side, DROPPED, packet, ecn, Some((DROPPED, cause)), now);
    }

    /// Notes that the packet at `place` was marked, for when it leaves.
    pub fn marked(&mut self, place: u32, cause: Cause) {
        let place = place as usize;
        if self.marks.len() <= place {
            self.marks.resize((place + 1).next_power_of_two(), None);
        }
        self.marks[place] = Some(cause);
    }

    /// Writes down that the packet at `place` has left the link with `ecn` in its header.
    #[inline]
    pub fn delivered(&mut self, side: usize, place: u32, packet: &[u8], ecn: Ecn, now: Time) {
        let mark = self.take_mark(place);
        if self.sides.after {
            self.put(side, AFTER, packet, ecn, mark.map(|cause| (AFTER, cause)), now);
        }
    }

    /// Takes out the cause that the packet at `place` was marked for.
    fn take_mark(&mut self, place: u32) -> Option<Cause> {
        self.marks.get_mut(place as usize)?.take()
    }

    #[inline]
    fn put(&mut self, side: usize, at: usize, packet: &[u8], ecn: Ecn, said: Option<(usize, Cause)>, now: Time) {
        self.points[side][at].seen += 1;
        self.last = now;
        let Some(interface) = self.points[side][at].interface else { return };
        if !self.has_room(now) {
            self.points[side][at].missed += 1;
            return;
        }
        let comment = said.map(|(point, cause)| self.comments[side].of(point, cause));
        let kept = &packet[..packet.len().min(self.snap)];
        let kept = pcapng::packet(&mut self.chunk, interface, now, kept, packet.len() as u32, comment);
        if kept.len() >= 12 {
            // The bytes that are kept have the field and IPv4's header checksum.
            wire::set_ecn(&mut self.chunk[kept], ecn);
        }
    }

    /// Hands the chunk over if it is full or old. Returns whether there is then a chunk with room for a packet.
    fn has_room(&mut self, now: Time) -> bool {
        if !self.is_full {
            if self.chunk.is_empty() {
                self.began = now;
            }
            if self.chunk.len() < CHUNK && now.since(self.began) < LONGEST {
                return true;
            }
            let chunk = std::mem::take(&mut self.chunk);
            let Some(full) = &self.full else { return false };
            match full.try_send(chunk) {
                Ok(()) => self.is_full = true,
                // The writer has given up, and says why at the end.
                Err(TrySendError::Disconnected(_)) => self.full = None,
                Err(TrySendError::Full(_)) => unreachable!("the channel has room for every chunk"),
            }
        }
        if self.full.is_none() {
            return false;
        }
        self.chunk = match self.empty.try_recv() {
            Ok(chunk) => chunk,
            Err(TryRecvError::Empty) if self.made < self.most => {
                self.made += 1;
                chunk()
            }
            Err(_) => return false,
        };
        self.is_full = false;
        self.began = now;
        true
    }

    /// Writes what is left, and waits until it is written.
    pub fn end(mut self) -> CaptureReport {
        self.finish()
    }

    fn finish(&mut self) -> CaptureReport {
        let points = self.points.as_flattened().iter().filter(|point| point.interface.is_some());
        let (seen, mut missed) = points.clone().fold((0, 0), |(seen, missed), p| (seen + p.seen, missed + p.missed));
        if let Some(full) = self.full.take() {
            let mut chunk = std::mem::take(&mut self.chunk);
            for point in points {
                let interface = point.interface.expect("those without were left out");
                pcapng::statistics(&mut chunk, interface, self.last, point.seen, point.missed);
            }
            // A writer that is gone says why below.
            let _ = full.send(chunk);
        }
        let written = self.writer.take().map(|writer| writer.join().expect("writing does not panic"));
        let (bytes, error) = match written {
            Some(Ok(bytes)) => (bytes, None),
            Some(Err(error)) => (0, Some(error.to_string())),
            None => (0, None),
        };
        if error.is_some() {
            // Nobody knows which of the chunks that were handed over are in the file.
            missed = seen;
        }
        CaptureReport { seen, missed, bytes, error }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Comments {
    fn new(row: &Row<Text>) -> Self {
        let own = row.causes.iter().map(|own| own.cause);
        let said = |what: &str, cause: Cause| format!("{what}: {} ({})", cause.name(), row.name);
        let of = |cause| (cause, [said("dropped", cause), said("marked", cause)]);
        Self(Cause::ALL.into_iter().chain(own).map(of).collect())
    }

    fn of(&self, point: usize, cause: Cause) -> &str {
        let known = self.0.iter().find(|(known, _)| *known == cause);
        // A cause that its row does not have is told by its kind.
        let (_, said) = known.unwrap_or(&self.0[cause.index()]);
        &said[usize::from(point != DROPPED)]
    }
}

/// Room for a chunk and for the packet that it ends with.
fn chunk() -> Vec<u8> {
    Vec::with_capacity(CHUNK + (4 << 10))
}

/// What an interface is called.
const fn name(side: usize, point: usize) -> &'static str {
    const NAMES: [[&str; POINTS]; 2] = [
        ["forward, before the queue", "forward, dropped", "forward, after the queue"],
        ["reverse, before the queue", "reverse, dropped", "reverse, after the queue"],
    ];
    NAMES[side][point]
}

/// The system this runs on.
fn system() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// Writes chunk after chunk until there are no more to come; returns the length of the file, which has `bytes` so far.
fn write_down(
    mut file: File,
    mut bytes: u64,
    full: &Receiver<Vec<u8>>,
    empty: &SyncSender<Vec<u8>>,
) -> io::Result<u64> {
    for mut chunk in full {
        file.write_all(&chunk)?;
        bytes += chunk.len() as u64;
        chunk.clear();
        // Nobody takes it back after the end, when there may be one more than there is room for.
        let _ = empty.try_send(chunk);
    }
    file.flush()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqm::OwnCause;
    use aqm::registry::Registry;

    #[test]
    fn what_is_said_names_causes_of_the_disciplines_own() {
        let [burst, other] = ["burst", "other"].map(|name| Cause::own(name, Cause::FORCED).expect("there is room"));
        let mut row = Registry::builtin().find("pie").expect("it is there").row().clone();
        row.causes.push(OwnCause { cause: burst, doc: String::new() });
        let comments = Comments::new(&row);
        assert_eq!(comments.of(DROPPED, burst), "dropped: burst (pie)");
        assert_eq!(comments.of(AFTER, burst), "marked: burst (pie)");
        assert_eq!(comments.of(AFTER, Cause::EARLY), "marked: early (pie)");
        assert_eq!(comments.of(DROPPED, other), "dropped: forced (pie)");
    }
}
