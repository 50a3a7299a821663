//! What of the data that arrived was sent last: RFC 8985, RACK, as far as one number a connection goes. Which segments
//! that proves lost is found in [`Outstanding`](crate::outstanding::Outstanding).
//!
//! | RFC 8985           | here          |
//! |--------------------|---------------|
//! | `RACK.xmit_ts`     | `sent_at`     |
//! | `RACK.end_seq`     | `end`         |
//! | `RACK.rtt`         | `rtt`         |
//! | `RACK.min_RTT`     | `min_rtt`     |

use base::{Span, Time};

/// The newest transmission known to have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    sent_at: Time,
    end: u64,
    rtt: Span,
    /// Of the acknowledgement at hand.
    now: Time,
    min_rtt: Span,
    /// Whether that acknowledgement told of anything.
    is_news: bool,
}

impl Rack {
    /// Nothing has arrived yet.
    pub const fn new() -> Self {
        Self {
            sent_at: Time::ZERO,
            end: 0,
            rtt: Span::ZERO,
            now: Time::ZERO,
            min_rtt: Span::from_ns(u64::MAX),
            is_news: false,
        }
    }

    /// An acknowledgement is about to be read.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.now = now;
        self.is_news = false;
    }

    /// A segment up to `end` that was last sent at `sent_at` arrived.
    #[inline]
    pub fn arrived(&mut self, sent_at: Time, end: u64, was_resent: bool) {
        let rtt = self.now.since(sent_at);
        if was_resent && rtt < self.min_rtt {
            // RFC 8985 §6.2 step 2: more likely it is the first transmission that is told of.
            return;
        }
        if !was_resent {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.is_news = true;
        self.rtt = rtt;
        if self.overtakes(self.sent_at, self.end, sent_at, end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Whether something that was sent later than this arrived.
    #[inline]
    pub fn is_overtaken(&self, sent_at: Time, end: u64) -> bool {
        self.overtakes(sent_at, end, self.sent_at, self.end)
    }

    fn overtakes(&self, sent_at: Time, end: u64, later_at: Time, later_end: u64) -> bool {
        later_at > sent_at || later_at == sent_at && later_end > end
    }

    /// Whether the acknowledgement at hand told of anything that arrived.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.is_news
    }

    /// How long a segment that was overtaken may still take, counted from when it was sent, if reordering by `window`
    /// is allowed for (§6.2 step 5).
    pub fn patience(&self, window: Span) -> Span {
        self.rtt + window
    }

    /// The shortest round trip seen; none before the first.
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.ns() < u64::MAX).then_some(self.min_rtt)
    }
}
