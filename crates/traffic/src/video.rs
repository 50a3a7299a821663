//! Viewers of video over HTTP (DASH): films in segments, of which the player chooses the bitrate one by one.
//!
//! A player asks for the next segment as soon as the one before is there and its buffer has room. It begins to play
//! when enough is buffered, and again so after a stall, which is when the buffer is empty before the film is over. A
//! film that was played to its end is followed by the next one.
//!
//! Two rules choose the bitrate:
//!
//! - [`Rule::Bba0`]: by what is buffered alone. T.-Y. Huang, R. Johari, N. McKeown, M. Trunnell and M. Watson, "A
//!   Buffer-Based Approach to Rate Adaptation: Evidence from a Large Video Streaming Service", SIGCOMM 2014, §4.
//! - [`Rule::Throughput`]: by how fast segments came, as the reference player Shaka (version 3.2) does with its
//!   defaults.
//!
//! | paper | here |
//! |---|---|
//! | `Rate_prev`, `Buf_now` | `choice`, `buffered` |
//! | `r`, `cu` | `reservoir`, `cushion` |
//! | `R_i`, `R_min`, `R_max` | `ladder`, its first and last |
//!
//! Deviations: segments of a bitrate all have the same size, so that reservoirs that follow from sizes (BBA-1) have no
//! meaning. Nobody seeks, pauses or leaves a film.
//!
//! **What is watched never depends on the network**: lengths of films and their servers' distances are drawn from a
//! stream of the viewer's. The bitrate does depend on it.

use base::{Distribution, Rate, Span, Stream, Time, maths};

/// What a viewer watches, and how the player chooses.
#[derive(Clone, Debug)]
pub struct VideoModel {
    /// The bitrates, ascending.
    pub ladder: Vec<Rate>,
    /// What a segment has of the film.
    pub segment: Span,
    /// What the buffer holds, at least two segments.
    pub buffer: Span,
    /// What is buffered when playing begins, or goes on after a stall; at most a segment less than the buffer holds.
    pub startup: Span,
    /// How the bitrate is chosen.
    pub rule: Rule,
    /// How long a film is, s.
    pub film: Distribution,
}

/// How a player chooses the bitrate of a segment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// By what is buffered: the lowest up to `reservoir`, the highest from `reservoir` and `cushion` on.
    Bba0 {
        /// What is kept for bad times.
        reservoir: Span,
        /// Where the bitrate rises with the buffer.
        cushion: Span,
    },
    /// By how fast segments came.
    Throughput,
}

/// What a viewer wants done next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Open a connection, and ask on it for so many bytes, wanted since then.
    Open {
        /// The path's round-trip time, as a quantile in (0, 1) of whatever distribution the scenario states.
        rtt_unit: f64,
        /// Bytes of the segment.
        bytes: u64,
        /// When it was first asked for.
        since: Time,
    },
    /// Ask on the open connection for so many bytes.
    Ask {
        /// Bytes of the segment.
        bytes: u64,
    },
    /// Call [`Viewer::due`] then: the buffer has room again.
    Wait(Time),
    /// Close the connection, and call [`Viewer::due`] then: the film is played to its end.
    Over(Time),
}

/// A viewer and the player.
#[derive(Clone, Debug)]
pub struct Viewer {
    stream: Stream,
    rtt_unit: f64,
    /// Segments of the film that are not there.
    left: u64,
    /// The place in the ladder of the segment asked for last.
    choice: usize,
    /// What is there and not played, as of `at`.
    buffered: Span,
    at: Time,
    is_playing: bool,
    is_open: bool,
    /// When the segment under way was asked for.
    asked_at: Time,
    speed: Speed,
    /// When the rule by throughput last chose, within this film.
    chosen_at: Option<Time>,
    /// Whether it then knew how fast segments come.
    was_sure: bool,
}

