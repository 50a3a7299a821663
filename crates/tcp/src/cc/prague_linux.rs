//! Prague as TCP Prague for Linux has it, version 0.7, where that goes beyond the draft or departs from it.
//!
//! Source: the L4S team's Linux, `net/ipv4/tcp_prague.c` of 2024 and 2025, read for what it does. Of the draft's scheme
//! in [`prague`](super::prague) these are different:
//!
//! - **Start**: `alpha` is zero until something was marked, and the first mark halves the window by itself.
//! - **Steps**: the window has whole segments, and moves by one with each acknowledgement towards a fractional window,
//!   rounded up. What takes it down sets the threshold of slow start.
//! - **Independence of the round trip** begins four rounds after slow start, and not 500.
//! - **Small windows**, of up to four full packets: then the rate is what is controlled, and the window follows from it
//!   and from a round trip that is averaged over 128 rounds. In the first half of each round the rate is 3 % higher, in
//!   the second 3 % lower, so that a steady link marks a little in each.
//! - **Pacing** counts full packets of the window, or what is in the network if that is more.
//! - **Marks** that come within 25 ms of a reduction leave the window, but nothing else is answered for a round trip.
//!
//! # Deviations
//! - Packets stay as large as they are. TCP Prague makes them smaller below 1 Mb/s.
//! - It computes in whole numbers of 2^-20 segments and 2^-24 of `alpha`.

use super::{Cause, Congestion, Controller, Stage, Steer, Told, Window};
use crate::stack::Config;
use base::{Span, Time};

/// Weight of the last round in the estimate: `PRAGUE_SHIFT_G`.
const GAIN: f64 = 1.0 / 16.0;
/// Flows with shorter round trips come to behave as if theirs were this long: `RTT_TARGET`.
const TARGET: Span = Span::from_ms(25);
/// After so many rounds since slow start they do: `DEFAULT_RTT_TRANSITION`.
const TRANSITION: u32 = 4;
/// The smallest window, segments, and the least rate, bytes a second: `MIN_CWND_RTT`, `MINIMUM_RATE`.
const LEAST_WINDOW: f64 = 2.0;
const LEAST_RATE: f64 = 12_500.0;
/// Windows of up to so many full packets, and what those are, bytes: `prague_cwnd_transit`, `MTU_SYS`.
const SMALL: f64 = 4.0;
const FULL: f64 = 1_500.0;
/// How much the rate varies within a round: `RATE_OFFSET` of 2 to the power of `OFFSET_UNIT`.
const OFFSET: f64 = 4.0 / 128.0;
/// Weight of a round in the average of round trips: `HSRTT_SHIFT`.
const SLOWLY: f64 = 1.0 / 128.0;
/// Bursts a second: 2 to the power of `prague_burst_shift`.
const BURSTS: f64 = 4_096.0;

/// The state of TCP Prague. Windows are in segments, rates in bytes of IP packets a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PragueLinux {
    /// The fractional window, to which the window grows again after a timeout; none before the connection is open.
    fraction: Option<f64>,
    rate: f64,
    /// What packets are paced at.
    pace: f64,
    /// The rate is controlled, and not the window.
    controls_rate: bool,
    alpha: f64,
    has_seen_mark: bool,
    is_counted: bool,
    is_slow_start: bool,
    /// By how much of a segment the window grows in a round.
    scale: f64,
    /// Segments that arrived, and those of them that were marked, since the estimate was brought up to date.
    acked: f64,
    marked: f64,
    /// The round is over when this is acknowledged.
    round_end: u64,
    /// Rounds since slow start.
    rounds: u32,
    updated_at: Time,
    reduced_at: Option<Time>,
    srtt: Option<Span>,
    /// Averaged over many rounds, s.
    long_rtt: f64,
    /// The window and the rate before the last loss, and that window in bytes of payload.
    before_loss: (f64, f64, f64),
    /// Bytes of headers.
    header: f64,
}

base::left_whole!(PragueLinux);

impl PragueLinux {
    fn is_independent(&self) -> bool {
        !self.is_slow_start && self.rounds >= TRANSITION && self.is_counted
    }

    fn has_rate(&self) -> bool {
        self.is_independent() && self.controls_rate
    }

