//! The sender of media: frames are cut into packets, these wait in a queue until pace and window let them out, and
//! reports say what became of them.
//!
//! Sources: draft-ietf-ccwg-rfc8298bis-screamv2 §4.1 (what is kept of packets), §4.2.1.1 (losses, with a reordering
//! window as in RFC 8985), §4.2.1.4 and RFC 6817 §3.4.2 (what packets wait: the delay one way, less the least of the
//! last ten minutes), RFC 6298 §2 (the smoothed round trip, less what the receiver held a packet back).
//!
//! # What the draft leaves open
//! - The window is closed and nothing comes back: a packet goes out at the least pace, so that something is heard.
//! - Frames that waited for a second are thrown away with what is behind them, and the next is a key frame where there
//!   are any.
//! - The reordering window is nothing until a packet comes late. It is as long then as that was late, a round trip at
//!   most.

use crate::encoder::Encoder;
use crate::receiver::Report;
use crate::scream::{Heard, Rates, Scream};
use crate::{Config, HEADER_BYTES};
use base::{Ecn, Span, Stream, Time};
use std::collections::VecDeque;

/// A frame that was encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Its number.
    pub number: u32,
    /// Bytes of media in it.
    pub bytes: u32,
    /// Packets that it is cut into.
    pub packets: u32,
    /// The rate that the encoder was asked for, bits a second.
    pub rate_bps: u64,
}

/// A packet of media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its sequence number.
    pub sequence: u64,
    /// Its frame.
    pub frame: u32,
    /// Whether it is the last of its frame: the marker of RTP.
    pub is_last: bool,
    /// Its size, bytes (IP).
    pub size: u32,
}

/// What a sender does when it is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It has encoded a frame.
    Encoded(Frame),
    /// It sends a packet.
    Send(Packet),
    /// It has thrown away all frames from this number on, up to but not including the second.
    Discard(u32, u32),
}

/// What is seen of a sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct State {
    /// The window, bytes.
    pub window: f64,
    /// The rate that is asked of the encoder, bits a second.
    pub rate: f64,
    /// The share of marks, smoothed.
    pub alpha: f64,
    /// The smoothed round trip; none before the first report.
    pub round_trip: Option<Span>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Packets that were found to be lost.
    pub lost: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// Nothing is known.
    Open,
    /// A later one came, first known at this time.
    Missing(Time),
    /// It was found to be lost, after it was missing since this time.
    Lost(Time),
    /// It came.
    Came,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    size: u32,
    /// Bytes up to and with it.
    total: u64,
    fate: Fate,
}

/// A frame that waits for this long is not sent.
const LATEST: Span = Span::from_secs(1);
/// Reports go back no further than so many sequence numbers.
const REPORTED: u64 = 64;
/// Minutes for which the least delay is kept (RFC 6817 §4: BASE_HISTORY).
const MINUTES: usize = 10;
/// The smallest frame, bytes of media.
const LEAST_FRAME: f64 = 64.0;
/// Bytes of the smallest frame, its header included: no rate is below one of these a frame.
pub const LEAST_FRAME_BYTES: u32 = LEAST_FRAME as u32 + HEADER_BYTES;

/// The sender of media.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    scream: Scream,
    encoder: Encoder,
    frames: u32,
    next_frame: Time,
    /// Packets that wait, each with when its frame was encoded.
    queue: VecDeque<(Time, Packet)>,
    /// The next packet's sequence number.
    next: u64,
    /// When it may be sent by the pace, and when the last one was.
    paced_until: Time,
    sent_at: Time,
    /// Packets that reports may still speak of; the first has the sequence number `base`.
    sent: VecDeque<Sent>,
    base: u64,
    sent_bytes: u64,
    /// The highest sequence number that came, plus one, and the bytes up to it.
    highest: u64,
    highest_bytes: u64,
    reordering: Span,
    round_trip: Option<f64>,
    /// How long the last packet that came waited on its way, seconds.
    waits: f64,
    /// The least delay one way of each of the last minutes, seconds, and the minute of the first.
    least: VecDeque<f64>,
    minute: u64,
    lost: u64,
}

impl Sender {
    /// A sender whose first frame is encoded at `first`; `stream` draws the sizes of frames.
    pub fn new(config: Config, first: Time, stream: Stream) -> Self {
        Self {
            config,
            scream: Scream::new(config.mode, Rates::new(config.rates, config.packet, config.frame_period)),
            encoder: Encoder::new(&config, stream),
            frames: 0,
            next_frame: first,
            queue: VecDeque::new(),
            next: 0,
            paced_until: first,
            sent_at: first,
            sent: VecDeque::new(),
            base: 0,
            sent_bytes: 0,
            highest: 0,
            highest_bytes: 0,
            reordering: Span::ZERO,
            round_trip: None,
            waits: 0.0,
            least: VecDeque::new(),
            minute: 0,
            lost: 0,
        }
    }

