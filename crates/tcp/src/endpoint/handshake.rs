//! This file opens connections: it sends SYN and SYN/ACK, repeats them until they are answered, and agrees on ECN.

use super::feedback::Feedback;
use super::{Emit, Endpoint, State};
use crate::cc::Window;
use crate::segment::{Flags, Segment, age_of};
use crate::stack::{Config, EcnMode, SynTimer};
use base::{Ecn, Span, Time};

impl Endpoint {
    /// Sends a SYN.
    pub(super) fn send_syn(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        // RFC 3168 §6.1.1: an ECN-setup SYN has ECE and CWR set and is not ECN-capable itself
        // (data centres differ, RFC 8257 §3.5).
        // One that is sent again may do without (§6.1.1.1): the first may have been lost for asking.
        let asks = config.ecn != EcnMode::Off && !(config.ecn_fallback && self.syn_repeats > 0);
        let flags = Flags::SYN.with_if(Flags::ECE.with(Flags::CWR), asks);
        let is_capable = asks && config.ect_on_control;
        let ecn = if is_capable { config.ect } else { Ecn::NotEct };
        self.send_handshake(flags, ecn, &config.syn_timer, config, now, out);
    }

    /// Sends a SYN/ACK.
    pub(super) fn send_synack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let flags = Flags::SYN.with(Flags::ACK).with_if(Flags::ECE, self.receiver.echo.is_on());
        // RFC 5562 §3: only the first SYN/ACK is ECN-capable.
        let is_plus = matches!(config.ecn, EcnMode::Plus | EcnMode::PlusTryOnce);
        let ecn = self.receiver.echo.field(config.ect_on_control || is_plus && self.syn_repeats == 0, config);
        self.send_handshake(flags, ecn, &config.synack_timer, config, now, out);
    }

    /// Sends one of the two, and starts its timer.
    fn send_handshake(
        &mut self,
        flags: Flags,
        ecn: Ecn,
        timer: &SynTimer,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        self.sender.snd_nxt = 1;
        self.sender.last_sent_at = now;
        let factor = timer.factors.get(self.syn_tries as usize).copied().unwrap_or(1);
        self.sender.rto_at = config.timer(now, timer.base * u64::from(factor));
        let window = self.receiver.offered(config).min(u64::from(u32::MAX)) as u32;
        out.emit(self.receiver.bare_segment(0, window, config.syn_header, flags, ecn, now));
    }

    /// Sends again or gives up, when the handshake's timer has expired.
    pub(super) fn retry_syn(&mut self, timer: &SynTimer, config: &Config, now: Time, out: &mut impl Emit) {
        self.sender.stats.timeouts += 1;
        self.syn_tries += 1;
        if usize::from(self.syn_tries) >= timer.factors.len() {
            self.state = State::Aborted;
            self.sender.rto_at = Time::NEVER;
            return;
        }
        self.repeat_handshake(config, now, out);
    }

    /// Sends the SYN or the SYN/ACK again.
    pub(super) fn repeat_handshake(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.sender.stats.retransmitted += 1;
        self.syn_repeats = self.syn_repeats.saturating_add(1);
        if self.state == State::SynSent { self.send_syn(config, now, out) } else { self.send_synack(config, now, out) }
    }

    /// Takes a SYN.
    pub(super) fn on_syn(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.receiver.rcv_nxt = 1;
        self.sender.peer_window = u64::from(segment.window);
        self.receiver.peer_stamp = segment.stamp;
        self.agree(Feedback::agreed(segment.flags.has(Flags::ECE.with(Flags::CWR)), config));
        if config.one_way {
            self.answer_one_way(config, now, out);
            return;
        }
        self.state = State::SynReceived;
        self.send_synack(config, now, out);
    }

    /// Takes a SYN/ACK.
    pub(super) fn on_synack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.receiver.rcv_nxt = 1;
        self.receiver.peer_stamp = segment.stamp;
        self.agree(Feedback::agreed(segment.flags.has(Flags::ECE), config));
        if segment.ecn == Ecn::Ce {
            self.receiver.echo.note_marked_synack();
        }
        if self.receiver.echo.echoes() && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: say so and wait for the SYN/ACK that is not ECN-capable.
            self.measure_handshake(segment, config, now);
            self.receiver.acknowledge(&self.sender, config, now, out);
            self.receiver.rcv_nxt = 0;
            self.agree(Feedback::Off);
            return;
        }
        self.establish(segment, config, now);
        if !config.one_way {
            self.receiver.acknowledge(&self.sender, config, now, out);
        }
        self.push(config, now, out);
    }

    /// Answers a SYN where only the opener sends. The answer opens this end, and nobody acknowledges it.
    pub(super) fn answer_one_way(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.send_synack(config, now, out);
        self.state = State::Established;
        (self.sender.snd_una, self.sender.rto_at) = (1, Time::NEVER);
    }

    /// Takes the acknowledgement of a SYN/ACK.
    pub(super) fn on_handshake_ack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if !segment.flags.has(Flags::ACK) || segment.ack < 1 {
            return;
        }
        let is_marked = self.sender.heard.hears(segment);
        if is_marked && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: the client waits for a SYN/ACK that is not ECN-capable. It is not open yet, so this
            // opens nothing here either; if the timer was faster, that SYN/ACK is on its way.
            if self.syn_repeats == 0 {
                self.measure_handshake(segment, config, now);
                self.sender.window.cwnd = f64::from(config.mss);
                self.sender.stats.ecn_reductions += 1;
                self.repeat_handshake(config, now, out);
            }
            return;
        }
        self.establish(segment, config, now);
        if is_marked {
            // ECN+: start with one segment, at once, and say so.
            self.sender.window.cwnd = f64::from(config.mss);
            self.sender.stats.ecn_reductions += 1;
            self.sender.heard.owe_cwr();
        }
        self.process(segment, config, now, out);
        self.push(config, now, out);
    }

    /// Begins an open connection.
    fn establish(&mut self, segment: &Segment, config: &Config, now: Time) {
        self.state = State::Established;
        self.sender.snd_una = 1;
        self.sender.peer_window = u64::from(segment.window);
        self.sender.rto_at = Time::NEVER;
        self.measure_handshake(segment, config, now);
        if self.syn_tries > 0 && config.one_way {
            // tcp.cc, timeout: a window of one segment leaves a threshold of two; only a sample ends the back-off; and
            // bugfix_ss_ starts with one segment.
            (0..self.syn_tries).for_each(|_| self.sender.rtt.back_off(config));
            let mss = f64::from(config.mss);
            self.sender.window = Window { cwnd: mss, ssthresh: 2.0 * mss };
        } else if self.syn_tries > 0 {
            self.sender.rtt.raise_initial(Span::from_secs(3));
        }
        if config.syn_loss_resets_window && u32::from(self.syn_repeats) > config.syn_losses_forgiven {
            self.sender.window.cwnd = f64::from(config.mss);
        }
        self.sender.last_sent_at = now;
        self.sender.open_pacing(config, now);
    }

    /// Measures the round trip of the handshake, unless the answer could belong to either of two packets (Karn's rule).
    /// A timestamp tells these apart.
    fn measure_handshake(&mut self, segment: &Segment, config: &Config, now: Time) {
        if self.sender.rtt.srtt().is_some() {
            return;
        }
        if self.syn_repeats == 0 {
            self.sender.rtt.sample(
                now.since(self.sender.last_sent_at),
                self.sender.snd_una,
                self.sender.snd_nxt,
                config,
            );
        } else if config.timestamps {
            self.sender.rtt.sample(age_of(segment.echo, now), self.sender.snd_una, self.sender.snd_nxt, config);
        }
    }
}
