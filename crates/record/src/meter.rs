//! A [`Meter`] counts what passes one direction of a link.

use crate::rows::QueueRow;
use crate::seconds::seconds;
use aqm::{Backlog, Cause, Cells, Framing, Gauges};
use base::{Span, Time};
use hdrhistogram::Histogram;
use net::Port;

/// The counts of one direction of a link: those of the measured window and those of the interval under way.
#[derive(Clone, Debug)]
pub struct Meter {
    window: Counts,
    framing: Framing,
    is_measuring: bool,
    interval: QueueRow,
    interval_wait_ns: u64,
    interval_wait_max_ns: u64,
    /// Of the intervals that are over.
    past: Passed,
    /// Losses in a row so far.
    run: u32,
}

/// What left a link since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes.
    pub bytes: u64,
    /// Sum of the waits, ns.
    pub wait_ns: u64,
}

/// What was counted within the measured window.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Packets that arrived at the discipline.
    pub offered: u64,
    /// Packets that left the link.
    pub delivered: u64,
    /// Bytes of the packets that left the link.
    pub delivered_bytes: u64,
    /// What these bytes took on the wire, framing and cells included.
    pub wire_bytes: u64,
    /// Packets lost, by cause.
    pub dropped: [u64; Cause::ALL.len()],
    /// Packets marked, by cause.
    pub marked: [u64; Cause::ALL.len()],
    /// Packets lost and packets marked for causes of the discipline's own, which are among the others by their kinds.
    pub own: Vec<(Cause, [u64; 2])>,
    /// UDP packets that arrived.
    pub udp_offered: u64,
    /// UDP packets lost.
    pub udp_lost: u64,
    /// Segments and UDP packets that were lost before they arrived here.
    pub lost_before_link: [u64; 2],
    /// Sum of the waits of the packets that left, ns.
    pub wait_sum: f64,
    /// Sum of the squares of these waits, ns².
    pub wait_squares: f64,
    /// The integral of the number of waiting packets over time, packets x ns.
    pub waiting_packet_ns: u128,
    /// How many packets waited how long.
    waits: WaitBins,
    /// How many runs of consecutive losses there were of each length; the last holds all longer ones.
    pub runs: [u64; 64],
    /// Losses in all complete runs.
    pub run_losses: u64,
}

/// Unit of the histogram of waiting times.
const WAIT_UNIT_NS: u64 = 100;
/// Longest waiting time it tells apart, as which all longer ones count: 859 s.
const WAIT_MOST: u64 = (1 << 33) - 1;

/// The bins of a histogram of waits with two significant digits. The histogram itself is made when it is read.
#[derive(Clone, Debug)]
struct WaitBins(Box<[u64]>);

impl WaitBins {
    /// Values below two halves are told apart; above, each octave has one half of bins.
    const HALF: u64 = 128;

    fn new() -> Self {
        Self(vec![0; Self::bin(WAIT_MOST) + 1].into())
    }

    /// The bin of a wait that is given in units.
    #[inline]
    const fn bin(units: u64) -> usize {
        let octave = 56 - (units | (2 * Self::HALF - 1)).leading_zeros() as u64;
        (octave * Self::HALF + (units >> octave)) as usize
    }

    /// The least wait, in units, that goes into this bin.
    const fn least(bin: usize) -> u64 {
        let bin = bin as u64;
        let octave = (bin / Self::HALF).saturating_sub(1);
        (bin - octave * Self::HALF) << octave
    }

    #[inline]
    fn add(&mut self, wait_ns: u64) {
        self.0[Self::bin((wait_ns / WAIT_UNIT_NS).min(WAIT_MOST))] += 1;
    }

    /// The longest wait of each bin that has any, in units, and how many there were.
    fn counted(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.0.iter().enumerate().filter(|&(_, &count)| count > 0);
        all.map(|(bin, &count)| (Self::least(bin + 1) - 1, count))
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, WAIT_MOST, 2).expect("the bounds are in order");
        for (bin, &count) in self.0.iter().enumerate() {
            histogram.saturating_record_n(Self::least(bin), count);
        }
        histogram
    }
}

