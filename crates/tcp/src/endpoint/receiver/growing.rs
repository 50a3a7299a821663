//! The receive window grows with what arrives, as by Linux's autotuning.
//!
//! A connection is offered half of a small buffer at first. Every segment that arrives lets the offer grow by two, up
//! to what the buffer holds. When more arrives in a round trip than in any before, the buffer grows to twice that, and
//! further if the sender is still speeding up. The sender seldom notices: the offer stays ahead of it. But a receiver
//! whose window has just grown acknowledges at once, so that in slow start every segment is acknowledged.
//!
//! Source: Linux 6.12, tcp_input.c: tcp_init_buffer_space, tcp_grow_window, tcp_rcv_space_adjust,
//! tcp_rcv_rtt_measure_ts, tcp_rcv_rtt_measure.
//!
//! | Linux               | here        |
//! |---------------------|-------------|
//! | `rcv_ssthresh`      | `offer`     |
//! | `window_clamp`      | `most`      |
//! | `sk_rcvbuf`         | `buffer`    |
//! | `rcvq_space.space`, `.seq`, `.time` | `arrived`, `from`, `since` |
//! | `rcv_rtt_est.rtt_us`| `round_trip_8` |
//! | `rcv_rtt_est.seq`, `.time` | `window_end`, `window_began` |
//!
//! # Deviations
//! - A full segment takes 2304 bytes of buffer, half a page and its header, whatever the network card. Small segments
//!   let the window grow as full ones do.

use crate::segment::Segment;
use crate::stack::Config;
use base::{Span, Time};

/// What a full segment takes of the buffer (`truesize`).
const FULL: u64 = 2304;
/// Payload in 256 bytes of buffer, before the first full segment and after (`scaling_ratio`).
const SHARE_AT_FIRST: u64 = 128;
const SHARE: u64 = 1448 * 256 / FULL;
/// The least payload that lets the window grow.
const LEAST: u64 = 128;

/// What the window may be, and what that follows from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Growing {
    pub(super) offer: u64,
    most: u64,
    buffer: u64,
    share: u64,
    arrived: u64,
    from: u64,
    since: Time,
    round_trip_8: u64,
    window_end: u64,
    window_began: Time,
}

base::packed!(Growing { offer, most, buffer, share, arrived, from, since, round_trip_8, window_end, window_began });

impl Growing {
    pub(super) fn new(config: &Config) -> Self {
        let mss = u64::from(config.mss);
        let half = (config.receive_buffer * SHARE_AT_FIRST / 256).min(config.window);
        let most = half.saturating_sub(mss).max(2 * mss).min(config.window);
        let offer = if config.receive_buffer == 0 { config.window } else { most.min(half - half % mss).max(mss) };
        Self {
            offer,
            most,
            buffer: config.receive_buffer,
            share: SHARE_AT_FIRST,
            arrived: offer.min(10 * mss),
            from: 1,
            since: Time::ZERO,
            round_trip_8: 0,
            window_end: 0,
            window_began: Time::ZERO,
        }
    }

    /// How much of the buffer may be taken up.
    pub(super) fn space(&self, config: &Config) -> u64 {
        if self.buffer == 0 { config.window } else { (self.buffer * self.share / 256).min(config.window) }
    }

    /// Notes a segment that is larger than any before.
    pub(super) fn note_full(&mut self, config: &Config) {
        if self.buffer > 0 {
            self.share = SHARE;
            self.most = self.most.max(self.space(config));
        }
    }

    /// Whether the window is smaller than it may be.
    #[inline]
    pub(super) fn may_grow(&self, config: &Config) -> bool {
        self.buffer > 0 && self.offer < self.most.min(self.space(config))
    }

    /// Lets the window grow for `segment`, with `taken` bytes of payload in the buffer. Returns whether it grew.
    pub(super) fn grow(&mut self, segment: &Segment, taken: u64, config: &Config) -> bool {
        let len = u64::from(segment.payload);
        let taken = taken * FULL * self.share / 256 / u64::from(config.mss);
        let room = self.most.min(self.space(config).saturating_sub(taken)).saturating_sub(self.offer);
        if len < LEAST || room == 0 {
            return false;
        }
        self.offer += room.min(2 * len.max(config.mss.into()));
        true
    }

    /// Takes a round trip from a full `segment` whose echo is new.
    pub(super) fn measure(&mut self, segment: &Segment, stamp: u16) {
        let sample = Span::from_ms(u64::from(stamp.wrapping_sub(segment.echo))).ns();
        if sample == 0 {
            return;
        }
        self.round_trip_8 = if self.round_trip_8 == 0 || 8 * sample < self.round_trip_8 {
            8 * sample
        } else {
            self.round_trip_8 - self.round_trip_8 / 8 + sample
        };
    }

    /// Everything before `next` came in order, and `offered` more may: what was offered takes a round trip to be filled
    /// at least. Nothing longer than the shortest counts.
    pub(super) fn measure_window(&mut self, next: u64, offered: u64, now: Time) {
        if next < self.window_end {
            return;
        }
        if self.window_end > 0 {
            let sample = 8 * now.since(self.window_began).ns().max(1_000);
            if self.round_trip_8 == 0 || sample < self.round_trip_8 {
                self.round_trip_8 = sample;
            }
        }
        (self.window_end, self.window_began) = (next + offered, now);
    }

    /// The round trip; zero before the first.
    pub(super) fn round_trip(&self) -> Span {
        Span::from_ns(self.round_trip_8 / 8)
    }

    /// The application has read everything before `read`, and is about to read all before `next`. What it reads of a
    /// repaired hole counts in the next round trip, but for the first segment.
    pub(super) fn adjust(&mut self, read: u64, next: u64, config: &Config, now: Time) {
        if self.round_trip_8 == 0 || now.since(self.since).ns() < self.round_trip_8 / 8 || self.buffer == 0 {
            return;
        }
        let arrived = (read - self.from).saturating_sub(next - read);
        if arrived > self.arrived {
            let enough = 2 * arrived + 16 * u64::from(config.mss);
            let speeding_up = enough * (arrived - self.arrived) / self.arrived;
            let window = (enough + 2 * speeding_up).min(config.window);
            let buffer = window * 256 / self.share;
            if buffer > self.buffer {
                (self.buffer, self.most) = (buffer, window);
            }
            self.arrived = arrived;
        }
        (self.from, self.since) = (read, now);
    }
}
