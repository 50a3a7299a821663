//! Opening a connection: SYN, SYN/ACK and what answers them, repeated until they get through, and ECN agreed on.

use super::feedback::Feedback;
use super::{Emit, Endpoint, State};
use crate::cc::Window;
use crate::segment::{Flags, SackBlocks, Segment};
use crate::stack::{Config, EcnMode, SynTimer};
use base::{Ecn, Span, Time};

impl Endpoint {
    pub(super) fn send_syn(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        // RFC 3168 §6.1.1: an ECN-setup SYN has ECE and CWR set and is not ECN-capable itself
        // (data centres differ, RFC 8257 §3.5).
        // Sent again, it may do without (§6.1.1.1): it may have been lost for asking.
        let asks = config.ecn != EcnMode::Off && !(config.ecn_fallback && self.syn_repeats > 0);
        let flags = Flags::SYN.with_if(Flags::ECE.with(Flags::CWR), asks);
        let is_capable = asks && config.ect_on_control;
        let ecn = if is_capable { config.ect } else { Ecn::NotEct };
        self.send_handshake(flags, ecn, &config.syn_timer, config, now, out);
    }

    pub(super) fn send_synack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let flags = Flags::SYN.with(Flags::ACK).with_if(Flags::ECE, self.feedback.is_on());
        // RFC 5562 §3: only the first SYN/ACK is ECN-capable.
        let is_plus = matches!(config.ecn, EcnMode::Plus | EcnMode::PlusTryOnce);
        let ecn = self.feedback.field(config.ect_on_control || is_plus && self.syn_repeats == 0, config);
        self.send_handshake(flags, ecn, &config.synack_timer, config, now, out);
    }

    fn send_handshake(
        &mut self,
        flags: Flags,
        ecn: Ecn,
        timer: &SynTimer,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        self.snd_nxt = 1;
        self.last_sent_at = now;
        let factor = timer.factors.get(self.syn_tries as usize).copied().unwrap_or(1);
        self.rto_at = config.timer(now, timer.base * u64::from(factor));
        out.emit(Segment {
            seq: 0,
            ack: self.rcv_nxt,
            sacks: SackBlocks::default(),
            window: self.offered(config).min(u64::from(u32::MAX)) as u32,
            stamp: Self::stamp_of(now),
            echo: self.peer_stamp,
            payload: 0,
            size: config.syn_header as u16,
            flags,
            ecn,
        });
    }

    pub(super) fn retry_syn(&mut self, timer: &SynTimer, config: &Config, now: Time, out: &mut impl Emit) {
        self.stats.timeouts += 1;
        self.syn_tries += 1;
        if usize::from(self.syn_tries) >= timer.factors.len() {
            self.state = State::Aborted;
            self.rto_at = Time::NEVER;
            return;
        }
        self.repeat_handshake(config, now, out);
    }

    pub(super) fn repeat_handshake(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.stats.retransmitted += 1;
        self.syn_repeats = self.syn_repeats.saturating_add(1);
        if self.state == State::SynSent { self.send_syn(config, now, out) } else { self.send_synack(config, now, out) }
    }

    pub(super) fn on_synack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.rcv_nxt = 1;
        self.peer_stamp = segment.stamp;
        self.feedback = Feedback::agreed(segment.flags.has(Flags::ECE), config);
        if segment.ecn == Ecn::Ce {
            self.feedback.note_marked_synack();
        }
        if self.feedback.echoes() && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: say so and wait for the SYN/ACK that is not ECN-capable.
            self.measure_handshake(segment, config, now);
            self.send_ack(config, now, out);
            self.rcv_nxt = 0;
            self.feedback = Feedback::Off;
            return;
        }
        self.establish(segment, config, now);
        if !config.one_way {
            self.send_ack(config, now, out);
        }
        self.push(config, now, out);
    }

    /// The answer to a SYN where the opener alone sends: it opens this end, and nobody acknowledges it.
    pub(super) fn answer_one_way(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.send_synack(config, now, out);
        self.state = State::Established;
        (self.snd_una, self.rto_at) = (1, Time::NEVER);
    }

    pub(super) fn on_handshake_ack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if !segment.flags.has(Flags::ACK) || segment.ack < 1 {
            return;
        }
        let is_marked = self.feedback.hears(segment);
        if is_marked && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: the client waits for a SYN/ACK that is not ECN-capable. It is not open yet, so this
            // opens nothing here either; if the timer was faster, that SYN/ACK is on its way.
            if self.syn_repeats == 0 {
                self.measure_handshake(segment, config, now);
                self.window.cwnd = f64::from(config.mss);
                self.stats.ecn_reductions += 1;
                self.repeat_handshake(config, now, out);
            }
            return;
        }
        self.establish(segment, config, now);
        if is_marked {
            // ECN+: start with one segment, at once, and say so.
            self.window.cwnd = f64::from(config.mss);
            self.stats.ecn_reductions += 1;
            self.feedback.owe_cwr();
        }
        self.process(segment, config, now, out);
        self.push(config, now, out);
    }

    fn establish(&mut self, segment: &Segment, config: &Config, now: Time) {
        self.state = State::Established;
        self.snd_una = 1;
        self.peer_window = u64::from(segment.window);
        self.rto_at = Time::NEVER;
        self.measure_handshake(segment, config, now);
        if self.syn_tries > 0 && config.one_way {
            // tcp.cc, timeout: what would be left of a window of one segment is two for the threshold; only a sample
            // ends the back-off; and bugfix_ss_ starts with one segment.
            (0..self.syn_tries).for_each(|_| self.rtt.back_off(config));
            let mss = f64::from(config.mss);
            self.window = Window { cwnd: mss, ssthresh: 2.0 * mss };
        } else if self.syn_tries > 0 {
            self.rtt.raise_initial(Span::from_secs(3));
        }
        if config.syn_loss_resets_window && u32::from(self.syn_repeats) > config.syn_losses_forgiven {
            self.window.cwnd = f64::from(config.mss);
        }
        self.last_sent_at = now;
        if self.pacer.is_some() {
            self.open_pacing(config, now);
        }
    }

    /// Takes the round trip of the handshake, unless its answer could be to either of two packets (Karn), which a
    /// timestamp tells apart.
    fn measure_handshake(&mut self, segment: &Segment, config: &Config, now: Time) {
        if self.rtt.srtt().is_some() {
            return;
        }
        if self.syn_repeats == 0 {
            self.rtt.sample(now.since(self.last_sent_at), self.snd_una, self.snd_nxt, config);
        } else if config.timestamps {
            self.rtt.sample(Self::age_of(segment.echo, now), self.snd_una, self.snd_nxt, config);
        }
    }
}