impl Meter {
    /// A meter that has seen nothing, of a link with this framing. Measuring starts with [`Meter::start`].
    pub fn new(framing: Framing) -> Self {
        Self {
            window: Counts {
                offered: 0,
                delivered: 0,
                delivered_bytes: 0,
                wire_bytes: 0,
                dropped: [0; Cause::ALL.len()],
                marked: [0; Cause::ALL.len()],
                own: Vec::new(),
                udp_offered: 0,
                udp_lost: 0,
                lost_before_link: [0; 2],
                wait_sum: 0.0,
                wait_squares: 0.0,
                waiting_packet_ns: 0,
                waits: WaitBins::new(),
                runs: [0; 64],
                run_losses: 0,
            },
            framing,
            is_measuring: false,
            interval: QueueRow::default(),
            interval_wait_ns: 0,
            interval_wait_max_ns: 0,
            past: Passed::default(),
            run: 0,
        }
    }

    /// Begins the measured window. `packet_ns` is the integral of the number of waiting packets until then.
    pub fn start(&mut self, packet_ns: u128) {
        self.is_measuring = true;
        self.window.waiting_packet_ns = packet_ns;
    }

    /// Ends the measured window. `packet_ns` is that integral until then.
    pub fn stop(&mut self, packet_ns: u128) {
        self.window.waiting_packet_ns = packet_ns - self.window.waiting_packet_ns;
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

    /// What left since the run began, the interval under way included.
    pub fn passed(&self) -> Passed {
        Passed {
            bytes: self.past.bytes + self.interval.delivered_bytes,
            wait_ns: self.past.wait_ns + self.interval_wait_ns,
        }
    }

    /// Counts a packet of this direction that was lost before it arrived at the link.
    pub fn lost_before_link(&mut self, is_udp: bool) {
        self.window.lost_before_link[usize::from(is_udp)] += u64::from(self.is_measuring);
    }

    /// Counts a packet that arrived.
    #[inline]
    pub fn offered(&mut self) {
        self.offered_all(1, 0);
    }

    /// Counts packets that arrived, among them `udp` UDP packets that have crossed no other link.
    #[inline]
    pub fn offered_all(&mut self, packets: u32, udp: u32) {
        self.interval.offered_packets = self.interval.offered_packets.saturating_add(packets);
        if self.is_measuring {
            self.window.offered += u64::from(packets);
            self.window.udp_offered += u64::from(udp);
        }
    }

    /// Counts the packet that arrived as a UDP packet that has crossed no other link.
    pub fn udp_offered(&mut self) {
        self.window.udp_offered += u64::from(self.is_measuring);
    }

    /// Counts a packet that was accepted, which ends a run of losses.
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

    /// Counts a packet that was lost.
    pub fn dropped(&mut self, cause: Cause, is_udp: bool) {
        self.run = self.run.saturating_add(1);
        self.interval.dropped_packets = self.interval.dropped_packets.saturating_add(1);
        if self.is_measuring {
            self.window.dropped[cause.index()] += 1;
            self.window.count_own(cause, 0);
            self.window.udp_lost += u64::from(is_udp);
        }
    }

    /// Counts a packet that was marked.
    pub fn marked(&mut self, cause: Cause) {
        self.interval.marked_packets = self.interval.marked_packets.saturating_add(1);
        if self.is_measuring {
            self.window.marked[cause.index()] += 1;
            self.window.count_own(cause, 1);
        }
    }

    /// Counts a packet of `bytes` bytes that left after it had waited for `waited`.
    #[inline]
    pub fn delivered(&mut self, bytes: u32, waited: Span) {
        self.delivered_all(std::iter::once((bytes, waited)));
    }

    /// Counts packets that left: the bytes of each, and how long it waited.
    #[inline]
    pub fn delivered_all(&mut self, packets: impl Iterator<Item = (u32, Span)>) {
        let (mut count, mut bytes, mut sum, mut most) = (0_u32, 0_u64, 0_u64, self.interval_wait_max_ns);
        let window = &mut self.window;
        let (mut window_sum, mut squares) = (window.wait_sum, window.wait_squares);
        // Bytes that cells add to each packet beyond its overhead.
        let (has_cells, mut cells) = (self.framing.cells != Cells::None, 0);
        for (size, waited) in packets {
            let wait = waited.ns();
            count += 1;
            bytes += u64::from(size);
            sum += wait;
            most = most.max(wait);
            if self.is_measuring {
                window_sum += wait as f64;
                squares += wait as f64 * wait as f64;
                window.waits.add(wait);
                if has_cells {
                    cells += u64::from(self.framing.wire(size) - self.framing.overhead - size);
                }
            }
        }
        self.interval.delivered_packets = self.interval.delivered_packets.saturating_add(count);
        self.interval.delivered_bytes += bytes;
        self.interval_wait_ns += sum;
        self.interval_wait_max_ns = most;
        if self.is_measuring {
            window.delivered += u64::from(count);
            window.delivered_bytes += bytes;
            window.wire_bytes += bytes + u64::from(count) * u64::from(self.framing.overhead) + cells;
            (window.wait_sum, window.wait_squares) = (window_sum, squares);
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
        self.past = self.passed();
        self.interval = QueueRow::default();
        self.interval_wait_ns = 0;
        self.interval_wait_max_ns = 0;
        row
    }
}

impl Counts {
    /// Counts a loss (0) or a mark (1) whose cause is the discipline's own.
    #[inline]
    fn count_own(&mut self, cause: Cause, what: usize) {
        if !cause.is_own() {
            return;
        }
        let at = self.own.iter().position(|(known, _)| *known == cause).unwrap_or_else(|| {
            self.own.push((cause, [0; 2]));
            self.own.len() - 1
        });
        self.own[at].1[what] += 1;
    }

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

    /// How many packets waited how long: for each of some lengths, the shortest first, those that waited no longer, and
    /// longer than the one before. Lengths are told apart to two digits.
    pub fn waits(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.waits.counted().map(|(units, count)| (Span::from_ns(units * WAIT_UNIT_NS), count))
    }

    /// The time waited that the fraction `q` of packets did not exceed, seconds.
    pub fn wait_quantile_s(&self, q: f64) -> Option<f64> {
        self.wait_quantiles_s([q]).map(|[wait]| wait)
    }

    /// The same for several fractions at once.
    pub fn wait_quantiles_s<const N: usize>(&self, q: [f64; N]) -> Option<[f64; N]> {
        (self.delivered > 0).then(|| {
            let waits = self.waits.histogram();
            q.map(|q| seconds((waits.value_at_quantile(q) * WAIT_UNIT_NS) as f64))
        })
    }

    /// Mean length of runs of consecutive losses; `None` if there was none.
    pub fn loss_run_mean(&self) -> Option<f64> {
        let runs: u64 = self.runs.iter().sum();
        (runs > 0).then(|| self.run_losses as f64 / runs as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;

    /// A quantile is the first length at which so many packets are counted.
    #[test]
    fn lengths_of_waits_are_those_of_the_quantiles() {
        let mut meter = Meter::new(Framing::default());
        meter.start(0);
        let mut random = Stream::named(1, "waits");
        let none = Backlog { packets: 0, bytes: 0 };
        for _ in 0..10_000 {
            let ns = 1 << random.below(38);
            meter.delivered(1000, Span::from_ns(ns + random.below(ns)));
        }
        let _: QueueRow = meter.take_interval(Time::ZERO, Port::new(0, 0), none, Gauges::default());
        let window = meter.window();
        assert_eq!(window.waits().map(|(_, packets)| packets).sum::<u64>(), 10_000);
        assert!(window.waits().is_sorted_by(|one, next| one.0 < next.0));
        for q in [0.01, 0.25, 0.5, 0.95, 0.99, 1.0] {
            let mut counted = 0;
            let at = window.waits().find(|&(_, packets)| {
                counted += packets;
                counted as f64 >= q * 10_000.0
            });
            assert_eq!(at.map(|(wait, _)| seconds(wait.ns() as f64)), window.wait_quantile_s(q), "{q}");
        }
    }

    /// A row has 32 bits for packets: an interval with more has as many as these hold.
    #[test]
    fn the_packets_of_an_interval_end_at_what_a_row_holds() {
        let mut meter = Meter::new(Framing::default());
        meter.start(0);
        (0..2).for_each(|_| meter.offered_all(u32::MAX, 0));
        let row = meter.take_interval(Time::ZERO, Port::new(0, 0), Backlog { packets: 0, bytes: 0 }, Gauges::default());
        assert_eq!((row.offered_packets, meter.window().offered), (u32::MAX, 2 * u64::from(u32::MAX)));
    }

    /// Waits beyond the last bin go into it, behind all that are shorter.
    #[test]
    fn the_longest_waits_count_as_the_longest() {
        let mut meter = Meter::new(Framing::default());
        meter.start(0);
        for wait_s in [590, 650, 800, 1000, 1_000_000] {
            meter.delivered(1000, Span::from_secs(wait_s));
        }
        let quantiles = meter.window().wait_quantiles_s([0.2, 0.4, 0.6, 0.8, 1.0]).expect("packets left");
        // To two digits of 1/128, and the end of the last bin.
        for (found, told_s) in quantiles.into_iter().zip([590.0, 650.0, 800.0, 858.9, 858.9]) {
            assert!((told_s..told_s * (1.0 + 1.0 / 128.0)).contains(&found), "{found} {told_s}");
        }
        assert_eq!(meter.window().waits().last(), Some((Span::from_ns(WAIT_MOST * WAIT_UNIT_NS), 2)));
    }

    /// What left is counted through the ends of intervals.
    #[test]
    fn what_left_is_summed_over_intervals() {
        let mut meter = Meter::new(Framing::default());
        let none = Backlog { packets: 0, bytes: 0 };
        for interval in 1..=3_u64 {
            meter.delivered(1000, Span::from_ms(5));
            assert_eq!(meter.passed(), Passed { bytes: 1000 * interval, wait_ns: 5_000_000 * interval });
            meter.take_interval(Time::ZERO, Port::new(0, 0), none, Gauges::default());
            assert_eq!(meter.passed(), Passed { bytes: 1000 * interval, wait_ns: 5_000_000 * interval });
        }
    }

    /// A cause of the discipline's own is counted by itself and in its kind.
    #[test]
    fn own_causes_add_up_with_kinds() {
        let [burst, probe] = ["burst", "probe"].map(|name| Cause::own(name, Cause::EARLY).expect("there is room"));
        let mut meter = Meter::new(Framing::default());
        meter.dropped(burst, false);
        meter.start(0);
        for cause in [Cause::EARLY, burst, probe, burst, Cause::TAIL] {
            meter.dropped(cause, false);
        }
        meter.marked(probe);
        let window = meter.window();
        assert_eq!((window.dropped_total(), window.dropped[Cause::EARLY.index()], window.marked_total()), (5, 4, 1));
        assert_eq!(window.own, [(burst, [2, 0]), (probe, [1, 1])]);
    }

    /// Quantiles read from the bins are those of a histogram that was given each wait.
    #[test]
    fn bins_are_those_of_the_histogram() {
        let mut stream = Stream::named(1, "waits");
        let mut told: Histogram<u64> = Histogram::new_with_bounds(1, WAIT_MOST, 2).expect("the bounds are in order");
        let mut bins = WaitBins::new();
        for wait in (0..60_000).chain((0..50_000).map(|_| stream.bits() >> stream.below(64))) {
            bins.add(wait);
            told.saturating_record(wait / WAIT_UNIT_NS);
        }
        for q in (0..=1000).map(|k| f64::from(k) / 1000.0) {
            assert_eq!(bins.histogram().value_at_quantile(q), told.value_at_quantile(q), "{q}");
        }
    }
}