    /// What is seen of it.
    pub fn state(&self) -> State {
        State {
            window: self.scream.window(),
            rate: self.scream.rate(),
            alpha: self.scream.alpha(),
            round_trip: self.round_trip.map(Span::from_secs_f64),
            in_flight: self.in_flight(),
            lost: self.lost,
        }
    }

    /// What it does at `now`, one thing after the other; nothing when it is done for now.
    pub fn act(&mut self, now: Time) -> Option<Act> {
        if self.next_frame <= now {
            let waited = self.queue.front().map_or(Span::ZERO, |(encoded, _)| now.since(*encoded));
            return Some(if waited > LATEST { self.discard() } else { self.encode(waited) });
        }
        if self.next_packet() <= now {
            return Some(Act::Send(self.send(now)?));
        }
        None
    }

    /// When it next wants a call of [`Sender::act`].
    pub fn next_wake(&self) -> Time {
        self.next_frame.min(self.next_packet())
    }

    /// A report came.
    pub fn on_report(&mut self, report: &Report, now: Time) {
        let mut heard = Heard::default();
        let mut last = None;
        for (sequence, ecn, came_at) in report.received() {
            let Some(place) = sequence.checked_sub(self.base).map(|place| place as usize) else { continue };
            let Some(sent) = self.sent.get_mut(place) else { continue };
            match sent.fate {
                Fate::Came => continue,
                Fate::Lost(since) => self.reordering = self.reordering.max(now.since(since)),
                Fate::Open | Fate::Missing(_) => {}
            }
            sent.fate = Fate::Came;
            heard.units += 1;
            if ecn == Ecn::Ce {
                heard.units_ce += 1;
                heard.acked_ce += f64::from(sent.size);
            }
            if sequence >= self.highest {
                heard.acked += (sent.total - self.highest_bytes) as f64;
                (self.highest, self.highest_bytes) = (sequence + 1, sent.total);
                last = Some((sent.at, came_at));
            }
        }
        heard.is_loss = self.find_losses(now);
        if let Some((sent_at, came_at)) = last {
            self.measure(sent_at, came_at, report.at, now);
            self.waits = self.waited(sent_at, came_at);
        }
        self.forget();
        let Some(round_trip) = self.round_trip else { return };
        (heard.waits, heard.round_trip, heard.in_flight) = (self.waits, round_trip, self.in_flight() as f64);
        if heard.units > 0 || heard.is_loss {
            self.scream.on_report(&heard, now);
        }
    }

    fn in_flight(&self) -> u64 {
        self.sent_bytes - self.highest_bytes
    }

    /// When the first packet that waits may be sent.
    fn next_packet(&self) -> Time {
        let Some((_, packet)) = self.queue.front() else { return Time::NEVER };
        let in_flight = self.in_flight();
        if in_flight == 0 || self.scream.lets_out(f64::from(packet.size), in_flight as f64) {
            return self.paced_until;
        }
        let stalled = self.sent_at + time_for(packet.size, Scream::least_pace());
        stalled.max(self.paced_until)
    }

    /// Throws away what waits.
    fn discard(&mut self) -> Act {
        let from = self.queue.front().map_or(self.frames, |(_, packet)| packet.frame);
        self.queue.clear();
        self.encoder.ask_for_key_frame();
        Act::Discard(from, self.frames)
    }

    /// Encodes a frame, while the oldest packet has waited for `waited`.
    fn encode(&mut self, waited: Span) -> Act {
        let encoded = self.next_frame;
        self.next_frame = encoded + self.config.frame_period;
        let rate = self.scream.rate();
        let mean = rate * self.config.frame_period.secs_f64() / 8.0;
        let asked = self.encoder.frame(mean, &self.config);
        // The rate is that of IP packets: their headers come out of the frame.
        let full = self.config.packet - HEADER_BYTES;
        let headers = f64::from(HEADER_BYTES) * (asked / f64::from(self.config.packet)).ceil();
        let bytes = (asked - headers).max(LEAST_FRAME) as u32;
        let packets = bytes.div_ceil(full);
        let frame = Frame { number: self.frames, bytes, packets, rate_bps: rate as u64 };
        for place in 0..packets {
            let is_last = place + 1 == packets;
            let size = HEADER_BYTES + if is_last { bytes - place * full } else { full };
            let sequence = self.next + self.queue.len() as u64;
            self.queue.push_back((encoded, Packet { sequence, frame: frame.number, is_last, size }));
        }
        self.frames += 1;
        self.scream.on_frame(f64::from(bytes + packets * HEADER_BYTES), waited.secs_f64());
        Act::Encoded(frame)
    }

    /// Sends the first packet that waits.
    fn send(&mut self, now: Time) -> Option<Packet> {
        let (_, mut packet) = self.queue.pop_front()?;
        packet.sequence = self.next;
        self.next += 1;
        self.sent_bytes += u64::from(packet.size);
        self.sent.push_back(Sent { at: now, size: packet.size, total: self.sent_bytes, fate: Fate::Open });
        self.scream.on_sent(self.in_flight() as f64);
        (self.sent_at, self.paced_until) = (now, now + time_for(packet.size, self.scream.pace()));
        Some(packet)
    }

