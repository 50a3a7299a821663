//! SCReAM v2 a second time, made from the pseudocode of draft-ietf-ccwg-rfc8298bis-screamv2-01 alone, line by line and
//! with its names. Times are seconds on a clock of the wall, so that what began at 0 is long ago.

#![allow(non_snake_case, reason = "names are the draft's")]
#![allow(clippy::manual_clamp, reason = "as the draft writes it")]

pub const NOON: f64 = 1.0e6;

const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
const QDELAY_TARGET_LO: f64 = 0.06;
const MIN_REF_WND: f64 = 3000.0;
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const POST_CONGESTION_DELAY_RTTS: f64 = 100.0;
const MUL_INCREASE_FACTOR: f64 = 0.02;
const VIRTUAL_RTT: f64 = 0.025;
const RATE_PACE_MIN: f64 = 50_000.0;
const PACKET_PACING_HEADROOM: f64 = 1.5;
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
const PACKET_OVERHEAD: f64 = 20.0;
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;

pub struct Second {
    pub IS_L4S: bool,
    pub MSS: f64,
    pub TARGET_BITRATE_MIN: f64,
    pub TARGET_BITRATE_MAX: f64,
    pub frame_period: f64,
    pub ref_wnd: f64,
    ref_wnd_i: f64,
    ref_wnd_i_update_allowed: bool,
    pub l4s_alpha: f64,
    last_update_l4s_alpha_time: f64,
    data_units_delivered_this_rtt: f64,
    data_units_marked_this_rtt: f64,
    qdelay_avg: f64,
    last_update_qdelay_avg_time: f64,
    loss_detected: bool,
    data_units_marked: bool,
    last_congestion_detected_time: f64,
    last_reaction_to_congestion_time: f64,
    bytes_newly_acked: f64,
    bytes_newly_acked_ce: f64,
    last_increase_time: f64,
    pub max_bytes_in_flight: f64,
    max_bytes_in_flight_prev: f64,
    last_round_time: f64,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
    pub target_bitrate: f64,
}

/// What a report says.
pub struct Report {
    pub acked: f64,
    pub acked_ce: f64,
    pub units: f64,
    pub units_ce: f64,
    pub lost: bool,
    pub qdelay: f64,
    pub s_rtt: f64,
    pub bytes_in_flight: f64,
}

impl Second {
    pub fn new(IS_L4S: bool, MSS: f64, rates: [f64; 2], frame_period: f64) -> Self {
        Self {
            IS_L4S,
            MSS,
            TARGET_BITRATE_MIN: rates[0],
            TARGET_BITRATE_MAX: rates[1],
            frame_period,
            ref_wnd: MIN_REF_WND,
            ref_wnd_i: 1.0,
            ref_wnd_i_update_allowed: true,
            l4s_alpha: 0.0,
            last_update_l4s_alpha_time: 0.0,
            data_units_delivered_this_rtt: 0.0,
            data_units_marked_this_rtt: 0.0,
            qdelay_avg: 0.0,
            last_update_qdelay_avg_time: 0.0,
            loss_detected: false,
            data_units_marked: false,
            last_congestion_detected_time: 0.0,
            last_reaction_to_congestion_time: 0.0,
            bytes_newly_acked: 0.0,
            bytes_newly_acked_ce: 0.0,
            last_increase_time: 0.0,
            max_bytes_in_flight: 0.0,
            max_bytes_in_flight_prev: 0.0,
            last_round_time: 0.0,
            rate_adjust_factor: 0.0,
            frame_size_dev: 0.0,
            target_bitrate: rates[0],
        }
    }

    pub fn sent(&mut self, bytes_in_flight: f64) {
        if bytes_in_flight > self.max_bytes_in_flight {
            self.max_bytes_in_flight = bytes_in_flight;
        }
    }

    /// §4.4, for each new media frame.
    pub fn frame(&mut self, frame_size: f64, media_qdelay: f64) {
        let error = (media_qdelay - self.frame_period / 4.0) / self.frame_period;
        self.rate_adjust_factor += error * RATE_ADJUST_GAIN;
        self.rate_adjust_factor = f64::min(0.5, f64::max(0.0, self.rate_adjust_factor));
        let frame_size_nom = self.target_bitrate * self.frame_period / 8.0;
        let deviation = f64::max(0.0, (frame_size - frame_size_nom) / frame_size_nom);
        self.frame_size_dev =
            f64::min(0.2, (1.0 - FRAME_SIZE_DEV_ALPHA) * self.frame_size_dev + FRAME_SIZE_DEV_ALPHA * deviation);
    }

