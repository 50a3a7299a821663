//! What passed one direction of a link.

use crate::rows::QueueRow;
use crate::seconds::seconds;
use aqm::{Backlog, Cause, Gauges};
use base::{Span, Time};
use hdrhistogram::Histogram;
use net::Port;

/// Counts of one direction, of the measured window and of the interval under way.
#[derive(Clone, Debug)]
pub struct Meter {
    window: Counts,
    is_measuring: bool,
    interval: QueueRow,
    interval_wait_ns: u64,
    interval_wait_max_ns: u64,
    /// Losses in a row so far.
    run: u32,
    /// Packets that wait, and since when there are so many.
    waiting: u32,
    waiting_since: Time,
}

/// What was counted within the measured window.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that left.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost, by cause.
    pub dropped: [u64; Cause::ALL.len()],
    /// Packets marked, by cause.
    pub marked: [u64; Cause::ALL.len()],
    /// UDP packets that arrived.
    pub udp_offered: u64,
    /// UDP packets lost.
    pub udp_lost: u64,
    /// Segments and UDP packets that were lost on their way here: they never arrived.
    pub lost_before_link: [u64; 2],
    /// Sum of the times waited, ns.
    pub wait_sum: f64,
    /// Sum of their squares, ns².
    pub wait_squares: f64,
    /// Packets that waited, summed over time: packets x ns.
    pub waiting_packet_ns: u128,
    /// Times waited, in units of 100 ns.
    pub waits: Histogram<u32>,
    /// How many runs of consecutive losses there were of each length; the last holds all longer ones.
    pub runs: [u64; 64],
    /// Losses in all complete runs.
    pub run_losses: u64,
}

/// Unit of the histogram of waiting times.
const WAIT_UNIT_NS: u64 = 100;
/// Longest waiting time it tells apart: ten minutes.
const WAIT_MOST: u64 = 600_000_000_000 / WAIT_UNIT_NS;

impl Meter {
    /// Nothing seen; measuring starts with [`Meter::start`].
    pub fn new() -> Self {
        let waits = Histogram::new_with_bounds(1, WAIT_MOST, 2).expect("the bounds are in order");
        Self {
            window: Counts {
                offered: 0,
                delivered: 0,
                delivered_bytes: 0,
                dropped: [0; Cause::ALL.len()],
                marked: [0; Cause::ALL.len()],
                udp_offered: 0,
                udp_lost: 0,
                lost_before_link: [0; 2],
                wait_sum: 0.0,
                wait_squares: 0.0,
                waiting_packet_ns: 0,
                waits,
                runs: [0; 64],
                run_losses: 0,
            },
            is_measuring: false,
            interval: QueueRow::default(),
            interval_wait_ns: 0,
            interval_wait_max_ns: 0,
            run: 0,
            waiting: 0,
            waiting_since: Time::ZERO,
        }
    }

    /// The measured window begins.
    pub fn start(&mut self, now: Time) {
        self.is_measuring = true;
        self.waiting_since = now;
    }

    /// The measured window is over.
    pub fn stop(&mut self, now: Time) {
        self.add_waiting(now);
        self.is_measuring = false;
    }

    /// Whether the measured window is under way.
    #[inline]
    pub const fn is_measuring(&self) -> bool {
        self.is_measuring
    }

    /// What was counted within the measured window.
    pub fn window(&self) -> &Counts {
        &self.window
    }

    /// A packet that was sent this way is lost and does not arrive.
    pub fn lost_before_link(&mut self, is_udp: bool) {
        self.window.lost_before_link[usize::from(is_udp)] += u64::from(self.is_measuring);
    }

    /// A packet arrived.
    #[inline]
    pub fn offered(&mut self) {
        self.interval.offered_packets += 1;
        self.window.offered += u64::from(self.is_measuring);
    }

    /// It is a UDP packet that has crossed no other link.
    pub fn udp_offered(&mut self) {
        self.window.udp_offered += u64::from(self.is_measuring);
    }

