//! The pseudocode of draft-ietf-ccwg-bbr, with its names.

use crate::{INF, MSS};
use base::Time;
use tcp::cc::Lost;
use tcp::cc::bbr3::State;
use tcp::cc::windowed::WindowedMax;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Acks {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, Copy)]
pub struct Slot {
    pub time: u64,
    pub value: f64,
}

/// The variables of the draft, `BBR.` and `C.` left out; times in seconds.
pub struct Draft {
    pub state: State,
    pub pacing_gain: f64,
    pub cwnd_gain: f64,
    pub cwnd: f64,
    pub pacing_rate: f64,
    pub delivered: f64,
    pub initial_cwnd: f64,
    pub round_count: u64,
    pub round_start: bool,
    pub next_round_delivered: f64,
    pub rounds_since_probe_up: u64,
    pub full_round_cwnd: Option<u64>,
    pub max_bw_filter: Vec<Slot>,
    pub cycle_count: u64,
    pub bw: f64,
    pub bw_shortterm: f64,
    pub inflight_shortterm: f64,
    pub inflight_longterm: f64,
    pub bw_latest: f64,
    pub inflight_latest: f64,
    pub loss_round_delivered: f64,
    pub loss_round_start: bool,
    pub is_loss_in_round: bool,
    pub full_bw: f64,
    pub full_bw_count: u32,
    pub full_bw_now: bool,
    pub full_bw_reached: bool,
    pub drain_start_round: u64,
    pub ack_phase: Acks,
    pub is_bw_probe_sample: bool,
    pub bw_probe_up_acked: f64,
    pub probe_up_acked_per_inc: f64,
    pub bw_probe_up_rounds: u32,
    pub bw_probe_wait: f64,
    pub cycle_stamp: f64,
    pub prev_probe_too_high: bool,
    pub prev_probe_precautionary: bool,
    pub min_rtt: f64,
    pub min_rtt_stamp: f64,
    pub probe_rtt_min_delay: f64,
    pub probe_rtt_min_stamp: f64,
    pub probe_rtt_expired: bool,
    pub probe_rtt_done_stamp: Option<f64>,
    pub probe_rtt_round_done: bool,
    pub idle_restart: bool,
    pub prior_cwnd: f64,
    pub undo_state: Option<State>,
    pub undo: [f64; 3],
    pub in_recovery: bool,
    pub extra_acked: f64,
    pub extra_acked_filter: WindowedMax,
    pub extra_acked_interval_start: Time,
    pub extra_acked_delivered: f64,
    pub lost_ranges: u32,
    pub lost_to: u64,
    pub recovery_before: bool,
}

/// The rate sample and what else an acknowledgement says.
pub struct Rs {
    pub delivery_rate: f64,
    pub delivered: f64,
    pub prior_delivered: Option<f64>,
    pub is_app_limited: bool,
    pub rtt: Option<f64>,
    pub newly_acked: f64,
    pub tx_in_flight: f64,
    pub lost: f64,
    pub inflight: f64,
    pub prior_inflight: f64,
    pub now: f64,
    pub at: Time,
    pub is_recovery: bool,
    pub has_rate: bool,
}

impl Draft {
    pub fn new(initial_cwnd: f64, rtt: f64, opened: Time) -> Self {
        let now = opened.secs_f64();
        Self {
            state: State::Startup,
            pacing_gain: 2.77,
            cwnd_gain: 2.0,
            cwnd: initial_cwnd,
            pacing_rate: 2.77 * initial_cwnd / rtt,
            delivered: 0.0,
            initial_cwnd,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0.0,
            rounds_since_probe_up: 0,
            full_round_cwnd: None,
            max_bw_filter: vec![],
            cycle_count: 0,
            bw: 0.0,
            bw_shortterm: INF,
            inflight_shortterm: INF,
            inflight_longterm: INF,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            is_loss_in_round: false,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: Acks::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: INF,
            bw_probe_up_rounds: 0,
            bw_probe_wait: 0.0,
            cycle_stamp: 0.0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            min_rtt: rtt,
            min_rtt_stamp: now,
            probe_rtt_min_delay: rtt,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_cwnd: 0.0,
            undo_state: None,
            undo: [0.0; 3],
            in_recovery: false,
            extra_acked: 0.0,
            extra_acked_filter: WindowedMax::default(),
            extra_acked_interval_start: opened,
            extra_acked_delivered: 0.0,
            lost_ranges: 0,
            lost_to: 0,
            recovery_before: false,
        }
    }

