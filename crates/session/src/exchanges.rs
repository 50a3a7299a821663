//! Requests and responses over a connection, one exchange at a time.
//!
//! The initiator writes its request as soon as the connection is open. The acceptor answers when it has all of the
//! request and has taken the time that the request says, and closes after the answer if it was the last. The exchange
//! is complete when the initiator has all of the answer. Who sees the other end close does so, too.

use crate::turn::{ACCEPTOR, Completed, Heard, INITIATOR, Turn};
use base::{Span, Time};
use traffic::Exchange;

/// The exchanges of a connection. A driver that has one end alone gives that end its turns.
#[derive(Clone, Copy, Default, Debug)]
pub struct Exchanges {
    under_way: Option<Asked>,
}

/// An exchange under way.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    since: Time,
    open_at: Time,
    request_bytes: u32,
    /// Bytes of the response.
    pub response_bytes: u64,
    /// What the acceptor will have received when it knows the request.
    request_end: u64,
    /// What the initiator will have received when it has the response.
    response_end: u64,
    /// What the acceptor takes to answer a request once it knows it.
    pub server_delay: Span,
    /// When it will have taken that; [`Time::NEVER`] while it does not know the request.
    answer_at: Time,
    /// The request was written.
    is_sent: bool,
    /// The response was written.
    is_answered: bool,
    /// The acceptor closes after the response.
    pub is_last: bool,
}

impl Exchanges {
    /// The initiator asks `now` what has been wanted since `since`; the two ends have `received` so much so far.
    #[inline]
    pub fn ask(&mut self, ask: &Exchange, is_last: bool, since: Time, received: [u64; 2], now: Time) {
        let &Exchange { request_bytes, response_bytes, server_delay, .. } = ask;
        self.under_way = Some(Asked {
            since,
            open_at: now,
            request_bytes,
            response_bytes,
            request_end: received[ACCEPTOR] + u64::from(request_bytes),
            response_end: received[INITIATOR] + response_bytes,
            server_delay,
            answer_at: Time::NEVER,
            is_sent: false,
            is_answered: false,
            is_last,
        });
    }

    /// The exchange under way.
    #[inline]
    pub fn under_way(&self) -> Option<&Asked> {
        self.under_way.as_ref()
    }

    /// Whether the acceptor has answered what is under way.
    pub fn is_answered(&self) -> bool {
        self.under_way.is_some_and(|asked| asked.is_answered)
    }

    /// How much `end` will have received when it next has something to do; 0 where it may have at any time.
    #[inline]
    pub fn heeds(&self, end: usize) -> u64 {
        match &self.under_way {
            None => u64::MAX,
            Some(asked) if end == INITIATOR => {
                if asked.is_sent {
                    asked.response_end
                } else {
                    0
                }
            }
            Some(asked) if asked.is_answered => u64::MAX,
            Some(asked) => asked.request_end,
        }
    }

    /// Whether a time that `end` waits is over.
    #[inline]
    pub fn is_due(&self, end: usize, now: Time) -> bool {
        end == ACCEPTOR && self.under_way.is_some_and(|asked| !asked.is_answered && asked.answer_at <= now)
    }