    fn srtt_s(&self) -> f64 {
        self.srtt.map_or(1.0, Span::secs_f64)
    }

    fn virtual_rtt(&self) -> Span {
        self.srtt.map_or(TARGET, |srtt| srtt.max(TARGET))
    }

    fn rate_of(&self, fraction: f64, packet: f64) -> f64 {
        (packet / self.srtt_s() * fraction).max(LEAST_RATE)
    }

    fn window_of(&self, rate: f64, packet: f64) -> f64 {
        rate * self.long_rtt / packet
    }

    fn set_scale(&mut self) {
        self.scale = match self.srtt {
            Some(srtt) if self.rounds >= TRANSITION && srtt < TARGET => (srtt.secs_f64() / TARGET.secs_f64()).powi(2),
            _ => 1.0,
        };
    }

    /// Takes in what arrived, and moves the window by a segment at most once slow start is over.
    fn move_window(&mut self, window: &mut Window, segments: f64, marks: f64, packet: f64, told: &Told) {
        let mut fraction = self.fraction.unwrap_or(window.cwnd / told.mss);
        let mut unmarked = segments - marks;
        if marks > 0.0 {
            if !self.has_seen_mark {
                fraction /= 2.0;
            }
            self.has_seen_mark = true;
        }
        if unmarked > 0.0 && told.stage == Stage::Open && told.is_window_used {
            if self.is_slow_start {
                let step = (unmarked * told.mss).min((window.ssthresh - window.cwnd).max(0.0));
                window.cwnd += step;
                unmarked -= step / told.mss;
                fraction = window.cwnd / told.mss;
                self.is_slow_start = window.in_slow_start();
                if unmarked < 1e-9 {
                    self.fraction = Some(fraction);
                    self.set_scale();
                    return;
                }
            }
            if self.has_rate() {
                let virtual_s = self.virtual_rtt().secs_f64();
                let virtual_window = (self.rate * virtual_s / packet).ceil().max(1.0);
                self.rate += unmarked * FULL / virtual_s / virtual_window;
                fraction = fraction.max(self.window_of(self.rate, packet));
            } else {
                fraction += unmarked * self.scale / fraction * FULL / packet;
                self.rate = self.rate.max(self.rate_of(fraction, packet));
            }
        }
        self.fraction = Some(fraction);
        let aim = (fraction - 1e-9).ceil().max(LEAST_WINDOW) * told.mss;
        if window.cwnd > aim {
            window.cwnd -= told.mss;
            window.ssthresh = window.cwnd;
            self.set_scale();
        } else if window.cwnd < aim {
            window.cwnd += told.mss;
            self.set_scale();
        }
        self.is_slow_start = window.in_slow_start();
    }

    /// Ends the round if it is over, and brings the estimate up to date.
    fn end_round(&mut self, told: &Told) {
        let is_early = self.is_independent() && told.now.since(self.updated_at) < TARGET;
        if told.una < self.round_end || is_early {
            return;
        }
        if self.has_seen_mark {
            let share = if self.acked > 0.0 { self.marked / self.acked } else { 0.0 };
            self.alpha = (self.alpha + GAIN * (share - self.alpha)).min(1.0);
            self.updated_at = told.now;
        }
        self.long_rtt += (self.srtt_s() - self.long_rtt) * SLOWLY;
        (self.acked, self.marked, self.round_end) = (0.0, 0.0, told.nxt);
        self.rounds = if self.is_slow_start { self.rounds } else { self.rounds.saturating_add(1) };
        self.set_scale();
    }

    /// Sets what packets are paced at, with `in_flight` segments in the network.
    fn set_pace(&mut self, window: &Window, in_flight: f64, packet: f64, now: Time) {
        self.pace = if self.has_rate() {
            let is_late = now.since(self.updated_at) >= self.virtual_rtt() / 2;
            self.rate * (1.0 + if is_late { -OFFSET } else { OFFSET })
        } else {
            let whole = self.fraction.unwrap_or(0.0).floor().max(in_flight);
            self.rate = self.rate_of(whole, packet);
            self.rate
        };
        if window.cwnd < window.ssthresh / 2.0 {
            self.pace *= 2.0;
        }
    }

