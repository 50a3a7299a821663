//! While the peer's window is closed, the sender asks from time to time whether there is room again (window probes).
//!
//! It asks only if it may send nothing and no acknowledgement is to come that could open the window. It asks first
//! after a retransmission timeout, then after twice that, and so on (RFC 9293 §3.8.6.1). It goes on as long as it is
//! answered.
//!
//! # Deviations
//! - Probes are empty and carry an old sequence number, as Linux's do (tcp_xmit_probe_skb). BSD's and the RFC's carry a
//!   byte. If the window has room for less than a segment, the probe carries as much as there is room for.

use super::{Outlet, Sender};
use crate::endpoint::Emit;
use crate::segment::Flags;
use crate::stack::Config;
use base::{Ecn, Span, Time};

/// After so many probes without an answer the connection is given up (Linux, tcp_retries2).
const MOST_PROBES: u8 = 15;
/// The shortest time between probes: TCP_RTO_MIN, as in Linux.
const SHORTEST: Span = Span::from_ms(200);

/// A sender that waits for room.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Persist {
    /// When it asks next.
    at: Time,
    /// Probes sent, and those sent since the peer was last heard.
    asked: u8,
    unanswered: u8,
}

base::left_whole!(Persist);

impl Sender {
    /// Sets the timer of the first probe, if nothing is outstanding and the next segment does not fit the peer's
    /// window.
    pub(super) fn ask_for_room(&mut self, config: &Config, now: Time) {
        let fits = self.next_new(config).is_none_or(|(len, _)| u64::from(len) <= self.peer_window);
        if self.snd_nxt > self.snd_una || fits || self.persist.is_some() {
            return;
        }
        let at = config.timer(now, self.rtt.rto(config).max(SHORTEST));
        self.persist = Some(Box::new(Persist { at, asked: 0, unanswered: 0 }));
        self.note_seldom();
    }

    /// Notes that the peer was heard. The probes end if it has room.
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

    /// When the next probe is due.
    #[inline]
    pub(in crate::endpoint) fn persist_at(&self) -> Time {
        self.persist.as_ref().map_or(Time::NEVER, |persist| persist.at)
    }

    /// Sends a probe. Returns whether too many went unanswered, so that the connection is to be given up.
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
            // A small segment into a small window is better than none for ever (RFC 9293 §3.8.6.2.1).
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
