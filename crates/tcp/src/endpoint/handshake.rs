//! This file opens connections: it sends SYN and SYN/ACK, repeats them until they are answered, and agrees on ECN.

use super::accurate;
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
        // (data centres differ, RFC 8257 §3.6).
        // One that is sent again may do without (§6.1.1.1): the first may have been lost for asking.
        // For accurate feedback it asks once more (RFC 9768 §3.1.4.1).
        let is_accurate = config.ecn == EcnMode::Accurate;
        let asks = config.ecn != EcnMode::Off && !(config.ecn_fallback && self.syn_repeats > u8::from(is_accurate));
        let code = if is_accurate { accurate::ASKS } else { accurate::ASKS_CLASSIC };
        let flags = Flags::SYN.with_if(Flags::of_ace(code), asks);
        let is_capable = asks && config.ect_on_control;
        let ecn = if is_capable { config.ect } else { Ecn::NotEct };
        self.send_handshake(flags, ecn, &config.syn_timer, config, now, out);
    }

    /// Sends a SYN/ACK.
    pub(super) fn send_synack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let mut flags = Flags::SYN.with(Flags::ACK).with(self.receiver.echo.synack_flags());
        if self.receiver.echo.is_accurate() && config.ecn_fallback && self.syn_repeats > 1 {
            // RFC 9768 §3.2.3.2.2. Whoever says so sends nothing ECN-capable (§3.1.5).
            flags = Flags::SYN.with(Flags::ACK);
            self.forbid_ect();
        }
        // RFC 5562 §3: only the first SYN/ACK is ECN-capable.
        let is_plus = matches!(config.ecn, EcnMode::Plus | EcnMode::PlusTryOnce);
        let ecn = self.receiver.echo.field(config.ect_on_control || is_plus && self.syn_repeats == 0);
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
        self.sent_field = ecn;
        let factor = timer.factors.get(self.syn_tries as usize).copied().unwrap_or(1);
        self.sender.rto_at = config.timer(now, timer.base * u64::from(factor));
        let window = self.receiver.offered(config).min(u64::from(u32::MAX)) as u32;
        let mut segment = self.receiver.bare_segment(0, window, config.syn_header, flags, ecn, now);
        if let Some(counted) = &mut self.receiver.echo.bytes
            && let Some(option) = counted.of_synack(self.syn_repeats > 0, now)
        {
            segment.carry(&option);
        }
        out.emit(segment);
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
        self.agree(Feedback::of_syn(segment.flags, config), config);
        self.receiver.echo.note_syn(segment.ecn);
        if config.one_way {
            self.answer_one_way(config, now, out);
            return;
        }
        self.state = State::SynReceived;
        self.send_synack(config, now, out);
    }

    /// Takes a SYN that was answered already. An accurate answer tells how the last of them came; an end that is asked
    /// without ECN then sends nothing ECN-capable (RFC 9768 §3.1.5).
    pub(super) fn on_syn_again(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if self.receiver.echo.is_accurate() {
            self.receiver.echo.note_syn(segment.ecn);
            if segment.flags.ace() == accurate::NONE {
                self.forbid_ect();
            }
        }
        self.repeat_handshake(config, now, out);
    }

    /// Takes a SYN/ACK of an open connection: its acknowledgement was lost, and is said again.
    pub(super) fn acknowledge_synack(&mut self, field: Ecn, config: &Config, now: Time, out: &mut impl Emit) {
        if self.receiver.echo.is_accurate() {
            self.receiver.echo.note_synack(field);
        }
        self.receiver.acknowledge(&self.sender, config, now, out);
        self.receiver.echo.tell_count();
    }

    /// Reads in the flags of `segment` how the own packet of the handshake arrived (RFC 9768 §3.2.2.3). If its field
    /// was changed as no router may, nothing ECN-capable is sent. Returns whether a mark is to be answered: Linux
    /// counts it (tcp_accecn_third_ack), and does not.
    fn hear_of_handshake(&mut self, segment: &Segment, config: &Config) -> bool {
        let arrived = accurate::field_of(segment.flags.ace());
        if arrived.is_some_and(|arrived| config.ecn_fallback && !accurate::may_become(self.sent_field, arrived)) {
            self.forbid_ect();
        }
        // For a controller that counts marks, those of data count.
        let counts_marks = config.control.echoes_each_mark() || config.control.needs_counts();
        arrived == Some(Ecn::Ce) && !counts_marks && !config.ecn_option.is_linux()
    }

    /// Reads what a SYN/ACK says of how the SYN arrived. Linux does where the SYN/ACK came marked, and answers no mark
    /// on a SYN (tcp_ecn_rcv_synack).
    fn hear_of_syn(&mut self, segment: &Segment, config: &Config) -> bool {
        if !self.receiver.echo.is_accurate() || config.ecn_option.is_linux() && segment.ecn != Ecn::Ce {
            return false;
        }
        self.hear_of_handshake(segment, config)
    }

    /// Begins with one segment, since a packet of the handshake was marked.
    fn begin_with_one_segment(&mut self, config: &Config) {
        self.sender.window.cwnd = f64::from(config.mss);
        self.sender.stats.ecn_reductions += 1;
        self.sender.heard.owe_cwr();
    }

    /// Takes a SYN/ACK.
    pub(super) fn on_synack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.receiver.rcv_nxt = 1;
        self.receiver.peer_stamp = segment.stamp;
        self.agree(Feedback::of_synack(segment.flags, config), config);
        let is_syn_marked = self.hear_of_syn(segment, config);
        self.receiver.echo.note_synack(segment.ecn);
        self.sender.heard.read_synack(segment);
        if segment.byte_counts().is_some() {
            self.receiver.note_peers_option(true);
        }
        if self.receiver.echo.echoes() && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: say so and wait for the SYN/ACK that is not ECN-capable.
            self.measure_handshake(segment, config, now);
            self.receiver.acknowledge(&self.sender, config, now, out);
            self.receiver.rcv_nxt = 0;
            self.agree(Feedback::Off, config);
            return;
        }
        self.establish(segment, config, now);
        if is_syn_marked {
            self.begin_with_one_segment(config);
        }
        if !config.one_way {
            self.receiver.acknowledge(&self.sender, config, now, out);
        }
        self.receiver.echo.tell_count();
        self.push_generally(config, now, out);
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
        let mut segment = *segment;
        let is_marked = if self.sender.heard.is_accurate() {
            self.read_code(&mut segment, config)
        } else {
            self.sender.heard.hears(&segment)
        };
        if is_marked && config.ecn == EcnMode::PlusTryOnce {
            // RFC 5562 §3.2: the client waits for a SYN/ACK that is not ECN-capable. It is not open yet, so this
            // opens nothing here either; if the timer was faster, that SYN/ACK is on its way.
            if self.syn_repeats == 0 {
                self.measure_handshake(&segment, config, now);
                self.sender.window.cwnd = f64::from(config.mss);
                self.sender.stats.ecn_reductions += 1;
                self.repeat_handshake(config, now, out);
            }
            return;
        }
        self.establish(&segment, config, now);
        if is_marked {
            // ECN+: start with one segment, at once, and say so.
            self.begin_with_one_segment(config);
        }
        self.process::<false>(&segment, config, now, out);
        self.push_generally(config, now, out);
    }

    /// Reads what the flags of the first segment say where that is no count (RFC 9768 §3.2.2.1, Table 4), and puts the
    /// count there. Returns whether a mark on the SYN/ACK is to be answered.
    fn read_code(&mut self, segment: &mut Segment, config: &Config) -> bool {
        if segment.payload > 0 || segment.flags.has(Flags::FIN) || !segment.sacks.is_empty() {
            return false;
        }
        let code = segment.flags.ace();
        if code == accurate::NONE {
            self.forbid_ect();
            self.sender.heard.disbelieve();
            return false;
        }
        let is_marked = self.hear_of_handshake(segment, config);
        let counted = self.sender.heard.count_synack(accurate::field_of(code) == Some(Ecn::Ce));
        segment.flags = segment.flags.without(Flags::of_ace(accurate::ASKS)).with(counted);
        is_marked
    }

    /// Begins an open connection.
    fn establish(&mut self, segment: &Segment, config: &Config, now: Time) {
        let is_server = std::mem::replace(&mut self.state, State::Established) == State::SynReceived;
        self.sender.snd_una = 1;
        self.sender.peer_window = u64::from(segment.window);
        self.sender.rto_at = Time::NEVER;
        if config.synack_rtt || !is_server {
            self.measure_handshake(segment, config, now);
        }
        if self.syn_tries > 0 && config.one_way {
            // tcp.cc, timeout: a window of one segment leaves a threshold of two; only a sample ends the back-off; and
            // bugfix_ss_ starts with one segment.
            (0..self.syn_tries).for_each(|_| self.sender.rtt.back_off(config));
            let mss = f64::from(config.mss);
            self.sender.window = Window { cwnd: mss, ssthresh: 2.0 * mss };
        } else if self.syn_tries > 0 {
            self.sender.rtt.raise_initial(Span::from_secs(3), config);
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
        let rtt = match self.syn_repeats {
            0 => now.since(self.sender.last_sent_at),
            _ if config.timestamps => age_of(segment.echo, now),
            _ => return,
        };
        self.sender.measure_handshake(rtt, config);
    }
}