    /// A packet was accepted: a run of losses is over.
    #[inline]
    pub fn accepted(&mut self) {
        if self.run > 0 {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        if self.is_measuring {
            let last = self.window.runs.len() - 1;
            self.window.runs[(self.run as usize).min(last)] += 1;
            self.window.run_losses += u64::from(self.run);
        }
        self.run = 0;
    }

    /// From `now` on `packets` wait. Counted over time rather than over the waits of what was delivered (Little's law):
    /// packets dropped at the head of the queue waited too.
    #[inline]
    pub fn waiting(&mut self, packets: u32, now: Time) {
        if packets != self.waiting {
            self.add_waiting(now);
            self.waiting = packets;
        }
    }

    #[inline]
    fn add_waiting(&mut self, now: Time) {
        if self.is_measuring {
            let span = now.since(self.waiting_since);
            self.window.waiting_packet_ns += u128::from(self.waiting) * u128::from(span.ns());
        }
        self.waiting_since = now;
    }

    /// A packet was lost.
    pub fn dropped(&mut self, cause: Cause, is_udp: bool) {
        self.run += 1;
        self.interval.dropped_packets += 1;
        if self.is_measuring {
            self.window.dropped[cause as usize] += 1;
            self.window.udp_lost += u64::from(is_udp);
        }
    }

    /// A packet was marked.
    pub fn marked(&mut self, cause: Cause) {
        self.interval.marked_packets += 1;
        self.window.marked[cause as usize] += u64::from(self.is_measuring);
    }

    /// A packet left after waiting `waited`.
    #[inline]
    pub fn delivered(&mut self, bytes: u32, waited: Span) {
        let wait = waited.ns();
        self.interval.delivered_packets += 1;
        self.interval.delivered_bytes += u64::from(bytes);
        self.interval_wait_ns += wait;
        self.interval_wait_max_ns = self.interval_wait_max_ns.max(wait);
        if self.is_measuring {
            let window = &mut self.window;
            window.delivered += 1;
            window.delivered_bytes += u64::from(bytes);
            window.wait_sum += wait as f64;
            window.wait_squares += wait as f64 * wait as f64;
            window.waits.saturating_record(wait / WAIT_UNIT_NS);
        }
    }

    /// Ends the interval of `port` at `now` and starts the next.
    pub fn take_interval(&mut self, now: Time, port: Port, backlog: Backlog, gauges: Gauges) -> QueueRow {
        let row = QueueRow {
            time: now,
            link: port.link(),
            direction: port.direction(),
            queue_packets: backlog.packets,
            queue_bytes: backlog.bytes,
            queue_delay_sum: Span::from_ns(self.interval_wait_ns),
            queue_delay_max: Span::from_ns(self.interval_wait_max_ns),
            gauges,
            ..self.interval
        };
        self.interval = QueueRow::default();
        self.interval_wait_ns = 0;
        self.interval_wait_max_ns = 0;
        row
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counts {
    /// Packets lost, whatever the cause.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets marked, whatever the cause.
    pub fn marked_total(&self) -> u64 {
        self.marked.iter().sum()
    }

    /// Mean time waited, seconds; `None` if nothing left.
    pub fn wait_mean_s(&self) -> Option<f64> {
        (self.delivered > 0).then(|| seconds(self.wait_sum) / self.delivered as f64)
    }

    /// Standard deviation of the time waited, seconds.
    pub fn wait_sd_s(&self) -> Option<f64> {
        (self.delivered > 0).then(|| {
            let n = self.delivered as f64;
            let mean = self.wait_sum / n;
            seconds((self.wait_squares / n - mean * mean).max(0.0).sqrt())
        })
    }

    /// The time waited that the fraction `q` of packets did not exceed, seconds.
    pub fn wait_quantile_s(&self, q: f64) -> Option<f64> {
        (self.delivered > 0).then(|| seconds((self.waits.value_at_quantile(q) * WAIT_UNIT_NS) as f64))
    }

    /// Mean length of runs of consecutive losses; `None` if there was none.
    pub fn loss_run_mean(&self) -> Option<f64> {
        let runs: u64 = self.runs.iter().sum();
        (runs > 0).then(|| self.run_losses as f64 / runs as f64)
    }
}