    pub fn max_bw(&self) -> f64 {
        self.max_bw_filter.iter().map(|slot| slot.value).fold(0.0, f64::max)
    }

    pub fn bdp_multiple(&self, gain: f64) -> f64 {
        gain * self.bw * self.min_rtt
    }

    pub fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let send_quantum = (self.pacing_rate * MSS * 0.001).clamp(2.0 * MSS, 65_536.0) / MSS;
        let mut cap = inflight_cap.max(3.0 * send_quantum).max(4.0);
        if self.state == State::Up {
            cap += 2.0;
        }
        cap
    }

    pub fn target_inflight(&self) -> f64 {
        self.bdp_multiple(1.0).min(self.cwnd)
    }

    pub fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == INF {
            return INF;
        }
        let headroom = (0.15 * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(4.0)
    }

    pub fn in_probe_bw(&self) -> bool {
        [State::Down, State::Cruise, State::Refill, State::Up].contains(&self.state)
    }

    pub fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    pub fn reset_congestion_signals(&mut self) {
        (self.is_loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
    }

    pub fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (INF, INF);
    }

    pub fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    pub fn start_down(&mut self, now: f64, waits: (u64, f64)) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = INF;
        (self.rounds_since_probe_up, self.bw_probe_wait) = waits;
        self.cycle_stamp = now;
        self.ack_phase = Acks::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    pub fn start_refill(&mut self) {
        self.reset_short_term();
        (self.bw_probe_up_rounds, self.bw_probe_up_acked) = (0, 0.0);
        self.prev_probe_precautionary = false;
        self.ack_phase = Acks::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    pub fn raise_slope(&mut self) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(1.0);
    }

    pub fn start_up(&mut self, rs: &Rs) {
        self.ack_phase = Acks::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.delivery_rate;
        self.state = State::Up;
        self.raise_slope();
    }

    pub fn is_cwnd_limited(&self) -> bool {
        self.full_round_cwnd.is_some_and(|round| self.round_count - round <= 1)
    }

    pub fn save_cwnd(&mut self) {
        if !self.in_recovery && self.state != State::ProbeRtt {
            self.prior_cwnd = self.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        }
    }

    pub fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_cwnd();
            self.undo_state = None;
            self.undo = [self.bw_shortterm, self.inflight_shortterm, self.inflight_longterm];
        }
        self.is_loss_in_round = true;
    }

    pub fn handle_lost_packet(&mut self, lost: &Lost, now: f64, waits: (u64, f64)) {
        self.note_loss();
        if lost.seq != self.lost_to {
            self.lost_ranges += 1;
        }
        self.lost_to = lost.end;
        if !self.is_bw_probe_sample {
            return;
        }
        let (mut tx_in_flight, rs_lost) = (lost.in_flight as f64, lost.lost as f64);
        if rs_lost > tx_in_flight * 0.02 {
            let inflight_prev = tx_in_flight - 1.0;
            let lost_prev = rs_lost - 1.0;
            let lost_prefix = (0.02 * inflight_prev - lost_prev) / (1.0 - 0.02);
            tx_in_flight = inflight_prev + lost_prefix.max(0.0);
            self.prev_probe_too_high = true;
            self.is_bw_probe_sample = false;
            if !lost.is_app_limited {
                self.inflight_longterm = tx_in_flight.max(self.target_inflight() * 0.7).floor();
            }
            if self.state == State::Up {
                self.undo_state = Some(State::Up);
                self.start_down(now, waits);
            }
        }
    }

    pub fn update_on_ack(&mut self, rs: &Rs, waits: (u64, f64)) {
        // UpdateLatestDeliverySignals
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        if rs.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
        // UpdateCongestionSignals: UpdateMaxBw, UpdateRound
        if rs.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered) {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.round_start = true;
        } else {
            self.round_start = false;
        }
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= self.max_bw() || !rs.is_app_limited) {
            // Two slots: the cycle at hand and the one before it that had samples.
            let time = self.cycle_count;
            match self.max_bw_filter.iter_mut().find(|slot| slot.time == time) {
                Some(slot) => slot.value = slot.value.max(rs.delivery_rate),
                None => self.max_bw_filter.push(Slot { time, value: rs.delivery_rate }),
            }
            if self.max_bw_filter.len() > 2 {
                self.max_bw_filter.remove(0);
            }
        }
        if self.loss_round_start {
            let is_probing = [State::Startup, State::Refill, State::Up].contains(&self.state);
            if !is_probing && self.is_loss_in_round {
                if self.bw_shortterm == INF {
                    self.bw_shortterm = self.max_bw();
                }
                if self.inflight_shortterm == INF {
                    self.inflight_shortterm = self.cwnd;
                }
                self.bw_shortterm = self.bw_latest.max(0.7 * self.bw_shortterm);
                self.inflight_shortterm = self.inflight_latest.max(0.7 * self.inflight_shortterm).floor();
            }
            self.is_loss_in_round = false;
        }
        // UpdateACKAggregation
        // As a difference of instants, so that both round it alike.
        let interval = rs.at.since(self.extra_acked_interval_start).secs_f64();
        let mut expected_delivered = self.bw * interval;
        if self.extra_acked_delivered <= expected_delivered {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = rs.at;
            expected_delivered = 0.0;
        }
        self.extra_acked_delivered += rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected_delivered).min(self.cwnd.floor());
        let filter_len = if self.full_bw_reached { 10 } else { 1 };
        // Nichols's filter, to which the draft points, with a file and tests of its own.
        self.extra_acked_filter.update(filter_len, self.round_count, extra);
        self.extra_acked = self.extra_acked_filter.get();
        // CheckFullBWReached
        if !(self.full_bw_now || !self.round_start || rs.is_app_limited) {
            if rs.delivery_rate >= self.full_bw * 1.25 {
                self.reset_full_bw();
                self.full_bw = rs.delivery_rate;
            } else {
                self.full_bw_count += 1;
                self.full_bw_now = self.full_bw_count >= 3;
                if self.full_bw_now {
                    self.full_bw_reached = true;
                }
            }
        }
        // CheckStartupDone
        let is_too_high = rs.has_rate && rs.lost > rs.tx_in_flight * 0.02;
        if !self.full_bw_reached {
            let in_recovery = rs.is_recovery && self.recovery_before;
            if self.loss_round_start && in_recovery && self.lost_ranges >= 6 && is_too_high {
                self.undo_state = Some(State::Startup);
                (self.full_bw_now, self.full_bw_reached) = (true, true);
                self.inflight_longterm = self.bdp_multiple(1.0).max(self.inflight_latest).floor();
            }
            if self.loss_round_start {
                self.lost_ranges = 0;
            }
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
        // CheckDrainDone
        if self.state == State::Drain {
            let drained = rs.inflight <= self.quantization_budget(self.bdp_multiple(1.0));
            if drained || self.round_count > self.drain_start_round + 3 {
                self.start_down(rs.now, waits);
            }
        }
        self.update_probe_bw_cycle_phase(rs, waits, is_too_high);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs, waits);
        // AdvanceLatestDeliverySignals, BoundBWForModel
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.delivery_rate, rs.delivered);
        }
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.update_control_parameters(rs);
    }

    pub fn update_probe_bw_cycle_phase(&mut self, rs: &Rs, waits: (u64, f64), is_too_high: bool) {
        if !self.full_bw_reached {
            return;
        }
        // AdaptLongTermModel
        if self.ack_phase == Acks::ProbeStarting && self.round_start {
            self.ack_phase = Acks::ProbeFeedback;
        }
        if self.ack_phase == Acks::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = Acks::Init;
            let has_samples = self.max_bw_filter.iter().any(|slot| slot.time == self.cycle_count);
            if self.in_probe_bw() && !rs.is_app_limited && has_samples {
                self.cycle_count += 1;
                self.max_bw_filter.retain(|slot| slot.time + 1 == self.cycle_count);
            }
            if self.in_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill();
                return;
            }
        }
        if rs.has_rate && !is_too_high && self.inflight_longterm != INF {
            if rs.tx_in_flight > self.inflight_longterm {
                self.inflight_longterm = rs.tx_in_flight;
            }
            if self.state == State::Up && self.is_cwnd_limited() && self.cwnd.floor() >= self.inflight_longterm {
                self.bw_probe_up_acked += rs.newly_acked;
                if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
                    let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
                    self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
                    self.inflight_longterm += delta;
                }
                if self.round_start {
                    self.raise_slope();
                }
            }
        }
        match self.state {
            State::Down | State::Cruise => {
                let rounds = self.target_inflight().min(63.0);
                let is_time =
                    rs.now > self.cycle_stamp + self.bw_probe_wait || self.rounds_since_probe_up as f64 >= rounds;
                if is_time {
                    self.start_refill();
                } else if self.state == State::Down
                    && rs.inflight <= self.inflight_with_headroom()
                    && rs.inflight <= self.quantization_budget(self.max_bw() * self.min_rtt)
                {
                    self.state = State::Cruise;
                }
            }
            State::Refill => {
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_up(rs);
                }
            }
            State::Up => {
                let goes_down = if self.prev_probe_too_high && rs.prior_inflight >= self.inflight_longterm {
                    self.prev_probe_precautionary = true;
                    true
                } else if self.is_cwnd_limited() && self.cwnd.floor() >= self.inflight_longterm {
                    self.reset_full_bw();
                    self.full_bw = rs.delivery_rate;
                    false
                } else {
                    self.full_bw_now
                };
                if goes_down {
                    self.prev_probe_too_high = false;
                    self.start_down(rs.now, waits);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    pub fn update_min_rtt(&mut self, rs: &Rs) {
        self.probe_rtt_expired = rs.now > self.probe_rtt_min_stamp + 5.0;
        if let Some(rtt) = rs.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, rs.now);
        }
        let min_rtt_expired = rs.now > self.min_rtt_stamp + 10.0;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }

    pub fn check_probe_rtt(&mut self, rs: &Rs, waits: (u64, f64)) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.ack_phase = Acks::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_done_stamp.is_none() && rs.inflight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = Some(rs.now + 0.2);
                self.probe_rtt_round_done = false;
                self.start_round();
            } else if self.probe_rtt_done_stamp.is_some() {
                if self.round_start {
                    self.probe_rtt_round_done = true;
                }
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(rs.now, waits);
                }
            }
        }
        if rs.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    pub fn check_probe_rtt_done(&mut self, now: f64, waits: (u64, f64)) {
        if self.probe_rtt_done_stamp.is_some_and(|stamp| now > stamp) {
            self.probe_rtt_min_stamp = now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.reset_short_term();
            if self.full_bw_reached {
                self.start_down(now, waits);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    pub fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(0.5).max(4.0)
    }

    pub fn update_control_parameters(&mut self, rs: &Rs) {
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (2.77, 2.0),
            State::Drain => (0.5, 2.0),
            State::Down => (0.9, 2.0),
            State::Cruise | State::Refill => (1.0, 2.0),
            State::Up => (1.25, 2.25),
            State::ProbeRtt => (1.0, 0.5),
        };
        let rate = self.pacing_gain * self.bw * 0.99;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
        if rs.newly_acked > 0.0 {
            let max_inflight = self.quantization_budget(self.bdp_multiple(self.cwnd_gain) + self.extra_acked);
            if self.full_bw_reached {
                self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
            } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd {
                self.cwnd += rs.newly_acked;
            }
            self.cwnd = self.cwnd.max(4.0);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let mut cap = INF;
        if self.in_probe_bw() && self.state != State::Cruise {
            cap = self.inflight_longterm;
        } else if [State::ProbeRtt, State::Cruise].contains(&self.state) {
            cap = self.inflight_with_headroom();
        }
        cap = cap.min(self.inflight_shortterm).max(4.0);
        self.cwnd = self.cwnd.min(cap).floor();
    }
}
