//! Data one way, from the end that opens the connection.
//!
//! The initiator writes all of it as soon as the connection is open, and closes; one without an end goes on. It is
//! complete when the acceptor has all of it, which then closes as it sees the initiator close. One that was cut off is
//! no result: its connection has failed.

use crate::turn::{Completed, Heard, INITIATOR, Turn};
use base::Time;

/// A transfer: both ends of it.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    since: Time,
    open_at: Time,
    bytes: u64,
    is_sent: bool,
    is_complete: bool,
}

/// More than any run transfers; leaves room to add to.
const ENDLESS: u64 = 1 << 60;

impl Transfer {
    /// Of `bytes`, or without an end; wanted `now`.
    pub fn new(bytes: Option<u64>, now: Time) -> Self {
        let bytes = bytes.unwrap_or(ENDLESS);
        Self { since: now, open_at: now, bytes, is_sent: false, is_complete: false }
    }

    /// Whether the acceptor has all of it.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How much `end` will have received when it next has something to do; 0 where it may have at any time.
    #[inline]
    pub fn heeds(&self, end: usize) -> u64 {
        match end {
            INITIATOR if !self.is_sent => 0,
            INITIATOR => u64::MAX,
            _ if self.is_complete => u64::MAX,
            _ => self.bytes,
        }
    }

    /// Gives `end` its turn.
    #[inline]
    pub fn turn(&mut self, end: usize, heard: Heard, now: Time) -> Turn {
        let mut turn = Turn { close: heard.is_closed, ..Turn::default() };
        if end == INITIATOR {
            if !self.is_sent {
                self.is_sent = true;
                self.open_at = now;
                turn.write = self.bytes;
                turn.close |= self.bytes < ENDLESS;
            }
        } else if !self.is_complete && heard.received >= self.bytes {
            self.is_complete = true;
            let &mut Self { since, open_at, bytes: response_bytes, .. } = self;
            turn.completed = Some(Completed { since, open_at, request_bytes: 0, response_bytes });
        }
        // The acceptor closes when it has heard all there is.
        turn.is_cut_off = heard.is_closed && !self.is_complete;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::ACCEPTOR;
    use base::Span;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn heard(received: u64, is_closed: bool) -> Heard {
        Heard { received, is_closed }
    }

    #[test]
    fn the_opener_writes_all_and_closes_and_the_other_end_after_it() {
        let mut transfer = Transfer::new(Some(5000), at(10));
        assert_eq!(transfer.heeds(INITIATOR), 0);
        let first = transfer.turn(INITIATOR, heard(0, false), at(30));
        assert_eq!(first, Turn { write: 5000, close: true, ..Turn::default() });
        assert_eq!(transfer.turn(INITIATOR, heard(0, false), at(31)), Turn::default());
        assert_eq!(transfer.turn(ACCEPTOR, heard(4999, false), at(50)), Turn::default());
        let completed = Completed { since: at(10), open_at: at(30), request_bytes: 0, response_bytes: 5000 };
        let last = transfer.turn(ACCEPTOR, heard(5000, false), at(60));
        assert_eq!(last, Turn { completed: Some(completed), ..Turn::default() });
        let close = Turn { close: true, ..Turn::default() };
        assert_eq!(transfer.turn(ACCEPTOR, heard(5000, true), at(61)), close);
        assert_eq!(transfer.turn(INITIATOR, heard(0, true), at(80)), close);
    }

    #[test]
    fn one_without_an_end_is_never_complete_and_never_closed() {
        let mut transfer = Transfer::new(None, at(0));
        let first = transfer.turn(INITIATOR, heard(0, false), at(1));
        assert!(first.write > 1 << 50 && !first.close);
        assert_eq!(transfer.turn(ACCEPTOR, heard(1 << 50, false), at(2)), Turn::default());
        assert!(transfer.turn(INITIATOR, heard(0, true), at(3)).is_cut_off, "nobody takes what is still to come");
    }

    #[test]
    fn one_that_is_cut_off_is_no_result_and_has_failed() {
        for end in [INITIATOR, ACCEPTOR] {
            let mut transfer = Transfer::new(Some(5000), at(0));
            transfer.turn(INITIATOR, heard(0, false), at(1));
            let received = if end == ACCEPTOR { 4999 } else { 0 };
            let turn = transfer.turn(end, heard(received, true), at(2));
            assert!(turn.is_cut_off && turn.completed.is_none(), "{end}: {turn:?}");
        }
    }
}
