//! BBR version 3 once more, as the pseudocode of draft-ietf-ccwg-bbr has it line by line, with its names and no thought
//! for speed. Both are told the same stories, of rates, losses and idle times drawn from a seed, and must come to the
//! same state, window and rate after each acknowledgement.
//!
//! Where the draft leaves something open, this takes over the choice that the controller documents: volumes are
//! segments, an acknowledgement without a rate advances no round, and the window that ends a precautionary probe is
//! judged with the segments in hand. Random waits are taken over from the controller, for any would do.

mod draft;

use base::{Span, Stream, Time, maths};
use draft::{Draft, Rs};
use tcp::cc::bbr3::{Bbr3, State};
use tcp::cc::{Controller, Delivered, Lost, Sample, Stage, Window};

/// Payload of a segment, bytes.
pub const MSS: f64 = 1_000.0;
/// The draft's Infinity.
pub const INF: f64 = f64::INFINITY;

/// A bottleneck whose rate changes, as far as samples show it.
struct Story {
    stream: Stream,
    now: Time,
    delivered: u64,
    prior: u64,
    rate: f64,
    rtt: f64,
    lost_total: u64,
    seq: u64,
}

impl Story {
    fn unit(&mut self) -> f64 {
        self.stream.below(1_000_000) as f64 / 1e6
    }

    /// The next acknowledgement: one to three segments of a window `cwnd`, sent a round trip ago.
    fn ack(&mut self, cwnd: f64, pacing: f64, losses: u64, stage: Stage) -> Sample {
        let newly = 1 + self.stream.below(3);
        let gap = newly as f64 / self.rate.min(pacing).max(1.0);
        self.now += Span::from_secs_f64(gap);
        self.delivered += newly;
        let window = (cwnd as u64).max(1);
        self.prior = self.prior.max(self.delivered.saturating_sub(window));
        let segments = self.delivered - self.prior;
        let queueing = (segments as f64 / self.rate).max(self.rtt);
        let in_flight = window.saturating_sub(self.stream.below(3));
        let is_app_limited = self.stream.below(12) == 0;
        let rate = (self.stream.below(50) > 0).then(|| Delivered {
            segments,
            interval: Span::from_secs_f64((segments as f64 / self.rate.min(pacing)).max(self.rtt)),
            prior: self.prior,
            is_app_limited,
            in_flight: window,
            lost: losses,
            marked: 0,
        });
        Sample {
            newly_delivered: newly,
            newly_lost: losses,
            marked: None,
            delivered: self.delivered,
            lost: self.lost_total,
            delivered_at: self.now,
            prior_in_flight: in_flight + newly,
            in_flight,
            rate,
            rtt: (self.stream.below(10) > 0).then(|| Span::from_secs_f64(queueing)),
            may_be_delayed: false,
            srtt: None,
            departs_at: self.now,
            stage,
            mss: MSS,
            now: self.now,
        }
    }
}

