//! RACK (RFC 8985) finds losses by time: a segment is lost if one that was sent well after it has arrived. This file
//! keeps the newest transmission known to have arrived, and how much reordering is allowed for.
//! [`Outstanding`](crate::outstanding::Outstanding) finds the segments that are lost by that.
//!
//! | RFC 8985           | here          |
//! |--------------------|---------------|
//! | `RACK.xmit_ts`     | `sent_at`     |
//! | `RACK.end_seq`     | `end`         |
//! | `RACK.rtt`         | `rtt`         |
//! | `RACK.min_RTT`     | `min_rtt`     |
//! | `RACK.reordering_seen` | `saw_reordering` |
//! | `RACK.reo_wnd_mult` | `quarters`   |
//! | `RACK.reo_wnd_persist` | `recoveries_left` |
//!
//! The least round trip is of the whole connection, for which the RFC leaves the choice. Linux's is of the last 300 s.

use base::{Pack, Packer, Span, Time, Unpacker};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What is known while an acknowledgement is read. It means nothing afterwards, and the next acknowledgement sets it
/// anew. So it is no part of the state when two are compared.
#[derive(Clone, Copy)]
pub(crate) struct AtHand<T>(pub T);

impl<T> PartialEq for AtHand<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<T> Deref for AtHand<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for AtHand<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> fmt::Debug for AtHand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("at hand")
    }
}

impl<T: Default> Pack for AtHand<T> {
    fn pack(&self, _to: &mut Packer) {}

    fn unpack(_from: &mut Unpacker<'_>) -> Self {
        Self(T::default())
    }

    fn restore(&mut self, _from: &mut Unpacker<'_>) {}
}

/// The current acknowledgement.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Hand {
    now: Time,
    /// The timestamp that it echoes, where there are timestamps.
    echo: Option<u16>,
    /// Whether the acknowledgement reported anything that arrived.
    is_news: bool,
}

/// The newest transmission known to have arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rack {
    sent_at: Time,
    end: u64,
    rtt: Span,
    min_rtt: Span,
    hand: AtHand<Hand>,
    /// Whether something that was sent once arrived after something that was sent later.
    saw_reordering: bool,
    /// How much reordering is allowed, in quarters of the shortest round trip.
    quarters: u8,
    /// Recoveries until that is one quarter again.
    recoveries_left: u8,
    /// Whether something came twice since `adapted_at`, when that was last raised.
    saw_needless: bool,
    adapted_at: Time,
}

base::packed!(Rack {
    sent_at,
    end,
    rtt,
    min_rtt,
    hand,
    saw_reordering,
    quarters,
    recoveries_left,
    saw_needless,
    adapted_at,
});

/// How old a timestamp may be to be compared: half of what 16 bits of milliseconds hold, with some room.
pub(crate) const COMPARABLE: Span = Span::from_secs(30);
/// TCP_RACK_RECOVERY_THRESH, and RFC 8985 §6.2 step 4: how many recoveries a wider window lasts.
const WIDER_FOR: u8 = 16;

impl Rack {
    /// The state before anything has arrived.
    pub const fn new() -> Self {
        Self {
            sent_at: Time::ZERO,
            end: 0,
            rtt: Span::ZERO,
            min_rtt: Span::from_ns(u64::MAX),
            hand: AtHand(Hand { now: Time::ZERO, echo: None, is_news: false }),
            saw_reordering: false,
            quarters: 1,
            recoveries_left: 0,
            saw_needless: false,
            adapted_at: Time::ZERO,
        }
    }