impl Viewer {
    /// A viewer with a random stream of its own, before the first film.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            rtt_unit: 0.5,
            left: 0,
            choice: 0,
            buffered: Span::ZERO,
            at: Time::ZERO,
            is_playing: false,
            is_open: false,
            asked_at: Time::ZERO,
            speed: Speed::default(),
            chosen_at: None,
            was_sure: false,
        }
    }

    /// A time that it asked for is over, or it begins.
    pub fn due(&mut self, model: &VideoModel, now: Time) -> Step {
        if self.left == 0 {
            self.begin(model);
        }
        self.next(model, now)
    }

    /// The segment under way is there.
    pub fn completed(&mut self, model: &VideoModel, now: Time) -> Step {
        self.play(now);
        self.speed.add(model.bytes(self.choice), now.since(self.asked_at));
        self.buffered = self.buffered + model.segment;
        self.left -= 1;
        self.is_playing |= self.buffered >= model.startup || self.left == 0;
        if self.left == 0 {
            self.is_open = false;
            return Step::Over(now + self.buffered);
        }
        self.next(model, now)
    }

    /// The connection was given up while the segment was under way: it is asked for again on another one.
    pub fn failed(&mut self, model: &VideoModel) -> Step {
        Step::Open { rtt_unit: self.rtt_unit, bytes: model.bytes(self.choice), since: self.asked_at }
    }

    /// The connection was given up between two segments.
    pub fn lost(&mut self) {
        self.is_open = false;
    }

    /// Begins a film. Its draws are the same two whatever happened before.
    fn begin(&mut self, model: &VideoModel) {
        let length = Span::from_secs_f64(model.film.draw(&mut self.stream));
        self.left = length.ns().div_ceil(model.segment.ns()).max(1);
        self.rtt_unit = self.stream.open_unit();
        (self.choice, self.buffered) = (0, Span::ZERO);
        (self.is_playing, self.is_open, self.was_sure) = (false, false, false);
        (self.speed, self.chosen_at) = (Speed::default(), None);
    }

    /// Asks for the next segment, or waits for room.
    fn next(&mut self, model: &VideoModel, now: Time) -> Step {
        self.play(now);
        let full = self.buffered + model.segment;
        if full > model.buffer {
            return Step::Wait(now + full.saturating_sub(model.buffer));
        }
        self.choice = match model.rule {
            Rule::Bba0 { reservoir, cushion } => {
                buffer_based(&model.ladder, self.choice, self.buffered, reservoir, cushion)
            }
            Rule::Throughput => self.by_throughput(model, now),
        };
        self.asked_at = now;
        let bytes = model.bytes(self.choice);
        if std::mem::replace(&mut self.is_open, true) {
            Step::Ask { bytes }
        } else {
            Step::Open { rtt_unit: self.rtt_unit, bytes, since: now }
        }
    }

    /// Lets the film play up to `now`.
    fn play(&mut self, now: Time) {
        if self.is_playing {
            let passed = now.since(self.at);
            self.is_playing = passed <= self.buffered;
            self.buffered = self.buffered.saturating_sub(passed);
        }
        self.at = now;
    }

    /// The highest bitrate that `SAFE` of the estimate carries, chosen anew every [`AGAIN`] at most, but once more as
    /// soon as there is an estimate.
    fn by_throughput(&mut self, model: &VideoModel, now: Time) -> usize {
        let estimate = self.speed.estimate_bps();
        let is_news = estimate.is_some() && !self.was_sure;
        let is_time = self.chosen_at.is_none_or(|chosen| self.was_sure && now.since(chosen) >= AGAIN);
        if !is_news && !is_time {
            return self.choice;
        }
        self.was_sure = estimate.is_some();
        self.chosen_at = Some(now);
        let carried = SAFE * estimate.unwrap_or(UNKNOWN_BPS);
        model.ladder.iter().rposition(|rate| rate.bps_f64() <= carried).unwrap_or(0)
    }
}

impl VideoModel {
    /// Bytes of a segment of this place in the ladder.
    fn bytes(&self, choice: usize) -> u64 {
        self.ladder[choice].bytes_in(self.segment).max(1)
    }
}

/// Algorithm 1 of the paper: the place in the ladder of the next segment, after one of `previous`.
fn buffer_based(ladder: &[Rate], previous: usize, buffered: Span, reservoir: Span, cushion: Span) -> usize {
    let last = ladder.len() - 1;
    if buffered <= reservoir {
        return 0;
    }
    if buffered >= reservoir + cushion {
        return last;
    }
    // f(B) times the cushion, so that no division rounds.
    let times = |rate: u64| u128::from(rate) * u128::from(cushion.ns());
    let (low, high) = (ladder[0].bps(), ladder[last].bps());
    let above = u128::from(buffered.saturating_sub(reservoir).ns());
    let mapped = times(low) + u128::from(high - low) * above;
    let at = |place: usize| times(ladder[place].bps());
    if mapped >= at((previous + 1).min(last)) {
        (0..=last).rev().find(|&place| at(place) < mapped).unwrap_or(0)
    } else if mapped <= at(previous.saturating_sub(1)) {
        (0..=last).find(|&place| at(place) > mapped).unwrap_or(last)
    } else {
        previous
    }
}

/// The share of the estimate that a bitrate may have (`bandwidthDowngradeTarget`).
const SAFE: f64 = 0.95;
/// The least time between two choices (`switchInterval`).
const AGAIN: Span = Span::from_secs(8);
/// What is taken while nothing is known (`defaultBandwidthEstimate`), bits a second.
const UNKNOWN_BPS: f64 = 1e6;
/// What must have come before an estimate is trusted, and the least response that counts, bytes.
const TRUSTED_BYTES: u64 = 128_000;
const COUNTED_BYTES: u64 = 16_000;
/// Half-lives of the two averages, seconds of download. The lower one counts.
const HALF_LIVES_S: [f64; 2] = [2.0, 5.0];