    /// Gives `end` its turn.
    #[inline]
    pub fn turn(&mut self, end: usize, heard: Heard, now: Time) -> Turn {
        let mut turn = Turn { close: heard.is_closed, ..Turn::default() };
        let Some(asked) = &mut self.under_way else { return turn };
        if end == INITIATOR {
            if !asked.is_sent {
                asked.is_sent = true;
                asked.open_at = now;
                turn.write = asked.request_bytes.into();
            }
            if heard.received >= asked.response_end {
                let &mut Asked { since, open_at, request_bytes, response_bytes, .. } = asked;
                turn.completed =
                    Some(Completed { since, open_at, request_bytes: request_bytes.into(), response_bytes });
                self.under_way = None;
            } else {
                turn.is_cut_off = heard.is_closed;
            }
        } else if !asked.is_answered && heard.received >= asked.request_end {
            if asked.answer_at == Time::NEVER {
                asked.answer_at = now + asked.server_delay;
                turn.wake_at = (asked.server_delay > Span::ZERO).then_some(asked.answer_at);
            }
            if asked.answer_at <= now {
                asked.is_answered = true;
                turn.write = asked.response_bytes;
                turn.close |= asked.is_last;
            }
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn asked(server_delay: Span, is_last: bool) -> Exchanges {
        let mut exchanges = Exchanges::default();
        let ask = Exchange { request_bytes: 300, response_bytes: 2000, top_level: true, server_delay };
        // 70 bytes of an earlier request came, and 50 of its response.
        exchanges.ask(&ask, is_last, at(5), [50, 70], at(10));
        exchanges
    }

    fn heard(received: u64) -> Heard {
        Heard { received, is_closed: false }
    }

    #[test]
    fn an_exchange_is_complete_when_the_last_byte_of_the_response_has_come() {
        let mut exchanges = asked(Span::ZERO, false);
        assert_eq!(exchanges.turn(INITIATOR, heard(50), at(20)), Turn { write: 300, ..Turn::default() });
        assert_eq!(exchanges.turn(ACCEPTOR, heard(369), at(30)), Turn::default(), "a byte is missing");
        assert_eq!(exchanges.heeds(ACCEPTOR), 370);
        assert_eq!(exchanges.turn(ACCEPTOR, heard(370), at(31)), Turn { write: 2000, ..Turn::default() });
        assert_eq!(exchanges.turn(INITIATOR, heard(2049), at(40)), Turn::default(), "a byte is missing");
        assert_eq!(exchanges.heeds(INITIATOR), 2050);
        let completed = Completed { since: at(5), open_at: at(20), request_bytes: 300, response_bytes: 2000 };
        let last = exchanges.turn(INITIATOR, heard(2050), at(41));
        assert_eq!(last, Turn { completed: Some(completed), ..Turn::default() });
        // Once.
        assert_eq!(exchanges.turn(INITIATOR, heard(2050), at(42)), Turn::default());
        assert!(exchanges.under_way().is_none());
    }

    #[test]
    fn a_server_takes_its_time_once_it_knows_the_request_and_closes_after_the_last() {
        let mut exchanges = asked(Span::from_ms(7), true);
        assert_eq!(exchanges.turn(ACCEPTOR, heard(200), at(20)), Turn::default());
        assert!(!exchanges.is_due(ACCEPTOR, at(100)), "it waits for bytes, not for a time");
        assert_eq!(exchanges.turn(ACCEPTOR, heard(370), at(30)).wake_at, Some(at(37)));
        // Said once, and kept to.
        assert_eq!(exchanges.turn(ACCEPTOR, heard(370), at(36)), Turn::default());
        assert!(!exchanges.is_due(ACCEPTOR, at(36)) && exchanges.is_due(ACCEPTOR, at(37)));
        let answer = exchanges.turn(ACCEPTOR, heard(370), at(37));
        assert_eq!(answer, Turn { write: 2000, close: true, ..Turn::default() });
        assert!(!exchanges.is_due(ACCEPTOR, at(38)));
    }

    #[test]
    fn who_sees_the_other_end_close_does_so_and_has_failed_if_something_was_to_come() {
        let closed = |received| Heard { received, is_closed: true };
        let mut exchanges = asked(Span::ZERO, true);
        exchanges.turn(INITIATOR, heard(50), at(20));
        let short = exchanges.turn(INITIATOR, closed(2049), at(40));
        assert!(short.is_cut_off && short.completed.is_none() && exchanges.under_way().is_some());
        let mut exchanges = asked(Span::ZERO, true);
        exchanges.turn(INITIATOR, heard(50), at(20));
        let whole = exchanges.turn(INITIATOR, closed(2050), at(40));
        assert!(whole.close && !whole.is_cut_off && whole.completed.is_some());
        let idle = Exchanges::default().turn(ACCEPTOR, closed(0), at(1));
        assert_eq!(idle, Turn { close: true, ..Turn::default() });
    }
}
