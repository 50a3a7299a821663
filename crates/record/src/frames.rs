//! Frames of real-time video: how long each takes from the encoder to the receiver, and which never come whole.
//!
//! - Delay: from the instant at which a frame is encoded to that at which the receiver has all of its packets. What its
//!   packets wait at the sender counts.
//! - Loss: a packet of it was lost, or the sender threw it away. Nothing is sent again.
//!
//! A frame counts if it was encoded within the measured window and its fate was known when the run ended.

use crate::fates::{Fate, Fates, Sent};
use crate::measures::{Row, percentiles, values};
use crate::rows::{FrameRow, Sink};
use crate::seconds::seconds;
use base::Time;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// A frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Encoded {
    /// Bytes of media in it.
    pub bytes: u32,
    /// The rate that the encoder was asked for, bits a second.
    pub rate_bps: u64,
}

/// What became of the frames of all sources of a run.
#[derive(Clone, Debug)]
pub struct Frames {
    flows: Vec<Flow>,
    window: (Time, Time),
    encoded: u64,
    lost: u64,
    /// Bytes of the frames that came.
    bytes: u64,
    /// Delays, in units of 100 ns.
    delays: Histogram<u64>,
}

/// The frames of one source.
#[derive(Clone, Debug)]
struct Flow {
    traffic: u16,
    source: u32,
    direction: u8,
    fates: Fates<Encoded>,
}

/// Unit of the histogram of delays, and the longest it tells apart, as which all longer ones count: 859 s.
const UNIT_NS: u64 = 100;
const MOST: u64 = (1 << 33) - 1;

impl Frames {
    /// No sources yet. Frames that are encoded from `from` on and before `to` count.
    pub fn new(from: Time, to: Time) -> Self {
        let delays = Histogram::new_with_bounds(1, MOST, 3).expect("the bounds are in order");
        Self { flows: Vec::new(), window: (from, to), encoded: 0, lost: 0, bytes: 0, delays }
    }

    /// Adds a source: its block of traffic, its number within the block and its direction. Returns its number here.
    pub fn add_flow(&mut self, traffic: u16, source: u32, direction: u8) -> u32 {
        self.flows.push(Flow { traffic, source, direction, fates: Fates::new() });
        self.flows.len() as u32 - 1
    }

    /// Notes that a source has encoded a frame at `now`; returns the number of the frame.
    pub fn encoded(&mut self, flow: u32, frame: Encoded, now: Time) -> u32 {
        self.flows[flow as usize].fates.sent(now, frame)
    }

    /// Notes that the receiver has all of a frame.
    pub fn received(&mut self, flow: u32, frame: u32, now: Time, sink: &mut dyn Sink) {
        self.tell(flow, frame, Fate::Received(now), sink);
    }

    /// Notes that a frame never comes whole.
    pub fn lost(&mut self, flow: u32, frame: u32, sink: &mut dyn Sink) {
        self.tell(flow, frame, Fate::Lost, sink);
    }

    /// Ends the run. Frames that are still on their way have no fate and do not count; those after them may.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        for index in 0..self.flows.len() {
            while let Some((number, frame)) = self.flows[index].fates.next(true) {
                self.settle(index, number, frame, sink);
            }
        }
    }

    fn tell(&mut self, flow: u32, frame: u32, fate: Fate, sink: &mut dyn Sink) {
        let index = flow as usize;
        self.flows[index].fates.tell(frame, fate);
        while let Some((number, frame)) = self.flows[index].fates.next(false) {
            self.settle(index, number, frame, sink);
        }
    }

    /// Counts a frame if it was encoded within the window.
    fn settle(&mut self, index: usize, number: u32, frame: Sent<Encoded>, sink: &mut dyn Sink) {
        if frame.at < self.window.0 || frame.at >= self.window.1 {
            return;
        }
        let delay = match frame.fate {
            Fate::Unknown => return,
            Fate::Lost => None,
            Fate::Received(at) => Some(at.since(frame.at)),
        };
        let &Flow { traffic, source, direction, .. } = &self.flows[index];
        let Encoded { bytes, rate_bps } = frame.what;
        sink.frame(&FrameRow { encoded: frame.at, delay, frame: number, bytes, rate_bps, traffic, source, direction });
        self.encoded += 1;
        match delay {
            None => self.lost += 1,
            Some(delay) => {
                self.bytes += u64::from(bytes);
                self.delays.saturating_record(delay.ns() / UNIT_NS);
            }
        }
    }

    fn is_used(&self) -> bool {
        !self.flows.is_empty()
    }

    fn window_s(&self) -> f64 {
        seconds(self.window.1.since(self.window.0).ns() as f64)
    }

    /// The table of the summary, all null where there are no frames.
    pub fn to_json(&self) -> Value {
        values(ROWS, |value| value(self))
    }
}

