//! When the peer's window closes, the sender asks from time to time whether there is room again.
//!
//! It asks when it may send nothing and no acknowledgement is to come that would say so. It asks first after a
//! retransmission timeout, then after twice that, and so on (RFC 9293 §3.8.6.1), and goes on as long as it is answered.
//!
//! # Deviations
//! - Probes are empty and old, as Linux's are (tcp_xmit_probe_skb); BSD's and the RFC's carry a byte. One into a window
//!   that holds something, but no segment, carries that much.

use super::{Outlet, Sender};
use crate::endpoint::Emit;
use crate::segment::Flags;
use crate::stack::Config;
use base::{Ecn, Span, Time};

/// Probes without an answer, after which the connection is given up (Linux, tcp_retries2).
const MOST_PROBES: u8 = 15;
/// TCP_RTO_MIN, which Linux does not let the time between probes fall below.
const SHORTEST: Span = Span::from_ms(200);

/// A sender that waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    /// When it asks next.
    at: Time,
    /// Questions asked, and those without an answer.
    asked: u8,
    unanswered: u8,
}

impl Sender {
    /// If nothing is outstanding, and what comes next does not fit the peer's window: asks for it later.
    pub(super) fn ask_for_room(&mut self, config: &Config, now: Time) {
        let fits = self.next_new(config).is_none_or(|(len, _)| u64::from(len) <= self.peer_window);
        if self.snd_nxt > self.snd_una || fits || self.persist.is_some() {
            return;
        }
        let at = config.timer(now, self.rtt.rto(config).max(SHORTEST));
        self.persist = Some(Box::new(Persist { at, asked: 0, unanswered: 0 }));
        self.note_seldom();
    }

    /// The peer said something: whatever it is, it is there; and there may be room.
    pub(super) fn hear_of_room(&mut self, config: &Config) {
        let unacknowledged = self.snd_nxt - self.snd_una;
        let needed = self.next_new(config).map_or(0, |(len, _)| u64::from(len));
        let has_room = unacknowledged + needed <= self.peer_window;
        if let Some(persist) = &mut self.persist {
            persist.unanswered = 0;
            if has_room || unacknowledged > 0 {
                self.persist = None;
            }
        }
    }

    /// When the peer is to be asked for its window.
    #[inline]
    pub(in crate::endpoint) fn persist_at(&self) -> Time {
        self.persist.as_ref().map_or(Time::NEVER, |persist| persist.at)
    }

    /// Asks for the window. Returns whether it was asked for in vain too often: the connection is to be given up.
    pub(in crate::endpoint) fn on_persist_timer(
        &mut self,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        let Some(persist) = self.persist.take() else { return false };
        let Some((len, _)) = self.next_new(config) else { return false };
        if self.snd_una != self.snd_nxt {
            return false;
        }
        if persist.unanswered >= MOST_PROBES {
            return true;
        }
        if self.peer_window > 0 {
            // Silly, but better than nothing for ever (RFC 9293 §3.8.6.2.1).
            let part = u64::from(len).min(self.peer_window) as u32;
            self.send_new(part, false, config, now, out);
            return false;
        }
        let window = out.receiver.window_to_tell(config);
        let seq = self.snd_una - 1;
        out.emit.emit(out.receiver.bare_segment(seq, window, config.header, Flags::ACK, Ecn::NotEct, now));
        let asked = persist.asked.saturating_add(1);
        let base = self.rtt.rto(config).max(SHORTEST);
        let wait = Span::from_ns((base.ns() << asked.min(10)).min(config.rto_max.ns()));
        let again = Persist { at: config.timer(now, wait), asked, unanswered: persist.unanswered + 1 };
        self.persist = Some(Box::new(again));
        false
    }
}
