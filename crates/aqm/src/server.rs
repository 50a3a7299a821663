//! A server says when packets pass on a link whose rate is not constant.

use crate::changes::{Change, Changes};
use crate::trace::{Opportunities, Trace};
use base::{Serializer, Span, Time};

/// Says when a transmission begins and ends.
pub(crate) enum Server {
    /// A wire of constant rate, which sends at once.
    Constant,
    /// The opportunities of a trace.
    Trace(Opportunities),
    /// A wire whose rate changes and which has outages.
    Changing(Changing),
}

/// A wire that changes.
pub(crate) struct Changing {
    changes: Changes,
    next: Option<Change>,
    resumes_at: Time,
}

impl Server {
    /// The opportunities of `trace`.
    pub fn traced(trace: Trace) -> Self {
        Self::Trace(Opportunities::new(trace))
    }

    /// A wire with these changes.
    pub fn changing(mut changes: Changes) -> Self {
        let next = changes.next();
        Self::Changing(Changing { changes, next, resumes_at: Time::ZERO })
    }

    /// When the transmission of a packet that is there at `now` may begin. `is_due` says that the link has waited for
    /// the server until now. A packet that only now arrives has come too late for an opportunity of this instant.
    pub fn ready(&mut self, now: Time, is_due: bool) -> Time {
        match self {
            Self::Constant => now,
            Self::Trace(opportunities) => opportunities.ready(if is_due { now } else { now + Span::from_ns(1) }),
            Self::Changing(changing) => changing.resumes_at.max(now),
        }
    }

    /// Sends `bytes` from `ready` on; returns when the last of them has left.
    pub fn send(&mut self, bytes: u32, ready: Time, wire: &mut Serializer) -> Time {
        match self {
            Self::Constant | Self::Changing(_) => wire.send(bytes, ready),
            Self::Trace(opportunities) => opportunities.send(bytes),
        }
    }

    /// When it changes next.
    pub fn next_change(&self) -> Time {
        match self {
            Self::Changing(Changing { next: Some(change), .. }) => change.at,
            _ => Time::NEVER,
        }
    }

    /// The change that is due.
    pub fn change(&mut self, wire: &mut Serializer) {
        if let Self::Changing(Changing { changes, next, resumes_at }) = self
            && let Some(change) = next.take()
        {
            wire.set_rate(change.condition.rate);
            *resumes_at = change.resumes_at.max(*resumes_at);
            *next = changes.next();
        }
    }
}