/// A function that works out one number of the frames.
pub type OfFrames = fn(&Frames) -> Value;

/// The measures of frames, as the summary has them.
pub const ROWS: &[Row<OfFrames>] = &[
    Row {
        name: "encoded_frames",
        title: "frames encoded",
        unit: "frames",
        formula: "frames of real-time video that were encoded and whose fate is known, as in frames.parquet; of all sources",
        source: "frames.parquet",
        parameters: None,
        value: |frames| json!(frames.is_used().then_some(frames.encoded)),
    },
    Row {
        name: "lost_frames",
        title: "frames lost",
        unit: "frames",
        formula: "of the frames encoded, those of which a packet was lost, or that the sender threw away",
        source: "`delay_ns`",
        parameters: None,
        value: |frames| json!(frames.is_used().then_some(frames.lost)),
    },
    Row {
        name: "loss_ratio",
        title: "frame loss",
        unit: "share of frames",
        formula: "frames lost ÷ frames encoded",
        source: "`delay_ns`",
        parameters: None,
        value: |frames| json!((frames.encoded > 0).then(|| frames.lost as f64 / frames.encoded as f64)),
    },
    Row {
        name: "bitrate_bps",
        title: "video rate",
        unit: "bit/s",
        formula: "bits of media in the frames that came whole ÷ window; the sum of all sources",
        source: "`bytes`, `delay_ns`",
        parameters: None,
        value: |frames| json!(frames.is_used().then(|| frames.bytes as f64 * 8.0 / frames.window_s())),
    },
    Row {
        name: "delay_s",
        title: "frame delay",
        unit: "s",
        formula: "percentiles `p10` `p25` `p50` `p75` `p90` `p95` `p99` over the frames that came whole, from the encoder to the receiver, to three digits",
        source: "`delay_ns`",
        parameters: None,
        value: |frames| {
            let has_arrived = frames.encoded > frames.lost;
            percentiles(|q| has_arrived.then(|| seconds((frames.delays.value_at_quantile(q) * UNIT_NS) as f64)))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{DropRow, ExchangeRow, QueueRow};
    use base::Span;

    #[derive(Default)]
    struct Kept(Vec<FrameRow>);

    impl Sink for Kept {
        fn exchange(&mut self, _row: &ExchangeRow) {}
        fn queue(&mut self, _row: &QueueRow) {}
        fn drop(&mut self, _row: &DropRow) {}
        fn frame(&mut self, row: &FrameRow) {
            self.0.push(*row);
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn frames_of_the_window_are_counted_once_their_fate_is_known() {
        let (mut frames, mut rows) = (Frames::new(at(40), at(1040)), Kept::default());
        let flow = frames.add_flow(2, 5, 1);
        for k in 0..5 {
            let number = frames.encoded(flow, Encoded { bytes: 1000, rate_bps: 1_000_000 }, at(40 * k));
            assert_eq!(u64::from(number), k);
        }
        frames.received(flow, 0, at(50), &mut rows);
        frames.lost(flow, 2, &mut rows);
        assert!(rows.0.is_empty(), "frame 0 lies before the window, frame 1 is not known");
        frames.received(flow, 1, at(70), &mut rows);
        frames.received(flow, 3, at(170), &mut rows);
        frames.finish(&mut rows);
        let told: Vec<_> = rows.0.iter().map(|row| (row.frame, row.delay)).collect();
        assert_eq!(told, [(1, Some(Span::from_ms(30))), (2, None), (3, Some(Span::from_ms(50)))]);
        assert_eq!((rows.0[0].traffic, rows.0[0].source, rows.0[0].direction), (2, 5, 1));
        let found = frames.to_json();
        assert_eq!((&found["encoded_frames"], &found["lost_frames"]), (&json!(3), &json!(1)));
        assert_eq!(found["bitrate_bps"], json!(16_000.0));
        assert!(Frames::new(at(0), at(1)).to_json()["bitrate_bps"].is_null());
    }

    #[test]
    fn the_longest_delays_count_as_the_longest() {
        let (mut frames, mut rows) = (Frames::new(at(0), at(1000)), Kept::default());
        let flow = frames.add_flow(0, 0, 0);
        for delay_s in [700, 1000] {
            let number = frames.encoded(flow, Encoded { bytes: 1000, rate_bps: 1_000_000 }, at(0));
            frames.received(flow, number, at(1000 * delay_s), &mut rows);
        }
        let found = frames.to_json();
        let [less, more] = ["p10", "p90"].map(|share| found["delay_s"][share].as_f64().expect("a number"));
        assert!((less - 700.0).abs() < 0.7 && (more - 858.99).abs() < 0.01, "{less} {more}");
    }
}