    /// Notes the round trip of the handshake, which counts for the shortest (tcp_synack_rtt_meas).
    pub fn note_handshake(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// Begins to read an acknowledgement.
    #[inline]
    pub fn begin(&mut self, now: Time, echo: Option<u16>) {
        *self.hand = Hand { now, echo, is_news: false };
    }

    /// Notes that segments that were sent once arrived in order at `now`, and nothing is missing. The last of them ends
    /// at `end` and was sent at `sent_at`. It does what [`Rack::begin`], and [`Rack::arrived`] for each, do together.
    #[inline]
    pub fn arrived_in_order(&mut self, sent_at: Time, end: u64, now: Time) {
        self.rtt = now.since(sent_at);
        self.min_rtt = self.min_rtt.min(self.rtt);
        if self.overtakes(self.sent_at, self.end, sent_at, end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Whether [`Rack::adapt`] has nothing to do before something more is noted.
    pub fn is_settled(&self) -> bool {
        !self.saw_needless && (self.recoveries_left > 0 || self.quarters == 1)
    }

    /// Notes that a segment up to `end` that was last sent at `sent_at` arrived.
    #[inline]
    pub fn arrived(&mut self, sent_at: Time, end: u64, was_resent: bool) {
        let rtt = self.hand.now.since(sent_at);
        if was_resent && rtt < self.min_rtt {
            // RFC 8985 §6.2 step 2: more likely the first transmission has arrived.
            return;
        }
        if !was_resent {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.hand.is_news = true;
        self.rtt = rtt;
        if self.overtakes(self.sent_at, self.end, sent_at, end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Whether the echoed timestamp is from before `sent_at`. Then the acknowledged data is not that which was sent
    /// again at that time (tcp_skb_spurious_retrans). Reports cannot be judged so, since the echo belongs to data that
    /// came in order.
    #[inline]
    pub fn is_of_first(&self, sent_at: Time) -> bool {
        let stamp = (sent_at.ns() / 1_000_000) as u16;
        let is_comparable = self.hand.now.since(sent_at) < COMPARABLE;
        is_comparable && self.hand.echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i16) < 0)
    }

    /// Notes that data that was sent once arrived after data that was sent later.
    #[inline]
    pub fn note_reordering(&mut self) {
        self.saw_reordering = true;
    }

    /// Notes that a segment that was sent again came twice.
    pub fn note_needless(&mut self) {
        self.saw_needless |= self.saw_reordering;
    }

    /// Notes the end of a recovery that was not needless.
    pub fn note_real_recovery(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
    }

    /// Notes that a reduction was taken back because everything that was sent again came twice.
    pub fn note_undone(&mut self) {
        self.recoveries_left = (self.recoveries_left + 1).min(WIDER_FOR);
    }

    /// Sets how much reordering is allowed, with every acknowledgement (tcp_rack_update_reo_wnd). It is a quarter more
    /// when something came twice, at most once a round trip.
    #[inline]
    pub fn adapt(&mut self) {
        if self.saw_needless && self.sent_at < self.adapted_at {
            self.saw_needless = false;
        }
        if self.saw_needless {
            self.quarters = self.quarters.saturating_add(1);
            self.recoveries_left = WIDER_FOR;
            self.adapted_at = self.hand.now;
            self.saw_needless = false;
        } else if self.recoveries_left == 0 {
            self.quarters = 1;
        }
    }

    /// How much reordering is allowed for (§6.2 step 4), at most `srtt`. It is none while no reordering was seen and
    /// the sender `is_sure` for other reasons that what is missing is lost.
    pub fn reordering_window(&self, is_sure: bool, srtt: Option<Span>) -> Span {
        if is_sure && !self.saw_reordering {
            return Span::ZERO;
        }
        let Some(shortest) = self.min_rtt() else { return Span::ZERO };
        let window = shortest / 4 * u64::from(self.quarters);
        window.min(srtt.unwrap_or(window))
    }

    /// Asks for another look at what is missing.
    pub fn look_again(&mut self) {
        self.hand.is_news = true;
    }

    /// Whether something that was sent later than this segment arrived.
    #[inline]
    pub fn is_overtaken(&self, sent_at: Time, end: u64) -> bool {
        self.overtakes(sent_at, end, self.sent_at, self.end)
    }

    fn overtakes(&self, sent_at: Time, end: u64, later_at: Time, later_end: u64) -> bool {
        later_at > sent_at || later_at == sent_at && later_end > end
    }

    /// Whether the current acknowledgement told of anything that arrived.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.hand.is_news
    }

    /// How long after it was sent an overtaken segment may still arrive before it is deemed lost, if reordering by
    /// `window` is allowed for (§6.2 step 5).
    pub fn patience(&self, window: Span) -> Span {
        self.rtt + window
    }

    /// The shortest round trip seen; none before the first.
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.ns() < u64::MAX).then_some(self.min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_slower_than_the_handshake_is_to_what_was_sent_again() {
        // The handshake took 50 ms, data that waited took 80, and the answer to a probe 55.
        for knows_handshake in [true, false] {
            let at = |ms: u64| Time::from_ns(ms * 1_000_000);
            let mut rack = Rack::new();
            if knows_handshake {
                rack.note_handshake(Span::from_ms(50));
            }
            rack.begin(at(80), None);
            rack.arrived(at(0), 1_000, false);
            rack.begin(at(255), None);
            rack.arrived(at(200), 2_000, true);
            assert_eq!(rack.has_news(), knows_handshake);
        }
    }

    #[test]
    fn a_stamp_is_compared_for_half_a_minute() {
        // Stamps have 16 bits of milliseconds: after 40 s what was sent last looks as if it came first.
        let mut rack = Rack::new();
        let sent_at = Time::from_ns(1_000_000_000);
        rack.begin(Time::from_ns(1_100_000_000), Some(999));
        assert!(rack.is_of_first(sent_at));
        rack.begin(Time::from_ns(41_000_000_000), Some(41_000));
        assert!(!rack.is_of_first(sent_at));
    }
}