/// How fast segments came: two averages whose weights halve with time spent downloading.
#[derive(Clone, Copy, Default, Debug)]
struct Speed {
    bytes: u64,
    seconds: f64,
    averages_bps: [f64; 2],
}

impl Speed {
    fn add(&mut self, bytes: u64, took: Span) {
        if bytes < COUNTED_BYTES || took == Span::ZERO {
            return;
        }
        let seconds = took.secs_f64();
        for (average, half_life) in self.averages_bps.iter_mut().zip(HALF_LIVES_S) {
            let kept = maths::pow(0.5, seconds / half_life);
            *average = kept * *average + (1.0 - kept) * (bytes as f64 * 8.0 / seconds);
        }
        self.bytes += bytes;
        self.seconds += seconds;
    }

    /// Nothing as long as too little has come.
    fn estimate_bps(&self) -> Option<f64> {
        let known = |(average, half_life): (&f64, f64)| average / (1.0 - maths::pow(0.5, self.seconds / half_life));
        (self.bytes >= TRUSTED_BYTES)
            .then(|| self.averages_bps.iter().zip(HALF_LIVES_S).map(known).fold(f64::INFINITY, f64::min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(rule: Rule) -> VideoModel {
        VideoModel {
            ladder: [1, 2, 4, 8].map(|mbit| Rate::from_bps(mbit * 1_000_000)).to_vec(),
            segment: Span::from_secs(4),
            buffer: Span::from_secs(24),
            startup: Span::from_secs(4),
            rule,
            film: Distribution::Constant(40.0),
        }
    }

    fn bba0() -> VideoModel {
        model(Rule::Bba0 { reservoir: Span::from_secs(8), cushion: Span::from_secs(14) })
    }

    fn viewer() -> Viewer {
        Viewer::new(Stream::named(1, "traffic/0/viewer/0"))
    }

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn the_buffer_alone_chooses_as_algorithm_1_does() {
        // f rises from 1 Mb/s at 8 s to 8 Mb/s at 22 s, half a megabit a second.
        let model = bba0();
        let chosen = |previous, ms| {
            buffer_based(&model.ladder, previous, Span::from_ms(ms), Span::from_secs(8), Span::from_secs(14))
        };
        // In the reservoir the lowest, from 22 s on the highest, whatever was before.
        assert_eq!([chosen(3, 0), chosen(3, 8_000), chosen(0, 22_000), chosen(0, 24_000)], [0, 0, 3, 3]);
        // f(9.9 s) = 1.95: below 2, what is asked next above the lowest, so that it stays.
        assert_eq!(chosen(0, 9_900), 0);
        // f(10 s) = 2 reaches the next bitrate; the highest below 2 is still the lowest. f(10.2 s) = 2.1 is above it.
        assert_eq!([chosen(0, 10_000), chosen(0, 10_200)], [0, 1]);
        // f(17 s) = 5.5 from the lowest: at once to 4.
        assert_eq!(chosen(0, 17_000), 2);
        // f(15 s) = 4.5 from 8: above the next lower one, 4, it stays; at f(14 s) = 4 the lowest above is 8 still, and
        // at f(13.8 s) = 3.9 it is 4.
        assert_eq!([chosen(3, 15_000), chosen(3, 14_000), chosen(3, 13_800)], [3, 3, 2]);
        // Down from 4 at f(9 s) = 1.5: the lowest above is 2.
        assert_eq!(chosen(2, 9_000), 1);
    }

    #[test]
    fn a_film_stalls_when_the_buffer_is_empty_and_goes_on_with_enough() {
        let model = bba0();
        let mut viewer = viewer();
        let Step::Open { bytes: 500_000, .. } = viewer.due(&model, at(1.0)) else { panic!("the first segment") };
        // There after 2 s: 4 s are enough to play. The second one comes 5 s later, a second too late.
        assert_eq!(viewer.completed(&model, at(3.0)), Step::Ask { bytes: 500_000 });
        assert!(viewer.is_playing);
        assert_eq!(viewer.completed(&model, at(8.0)), Step::Ask { bytes: 500_000 });
        assert!(viewer.is_playing && viewer.buffered == Span::from_secs(4));
        // It ends at 12 s, which is when the third one comes: no stall.
        viewer.completed(&model, at(12.0));
        assert!(viewer.is_playing && viewer.buffered == Span::from_secs(4));
        viewer.play(at(16.5));
        assert!(!viewer.is_playing && viewer.buffered == Span::ZERO);
        // Who asks for two segments to begin with waits for two after a stall.
        let model = VideoModel { startup: Span::from_secs(8), ..model };
        viewer.completed(&model, at(17.0));
        assert!(!viewer.is_playing);
        viewer.completed(&model, at(18.0));
        assert!(viewer.is_playing && viewer.buffered == Span::from_secs(8));
    }

    #[test]
    fn a_full_buffer_waits_for_room_and_a_film_for_its_end() {
        let model = bba0();
        let mut viewer = viewer();
        viewer.due(&model, at(0.0));
        // Segments that come at once: 24 s are six of them.
        for _ in 0..5 {
            assert!(matches!(viewer.completed(&model, at(0.0)), Step::Ask { .. }));
        }
        assert_eq!(viewer.completed(&model, at(0.0)), Step::Wait(at(4.0)));
        // 40 s are ten segments: four more, each as soon as there is room.
        for number in 0..3 {
            let now = 4.0 * f64::from(number + 1);
            assert_eq!(viewer.due(&model, at(now)), Step::Ask { bytes: 2_000_000 }, "f(20 s) = 7");
            assert_eq!(viewer.completed(&model, at(now)), Step::Wait(at(now + 4.0)));
        }
        viewer.due(&model, at(16.0));
        assert_eq!(viewer.completed(&model, at(16.0)), Step::Over(at(40.0)));
        // The next film begins with the lowest and a connection of its own.
        assert!(matches!(viewer.due(&model, at(40.0)), Step::Open { bytes: 500_000, .. }));
        // A connection that is given up is replaced; what was wanted is wanted since then.
        let again = viewer.failed(&model);
        assert!(matches!(again, Step::Open { bytes: 500_000, since, .. } if since == at(40.0)));
        viewer.completed(&model, at(41.0));
        viewer.completed(&model, at(41.0));
        viewer.lost();
        assert!(matches!(viewer.completed(&model, at(41.0)), Step::Open { .. }));
    }

    #[test]
    fn the_lower_of_two_averages_is_what_is_carried() {
        let mut speed = Speed::default();
        speed.add(15_999, Span::from_secs(1));
        assert_eq!(speed.bytes, 0, "too little to tell anything");
        // 2 Mb/s for two seconds, then 4 Mb/s for two.
        speed.add(500_000, Span::from_secs(2));
        assert!((speed.estimate_bps().expect("it is trusted") - 2e6).abs() < 1.0, "a first sample is the average");
        speed.add(1_000_000, Span::from_secs(2));
        // Half-life 2 s: weights 1/4 and 1/2 of 3/4. Half-life 5 s: with q = 2^-0.4, q (1 - q) and 1 - q of 1 - q^2.
        let q = maths::pow(0.5, 0.4);
        let slow = (2.0 * q * (1.0 - q) + 4.0 * (1.0 - q)) / (1.0 - q * q) * 1e6;
        assert!((2.0 * 0.25 + 4.0 * 0.5) / 0.75 * 1e6 > slow);
        assert!((speed.estimate_bps().expect("it is trusted") - slow).abs() < 1.0);
    }

    #[test]
    fn throughput_chooses_every_eight_seconds_but_once_it_knows() {
        let model = VideoModel { buffer: Span::from_secs(1000), ..model(Rule::Throughput) };
        let mut viewer = viewer();
        // 1 Mb/s is assumed, and 0.95 of it carries nothing: the lowest there is.
        assert!(matches!(viewer.due(&model, at(0.0)), Step::Open { bytes: 500_000, .. }));
        // 500 kB in a second are 4 Mb/s, of which 3.8 are safe: 2 Mb/s.
        assert_eq!(viewer.completed(&model, at(1.0)), Step::Ask { bytes: 1_000_000 });
        // 1 MB in half a second: faster by far, but it chose half a second ago.
        assert_eq!(viewer.completed(&model, at(1.5)), Step::Ask { bytes: 1_000_000 });
        // In the ninth second it chooses again: the last one took 7.5 s, 1.07 Mb/s.
        assert_eq!(viewer.completed(&model, at(9.0)), Step::Ask { bytes: 500_000 });
    }

    #[test]
    fn what_is_watched_does_not_depend_on_what_came_when() {
        let film = Distribution::Exponential { mean: 20.0 };
        let model = VideoModel { film, ..bba0() };
        let watched = |pace: f64| {
            let (mut viewer, mut now, mut films) = (viewer(), 0.0, Vec::new());
            let mut step = viewer.due(&model, at(now));
            while films.len() < 20 {
                step = match step {
                    Step::Open { rtt_unit, .. } => {
                        films.push((rtt_unit, viewer.left));
                        now += pace;
                        viewer.completed(&model, at(now))
                    }
                    Step::Ask { .. } => {
                        now += pace;
                        viewer.completed(&model, at(now))
                    }
                    Step::Wait(until) | Step::Over(until) => {
                        now = until.secs_f64();
                        viewer.due(&model, until)
                    }
                };
            }
            films
        };
        assert_eq!(watched(0.1), watched(7.0));
    }
}