    /// Finds what is missing before the highest that came, and what of it is lost by now.
    fn find_losses(&mut self, now: Time) -> bool {
        let (base, highest) = (self.base, self.highest);
        // RFC 8985 §6.2 step 4: no longer than a round trip.
        let reordering = self.round_trip.map_or(self.reordering, |most| self.reordering.min(Span::from_secs_f64(most)));
        let before = (highest.saturating_sub(base) as usize).min(self.sent.len());
        let mut found = 0;
        for sent in self.sent.iter_mut().take(before) {
            if sent.fate == Fate::Open {
                sent.fate = Fate::Missing(now);
            }
            if let Fate::Missing(since) = sent.fate
                && now.since(since) >= reordering
            {
                sent.fate = Fate::Lost(since);
                found += 1;
            }
        }
        self.lost += found;
        found > 0
    }

    /// Forgets what no report will speak of again.
    fn forget(&mut self) {
        while let Some(first) = self.sent.front()
            && self.base + REPORTED < self.highest
            && matches!(first.fate, Fate::Came | Fate::Lost(_))
        {
            self.sent.pop_front();
            self.base += 1;
        }
    }

    /// Measures round trip and delay by the last packet that came.
    fn measure(&mut self, sent_at: Time, came_at: Time, reported_at: Time, now: Time) {
        let held = reported_at.since(came_at);
        let sample = now.since(sent_at).saturating_sub(held).secs_f64();
        self.round_trip = Some(self.round_trip.map_or(sample, |smoothed| 0.875 * smoothed + 0.125 * sample));
        let minute = now.ns() / 60_000_000_000;
        if self.least.is_empty() || minute > self.minute {
            self.minute = minute;
            self.least.push_back(f64::INFINITY);
            if self.least.len() > MINUTES {
                self.least.pop_front();
            }
        }
        let delay = delay_s(sent_at, came_at);
        if let Some(least) = self.least.back_mut() {
            *least = least.min(delay);
        }
    }

    /// How long a packet waited on its way: its delay less the least that is known.
    fn waited(&self, sent_at: Time, came_at: Time) -> f64 {
        let least = self.least.iter().copied().fold(f64::INFINITY, f64::min);
        delay_s(sent_at, came_at) - least
    }
}

/// The delay one way, seconds.
fn delay_s(sent_at: Time, came_at: Time) -> f64 {
    came_at.secs_f64() - sent_at.secs_f64()
}

fn time_for(bytes: u32, rate_bps: f64) -> Span {
    Span::from_secs_f64(f64::from(bytes) * 8.0 / rate_bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::Receiver;
    use crate::scream::Mode;
    use base::Rate;

    /// A sender of a packet a millisecond, each told of at once.
    fn sender() -> Sender {
        let config = Config {
            frame_period: Span::from_ms(1),
            rates: [Rate::from_bps(1_000_000), Rate::from_bps(2_000_000)],
            packet: 1200,
            key_frames: None,
            variation: 0.0,
            mode: Mode::Classic,
        };
        Sender::new(config, Time::ZERO, Stream::named(1, "media"))
    }

    #[test]
    fn the_reordering_window_becomes_as_long_as_a_packet_was_missing() {
        let (mut sender, mut receiver) = (sender(), Receiver::default());
        // Packets come 30 ms after they were sent, but these: so many milliseconds later than that.
        let late = [(100, 8), (300, 12), (500, 12)];
        let mut way: Vec<(u64, u64)> = Vec::new();
        let mut lost_by = Vec::new();
        for ms in 0..700 {
            let now = Time::ZERO + Span::from_ms(ms);
            while let Some(act) = sender.act(now) {
                if let Act::Send(packet) = act {
                    let more = late.iter().find(|(own, _)| *own == packet.sequence).map_or(0, |(_, more)| *more);
                    way.push((ms + 30 + more, packet.sequence));
                }
            }
            for (_, sequence) in way.extract_if(.., |(at, _)| *at == ms) {
                if let Some(report) = receiver.on_packet(sequence, true, Ecn::Ect0, now) {
                    sender.on_report(&report, now);
                }
            }
            if [250, 450, 650].contains(&ms) {
                lost_by.push((sender.lost, sender.reordering));
            }
        }
        // The first is lost at once, the next after 8 ms, the third not at all: 12 ms are waited for by then, less what
        // passed before a later packet told that it was missing.
        let [first, second, third] = lost_by[..] else { panic!("three instants") };
        assert_eq!([first.0, second.0, third.0], [1, 2, 2], "{lost_by:?}");
        let is_about = |window: Span, ms: u64| window <= Span::from_ms(ms) && window >= Span::from_ms(ms - 2);
        assert!(is_about(first.1, 8) && is_about(second.1, 12) && second == third, "{lost_by:?}");
    }
}