    pub fn report(&mut self, r: &Report, now: f64) {
        let s_rtt = r.s_rtt;
        let qdelay_target = QDELAY_TARGET_LO;
        // §4.1.2
        self.bytes_newly_acked += r.acked;
        self.bytes_newly_acked_ce += r.acked_ce;
        self.loss_detected = self.loss_detected || r.lost;
        self.data_units_marked = self.data_units_marked || r.units_ce > 0.0;
        // §4.1.1
        if now - self.last_round_time >= s_rtt {
            self.max_bytes_in_flight_prev = self.max_bytes_in_flight;
            self.max_bytes_in_flight = r.bytes_in_flight;
            self.last_round_time = now;
        }
        self.sent(r.bytes_in_flight);
        // §4.2.1.3
        self.data_units_delivered_this_rtt += r.units;
        self.data_units_marked_this_rtt += r.units_ce;
        if self.data_units_delivered_this_rtt > 0.0 && now - self.last_update_l4s_alpha_time >= f64::min(0.01, s_rtt) {
            let fraction_marked_t = self.data_units_marked_this_rtt / self.data_units_delivered_this_rtt;
            if fraction_marked_t >= self.l4s_alpha {
                self.l4s_alpha = L4S_AVG_G_UP * fraction_marked_t + (1.0 - L4S_AVG_G_UP) * self.l4s_alpha;
            } else {
                self.l4s_alpha *= 1.0 - L4S_AVG_G_DOWN;
            }
            self.last_update_l4s_alpha_time = now;
            self.data_units_delivered_this_rtt = 0.0;
            self.data_units_marked_this_rtt = 0.0;
        }
        // §4.2.1.4
        if now - self.last_update_qdelay_avg_time >= f64::min(VIRTUAL_RTT, s_rtt) {
            if r.qdelay < self.qdelay_avg {
                self.qdelay_avg = r.qdelay;
            } else {
                self.qdelay_avg = QDELAY_AVG_G * r.qdelay + (1.0 - QDELAY_AVG_G) * self.qdelay_avg;
            }
            self.last_update_qdelay_avg_time = now;
        }
        let ref_wnd_delay_scale = 1.0;

        // §4.2.2.1
        let (mut is_loss_t, mut is_ce_t, mut is_virtual_ce_t) = (false, false, false);
        let mut l4s_alpha_v_t = 0.0;
        let mut scl_t = (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i;
        scl_t *= 8.0;
        scl_t = scl_t * scl_t;
        scl_t = f64::max(0.1, f64::min(1.0, scl_t));
        if self.loss_detected || self.data_units_marked {
            self.last_congestion_detected_time = now;
        }
        if now - self.last_reaction_to_congestion_time >= f64::min(VIRTUAL_RTT, s_rtt) {
            if self.loss_detected {
                is_loss_t = true;
            } else if self.data_units_marked {
                is_ce_t = true;
            } else if self.qdelay_avg > qdelay_target / 2.0 {
                l4s_alpha_v_t =
                    f64::min(1.0, f64::max(0.0, (self.qdelay_avg - qdelay_target / 2.0) / (qdelay_target / 2.0)));
                is_virtual_ce_t = true;
            }
        }
        if (is_loss_t || is_ce_t || is_virtual_ce_t) && self.ref_wnd_i_update_allowed {
            self.ref_wnd_i = self.ref_wnd;
            self.ref_wnd_i_update_allowed = false;
        }
        if is_loss_t {
            self.ref_wnd *= BETA_LOSS;
        }
        if is_ce_t {
            if self.IS_L4S {
                let mut backoff_t = self.l4s_alpha / 2.0;
                backoff_t /= f64::max(1.0, s_rtt / VIRTUAL_RTT);
                if r.qdelay < qdelay_target * 0.25 {
                    backoff_t *= f64::max(0.25, scl_t);
                    backoff_t *= f64::max(0.25, ref_wnd_delay_scale);
                }
                if now - self.last_reaction_to_congestion_time > 100.0 * f64::max(VIRTUAL_RTT, s_rtt) {
                    self.ref_wnd = f64::min(self.ref_wnd, self.max_bytes_in_flight_prev);
                }
                self.ref_wnd *= 1.0 - backoff_t;
            } else {
                self.ref_wnd *= BETA_ECN;
            }
        }
        if is_virtual_ce_t {
            let mut backoff_t = l4s_alpha_v_t / 2.0;
            backoff_t /= f64::max(1.0, s_rtt / VIRTUAL_RTT);
            self.ref_wnd *= 1.0 - backoff_t;
        }
        self.ref_wnd = f64::max(MIN_REF_WND, self.ref_wnd);
        if is_loss_t || is_ce_t || is_virtual_ce_t {
            self.last_reaction_to_congestion_time = now;
            // What is detected is "since last_reaction_to_congestion_time".
            self.loss_detected = false;
            self.data_units_marked = false;
        }

        // §4.2.2.2, "once per s_rtt"
        if now - self.last_increase_time >= s_rtt {
            let post_congestion_scale_t = f64::max(
                0.0,
                f64::min(
                    1.0,
                    (now - self.last_congestion_detected_time)
                        / (POST_CONGESTION_DELAY_RTTS * f64::max(VIRTUAL_RTT, s_rtt)),
                ),
            );
            let ref_wnd_scale_factor_t = 1.0 + (MUL_INCREASE_FACTOR * self.ref_wnd) / self.MSS;
            let bytes_newly_acked_minus_ce_t = self.bytes_newly_acked - self.bytes_newly_acked_ce;
            let ref_wnd_ratio = f64::min(1.0, self.MSS / self.ref_wnd);
            let mut increment_t = bytes_newly_acked_minus_ce_t * ref_wnd_ratio;
            let mut tmp_t = f64::min(1.0, s_rtt / VIRTUAL_RTT);
            increment_t *= tmp_t;
            increment_t *= f64::max(0.25, scl_t);
            increment_t *= f64::max(0.1, ref_wnd_delay_scale);
            tmp_t = ref_wnd_scale_factor_t;
            if tmp_t > 1.0 {
                tmp_t = 1.0 + (tmp_t - 1.0) * post_congestion_scale_t * scl_t;
            }
            increment_t *= tmp_t;
            let ref_wnd_prev = self.ref_wnd;
            let max_allowed_t = self.MSS
                + f64::max(self.max_bytes_in_flight, self.max_bytes_in_flight_prev) * BYTES_IN_FLIGHT_HEAD_ROOM;
            let ref_wnd_t = self.ref_wnd + increment_t;
            if ref_wnd_t <= max_allowed_t && self.target_bitrate < self.TARGET_BITRATE_MAX {
                self.ref_wnd = ref_wnd_t;
            }
            if self.ref_wnd > ref_wnd_prev {
                self.ref_wnd_i_update_allowed = true;
            }
            self.bytes_newly_acked = 0.0;
            self.bytes_newly_acked_ce = 0.0;
            self.last_increase_time = now;
        }

        // §4.4
        let ref_wnd_ratio = f64::min(1.0, self.MSS / self.ref_wnd);
        let mut tmp_t = 1.0;
        tmp_t *= 1.0 - f64::min(0.2, f64::max(0.0, ref_wnd_ratio - 0.1));
        tmp_t *= self.MSS / (self.MSS + PACKET_OVERHEAD);
        tmp_t /= 1.2 + self.rate_adjust_factor + self.frame_size_dev;
        self.target_bitrate = tmp_t * 8.0 * self.ref_wnd / s_rtt;
        self.target_bitrate = f64::min(self.TARGET_BITRATE_MAX, f64::max(self.TARGET_BITRATE_MIN, self.target_bitrate));
    }

    /// §4.3.2
    pub fn pace_bitrate(&self) -> f64 {
        let mut pace_bitrate = f64::max(RATE_PACE_MIN, self.target_bitrate) * PACKET_PACING_HEADROOM;
        let nominal_rate_t = self.target_bitrate / self.TARGET_BITRATE_MAX;
        let mut pace_rate_scale_t =
            f64::min(1.0, (nominal_rate_t - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW));
        pace_rate_scale_t = f64::min(1.0, f64::max(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0 - pace_rate_scale_t));
        pace_bitrate /= pace_rate_scale_t;
        pace_bitrate
    }

    /// §4.3.1
    pub fn send_wnd(&self, bytes_in_flight: f64) -> f64 {
        let ref_wnd_delay_scale = 1.0;
        let ref_wnd_overhead = 1.5 + (3.0 - 1.5) * ref_wnd_delay_scale;
        self.ref_wnd * ref_wnd_overhead - bytes_in_flight
    }
}
