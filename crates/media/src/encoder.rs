//! Sizes of frames: what an encoder makes of the rate that it is asked for.
//!
//! Source: RFC 8593 §5, the statistical model, steady state: the size of a frame is what the rate has for a frame's
//! time, with a deviation that is Laplacian, and key frames are larger at even distances. Other frames are then so much
//! smaller that the mean rate is as asked for.
//!
//! # Deviations
//! - Frames come at even distances, and an encoder follows the rate it is asked for from the next frame on. The RFC
//!   draws the distances too, and lets an encoder lag by a time of its own.
//! - A deviation is at most nine tenths of the mean to either side.

use crate::Config;
use base::{Span, Stream, maths};

/// The largest deviation, of the mean.
const LARGEST_DEVIATION: f64 = 0.9;

/// How many frames lie in a time, to the nearest: the time from one to the next is itself rounded.
pub fn frames_in(time: Span, frame_period: Span) -> u64 {
    let period = frame_period.ns().max(1);
    time.ns().saturating_add(period / 2) / period
}

/// An encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    stream: Stream,
    /// Frames from one key frame to the next, and their sizes in mean frames: of a key frame and of another.
    interval: u64,
    scales: [f64; 2],
    /// Frames since the last key frame.
    since_key: u64,
}

impl Encoder {
    /// An encoder that begins with a key frame, if it has these.
    pub fn new(config: &Config, stream: Stream) -> Self {
        let (interval, scales) = match config.key_frames {
            None => (0, [1.0; 2]),
            Some((every, size)) => {
                let interval = frames_in(every, config.frame_period).max(2);
                (interval, [size, (interval as f64 - size) / (interval as f64 - 1.0)])
            }
        };
        Self { stream, interval, scales, since_key: 0 }
    }

    /// The size of the next frame, bytes, where a mean one has `mean`.
    pub fn frame(&mut self, mean: f64, config: &Config) -> f64 {
        let is_key = self.interval > 0 && self.since_key == 0;
        self.since_key = if self.interval > 0 { (self.since_key + 1) % self.interval } else { 0 };
        let scale = self.scales[usize::from(!is_key)];
        mean * scale * (1.0 + self.deviation(config.variation))
    }

    /// Makes the next frame a key frame, if there are any.
    pub fn ask_for_key_frame(&mut self) {
        self.since_key = 0;
    }

    /// A Laplacian deviation of this scale, by the inverse of its distribution function.
    fn deviation(&mut self, scale: f64) -> f64 {
        let u = self.stream.open_unit() - 0.5;
        let drawn = -scale * u.signum() * maths::ln(1.0 - 2.0 * u.abs());
        drawn.clamp(-LARGEST_DEVIATION, LARGEST_DEVIATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use base::Rate;

    fn config(key_frames: Option<(Span, f64)>, variation: f64) -> Config {
        Config {
            frame_period: Span::from_ms(40),
            rates: [Rate::from_bps(100_000), Rate::from_bps(10_000_000)],
            packet: 1200,
            key_frames,
            variation,
            mode: Mode::L4s,
        }
    }

    #[test]
    fn key_frames_come_at_even_distances_and_leave_the_mean_as_it_is() {
        let config = config(Some((Span::from_secs(2), 5.0)), 0.0);
        let mut encoder = Encoder::new(&config, Stream::named(1, "test"));
        let sizes: Vec<f64> = (0..500).map(|_| encoder.frame(1000.0, &config)).collect();
        assert!(sizes.iter().enumerate().all(|(k, &size)| (size > 4999.0) == (k % 50 == 0)));
        assert!((sizes.iter().sum::<f64>() / 500.0 - 1000.0).abs() < 1e-9);
        encoder.frame(1000.0, &config);
        encoder.ask_for_key_frame();
        assert!(encoder.frame(1000.0, &config) > 4999.0);
    }

    #[test]
    fn key_frames_a_second_apart_are_as_many_frames_apart_as_a_second_has() {
        for hertz in [5, 6, 15, 24, 25, 30, 60, 120] {
            let frame_period = Span::from_secs_f64(1.0 / f64::from(hertz));
            let config = Config { frame_period, ..config(Some((Span::from_secs(1), 5.0)), 0.0) };
            let mut encoder = Encoder::new(&config, Stream::named(1, "test"));
            let is_key: Vec<bool> = (0..=hertz).map(|_| encoder.frame(1000.0, &config) > 1000.0).collect();
            assert!(
                is_key.iter().enumerate().all(|(k, &key)| key == (k as u32).is_multiple_of(hertz)),
                "{hertz}: {is_key:?}"
            );
        }
    }

    #[test]
    fn sizes_deviate_as_a_laplacian_does() {
        let config = config(None, 0.15);
        let mut encoder = Encoder::new(&config, Stream::named(1, "test"));
        let n = 100_000;
        let deviations: Vec<f64> = (0..n).map(|_| encoder.frame(1.0, &config) - 1.0).collect();
        let mean = deviations.iter().sum::<f64>() / f64::from(n);
        let scale = deviations.iter().map(|d| d.abs()).sum::<f64>() / f64::from(n);
        // Four standard errors of a Laplacian's mean, whose variance is twice the square of its scale, and of the mean
        // of its distances, which are exponential.
        let error = 4.0 * 0.15 / f64::from(n).sqrt();
        assert!(mean.abs() < error * 2.0_f64.sqrt() && (scale - 0.15).abs() < error + 1e-3, "{mean} {scale}");
    }
}