    /// Whether the rate or the window is to be controlled from now on.
    fn choose(&mut self, window: &Window, packet: f64, mss: f64) {
        let fraction = self.fraction.unwrap_or(window.cwnd / mss);
        self.controls_rate = self.has_seen_mark && window.cwnd / mss * packet <= SMALL * FULL;
        if self.controls_rate {
            self.fraction = Some(self.window_of(self.rate, packet));
        } else {
            self.rate = self.rate_of(fraction, packet);
        }
    }

    /// Takes `share` off the window, or off the rate.
    fn shrink(&mut self, share: f64, packet: f64, cwnd: f64) {
        if self.has_rate() {
            self.rate = (self.rate * (1.0 - share)).max(LEAST_RATE);
            self.fraction = Some(self.window_of(self.rate, packet));
        } else {
            let left = self.fraction.unwrap_or(cwnd) * (1.0 - share);
            self.fraction = Some(left);
            self.rate = self.rate_of(left, packet);
        }
    }
}

impl Controller for PragueLinux {
    const MODELS_PATH: bool = true;
    const SAMPLES_RATE: bool = false;
    const NEEDS_COUNTS: bool = true;

    fn new(config: &Config) -> Self {
        Self {
            fraction: None,
            rate: LEAST_RATE,
            pace: f64::INFINITY,
            controls_rate: false,
            alpha: 0.0,
            has_seen_mark: false,
            is_counted: false,
            is_slow_start: true,
            scale: 1.0,
            acked: 0.0,
            marked: 0.0,
            round_end: 0,
            rounds: 0,
            updated_at: Time::ZERO,
            reduced_at: None,
            srtt: None,
            long_rtt: 0.0,
            before_loss: (0.0, 0.0, 0.0),
            header: f64::from(config.header),
        }
    }

    fn opened(&mut self, window: &Window, mss: f64, rtt: Span, now: Time) {
        (self.srtt, self.long_rtt, self.updated_at) = (Some(rtt), rtt.secs_f64(), now);
        let fraction = window.cwnd / mss;
        self.fraction = Some(fraction);
        self.set_pace(window, fraction, mss + self.header, now);
    }

    #[inline(never)]
    fn told(&mut self, window: &mut Window, told: &Told) {
        (self.is_counted, self.srtt) = (told.marked.is_some(), told.srtt);
        let packet = told.mss + self.header;
        self.is_slow_start = window.in_slow_start();
        let (segments, marks) = (told.bytes as f64 / told.mss, told.marked.unwrap_or(0) as f64 / told.mss);
        self.move_window(window, segments, marks, packet, told);
        (self.acked, self.marked) = (self.acked + segments, self.marked + marks);
        self.end_round(told);
        let in_flight = (told.in_flight as f64 / told.mss).ceil();
        self.set_pace(window, in_flight, packet, told.now);
        self.choose(window, packet, told.mss);
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        let (packet, cwnd) = (congestion.mss + self.header, window.cwnd / congestion.mss);
        match congestion.cause {
            Cause::Mark if self.is_counted => {
                let since = self.reduced_at.map(|at| congestion.now.since(at));
                if !(self.is_independent() && since.is_some_and(|since| since < TARGET)) {
                    self.reduced_at = Some(congestion.now);
                    self.shrink(self.alpha / 2.0, packet, cwnd);
                }
            }
            Cause::Mark | Cause::Loss | Cause::Probed => {
                self.before_loss = (cwnd, self.rate, window.cwnd);
                self.shrink(0.5, packet, cwnd);
            }
        }
        // The window comes down step by step, and the threshold with it.
        window.ssthresh
    }

    fn undone(&mut self, window: &mut Window) {
        let (cwnd, rate, bytes) = self.before_loss;
        window.cwnd = window.cwnd.max(bytes);
        self.rate = self.rate.max(rate);
        self.fraction = Some(self.fraction.unwrap_or(0.0).max(cwnd));
    }

    fn steer(&self) -> Option<Steer> {
        Some(Steer { bytes_per_second: self.pace, least_burst: 1, bursts_per_second: Some(BURSTS), hides_rate: false })
    }
}