#[test]
fn both_writings_come_to_the_same_after_each_acknowledgement() {
    let mut seen = [0_u32; 7];
    let (mut bounded, mut shortened) = (0, 0);
    for seed in 0..60 {
        let config = (tcp::profile("linux").expect("a built-in profile").config)();
        let mut stream = Stream::named(seed, "bbr3");
        let rtt = 0.002 + stream.below(100) as f64 / 1e3;
        let rate = 100.0 * maths::pow(10.0, stream.below(1_000) as f64 / 500.0);
        let now = Time::ZERO + Span::from_ms(1);
        let mut story = Story { stream, now, delivered: 0, prior: 0, rate, rtt, lost_total: 0, seq: 0 };
        let mut ours = Bbr3::new(&config);
        let initial = f64::from(config.initial_window);
        let mut window = Window { cwnd: initial * MSS, ssthresh: INF };
        ours.opened(&window, MSS, Span::from_secs_f64(rtt), now);
        let handshake = Span::from_secs_f64(rtt).secs_f64();
        let mut draft = Draft::new(initial, handshake, now);
        let (mut stage, mut left) = (Stage::Open, 0);
        for step in 0..6_000 {
            if story.stream.below(900) == 0 {
                story.rate *= 0.4 + 1.5 * story.unit();
            }
            if story.stream.below(700) == 0 {
                ours.restarted(&mut window, MSS, story.now);
                let waits = ours.waits();
                draft.idle_restart = true;
                draft.extra_acked_interval_start = story.now;
                if draft.in_probe_bw() {
                    let rate = draft.bw * 0.99;
                    draft.pacing_rate =
                        if draft.full_bw_reached || rate > draft.pacing_rate { rate } else { draft.pacing_rate };
                } else if draft.state == State::ProbeRtt {
                    // The controller knows what was delivered when the round began.
                    let delivered = std::mem::replace(&mut draft.delivered, draft.next_round_delivered);
                    draft.check_probe_rtt_done(story.now.secs_f64(), waits);
                    draft.delivered = delivered;
                }
            }
            // Losses come in recoveries of some forty acknowledgements.
            if left == 0 && story.stream.below(250) == 0 {
                left = 20 + story.stream.below(40);
            }
            let losses = if left > 0 { story.stream.below(3) } else { 0 };
            let entered = stage == Stage::Open && left > 0;
            stage = if left > 0 { Stage::Recovery } else { Stage::Open };
            left = left.saturating_sub(1);
            let pacing = draft.pacing_rate;
            let sample = story.ack(draft.cwnd, pacing, losses, stage);
            if entered {
                let congestion = tcp::cc::Congestion {
                    cause: tcp::cc::Cause::Loss,
                    flight: window.cwnd,
                    mss: MSS,
                    whole_segments: true,
                    abe: false,
                    now: story.now,
                };
                ours.reduced(&window, &congestion);
                draft.save_cwnd();
                draft.undo_state = None;
                draft.undo = [draft.bw_shortterm, draft.inflight_shortterm, draft.inflight_longterm];
            }
            draft.delivered = sample.delivered as f64;
            for _ in 0..losses {
                story.lost_total += 1;
                story.seq += 1_000 * (1 + story.stream.below(2));
                let lost = Lost {
                    seq: story.seq,
                    end: story.seq + 1_000,
                    in_flight: draft.cwnd as u64,
                    lost: 1 + story.stream.below(4),
                    is_app_limited: story.stream.below(10) == 0,
                    delivered: sample.delivered,
                    mss: MSS,
                    now: story.now,
                };
                ours.lost(&window, &lost);
                draft.handle_lost_packet(&lost, story.now.secs_f64(), ours.waits());
            }
            let before = draft.cwnd;
            if sample.prior_in_flight as f64 >= before {
                draft.full_round_cwnd = Some(draft.round_count);
            }
            if stage == Stage::Open && draft.recovery_before {
                draft.cwnd = draft.cwnd.max(draft.prior_cwnd);
            }
            ours.sampled(&mut window, &sample);
            let rs = Rs {
                delivery_rate: sample.rate.map_or(0.0, |rate| rate.segments as f64 / rate.interval.secs_f64()),
                delivered: sample.rate.map_or(0.0, |rate| rate.segments as f64),
                prior_delivered: sample.rate.map(|rate| rate.prior as f64),
                is_app_limited: sample.rate.is_some_and(|rate| rate.is_app_limited),
                rtt: sample.rtt.map(Span::secs_f64),
                newly_acked: sample.newly_delivered as f64,
                tx_in_flight: sample.rate.map_or(0.0, |rate| rate.in_flight as f64),
                lost: sample.rate.map_or(0.0, |rate| rate.lost as f64),
                inflight: sample.in_flight as f64,
                prior_inflight: sample.prior_in_flight as f64,
                now: story.now.secs_f64(),
                at: story.now,
                is_recovery: stage == Stage::Recovery,
                has_rate: sample.rate.is_some(),
            };
            draft.update_on_ack(&rs, ours.waits());
            draft.recovery_before = stage == Stage::Recovery;
            draft.in_recovery = draft.recovery_before;
            let context = format!("seed {seed}, acknowledgement {step}");
            assert_eq!(ours.state(), draft.state, "{context}");
            let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            assert!(near(ours.max_rate(), draft.max_bw()), "{context}: {} {}", ours.max_rate(), draft.max_bw());
            assert!(near(ours.rate(), draft.bw), "{context}: {} {}", ours.rate(), draft.bw);
            assert_eq!(ours.most_long(), draft.inflight_longterm, "{context}");
            let (rate_short, most_short) = ours.short_term();
            assert!(near(rate_short, draft.bw_shortterm), "{context}: {rate_short} {}", draft.bw_shortterm);
            assert_eq!(most_short, draft.inflight_shortterm, "{context}");
            assert_eq!(window.cwnd / MSS, draft.cwnd, "{context}");
            let rate = ours.steer().expect("it paces").bytes_per_second / MSS;
            assert!(near(rate, draft.pacing_rate), "{context}: {rate} {}", draft.pacing_rate);
            seen[ours.state() as usize] += 1;
            bounded += u32::from(ours.most_long().is_finite());
            shortened += u32::from(most_short.is_finite());
        }
    }
    // The stories have been everywhere.
    assert!(seen.iter().all(|&times| times > 500), "{seen:?}");
    assert!(bounded > 10_000 && shortened > 10_000, "{bounded} {shortened}");
}
