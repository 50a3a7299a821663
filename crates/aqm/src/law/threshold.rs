//! A threshold on the queue is a length, which the backlog may exceed, or a time, which a packet's sojourn may exceed.

use crate::packet::Backlog;
use crate::param::{Length, Values};
use base::Span;

/// A threshold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Threshold {
    /// A length of queue.
    Length(Length),
    /// A time that a packet stays in it.
    Sojourn(Span),
}

impl Threshold {
    /// The length or time called `name`, if there is one.
    pub fn find(values: &Values, name: &str) -> Option<Self> {
        let length = values.find_length(name).map(Self::Length);
        length.or_else(|| values.find_time(name).map(Self::Sojourn))
    }

    /// Whether `backlog` is longer. A time does not judge lengths.
    #[inline]
    pub fn is_exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Length(Length::Packets(packets)) => f64::from(backlog.packets) > packets,
            Self::Length(Length::Bytes(bytes)) => backlog.bytes as f64 > bytes,
            Self::Sojourn(_) => false,
        }
    }

    /// Whether a packet that stayed for `sojourn` stayed longer. A length does not judge times.
    #[inline]
    pub fn is_exceeded_in(self, sojourn: Span) -> bool {
        match self {
            Self::Length(_) => false,
            Self::Sojourn(longest) => sojourn > longest,
        }
    }
}
