//! A [`Player`] plays one connection vector: it says what each end of a connection writes, and when it closes.
//!
//! The ends of a sequential vector take turns, each after what it waits for has come and a time to think; those of a
//! concurrent one go on by themselves ([`traffic::tmix`]). An exchange of a sequential vector is an epoch that has both
//! parts, from the writing of its request to the arrival of all of its response; the first one of a connection counts
//! from the opening of that. A concurrent vector is one exchange, from its opening to the last byte of either end.

use crate::turn::{ACCEPTOR, Completed, Heard, INITIATOR, Turn};
use base::{Span, Time};
use std::ops::Range;
use traffic::tmix::{Unit, Vectors};

/// A vector being played: where both ends are in it. Sequential vectors have one place for both.
#[derive(Clone, Debug)]
pub struct Player {
    is_concurrent: bool,
    /// Whether the initiator has had a turn.
    is_open: bool,
    /// The next unit, of both ends or of each.
    next: [u32; 2],
    /// The unit after the last one, of both ends or of each.
    end: [u32; 2],
    /// When the next unit is due, once that is known.
    due: [Time; 2],
    /// How many bytes each end will have received when everything written so far has arrived. In concurrent vectors,
    /// when everything is through.
    awaited: [u64; 2],
    asked: Option<Asked>,
}

base::packed!(Player { is_concurrent, is_open, next, end, due, awaited, asked });

/// An exchange under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    since: Time,
    open_at: Time,
    request_bytes: u64,
    response_bytes: u64,
    /// How many bytes the initiator will have received when it is complete.
    response_end: u64,
}

base::packed!(Asked { since, open_at, request_bytes, response_bytes, response_end });

impl Player {
    /// Begins to play `vector` of `vectors`, whose connection is opened `now`.
    pub fn new(vectors: &Vectors, vector: u32, now: Time) -> Self {
        let played = vectors.get(vector);
        let Range { start: first, end } = vectors.places(vector);
        let mut player = Self {
            is_concurrent: played.is_concurrent(),
            is_open: false,
            next: [first; 2],
            end: [end; 2],
            due: [Time::NEVER; 2],
            awaited: [0; 2],
            asked: None,
        };
        if player.is_concurrent {
            let turn = first + played.units().partition_point(|unit| unit.end() == INITIATOR) as u32;
            (player.end[INITIATOR], player.next[ACCEPTOR]) = (turn, turn);
            let [request_bytes, response_bytes] = played.bytes();
            player.awaited = [response_bytes, request_bytes];
            let response_end = response_bytes;
            player.asked = Some(Asked { since: now, open_at: now, request_bytes, response_bytes, response_end });
        } else {
            player.asked = player.asked_by(played.units(), now);
        }
        player
    }

    /// Whether a time that `end` waits is over.
    #[inline]
    pub fn is_due(&self, end: usize, now: Time) -> bool {
        self.due[self.place(end)] <= now
    }

    /// When the next thing happens by itself; [`Time::NEVER`] if nothing does.
    pub fn next_due(&self) -> Time {
        self.due[0].min(self.due[1])
    }

    /// Gives `end` its turn.
    #[inline]
    pub fn turn(&mut self, vectors: &Vectors, end: usize, heard: Heard, now: Time) -> Turn {
        let Heard { received, is_closed } = heard;
        let mut turn = Turn { completed: self.completed(end, received), ..Turn::default() };
        let place = self.place(end);
        if end == INITIATOR && !self.is_open {
            self.is_open = true;
            // What is under way already was asked for when the connection was opened.
            if let Some(asked) = &mut self.asked {
                asked.open_at = now;
            }
        }
        while self.next[place] < self.end[place] {
            let unit = vectors.unit(self.next[place]);
            if unit.end() != end {
                break;
            }
            if self.due[place] == Time::NEVER {
                // From here on it waits: the connection is open, and what there was to arrive has.
                if !self.is_concurrent && received < self.awaited[end] {
                    break;
                }
                self.wait(place, unit.wait(), now, &mut turn);
            }
            if self.due[place] > now {
                break;
            }
            self.next[place] += 1;
            self.due[place] = Time::NEVER;
            if unit.closes() {
                turn.close = true;
                break;
            }
            turn.write += unit.bytes();
            if !self.is_concurrent {
                let rest = vectors.units(self.next[place] - 1..self.end[place]);
                self.asked = self.asked.or_else(|| self.asked_by(rest, now));
                self.awaited[1 - end] += unit.bytes();
            }
            // From writing to the next unit of the same end.
            if self.next[place] < self.end[place] {
                let next = vectors.unit(self.next[place]);
                if next.end() == end {
                    self.wait(place, next.wait(), now, &mut turn);
                }
            }
        }
        // Whoever does not say when it closes does so once it has seen the other end close.
        let has_more = self.next[place] < self.end[place];
        turn.close |= is_closed && !has_more;
        turn.is_cut_off = is_closed && self.awaits(end, received);
        turn
    }

    /// Whether something that the other end wrote, or of a concurrent vector has still to write, has not come.
    #[inline]
    fn awaits(&self, end: usize, received: u64) -> bool {
        // Where an end of a concurrent one awaits no more, it is the largest number there is.
        received < self.awaited[end] && self.awaited[end] < u64::MAX
    }

    /// Where `end` is kept.
    #[inline]
    fn place(&self, end: usize) -> usize {
        if self.is_concurrent { end } else { 0 }
    }

    fn wait(&mut self, place: usize, wait: Span, now: Time, turn: &mut Turn) {
        self.due[place] = now + wait;
        turn.wake_at = (wait > Span::ZERO).then_some(self.due[place]);
    }

    /// The exchange that the first of the units `next` begins: if it is the initiator's, and the one after it answers.
    fn asked_by(&self, next: &[Unit], now: Time) -> Option<Asked> {
        let [request, response, ..] = next else { return None };
        let is_exchange = request.end() == INITIATOR && response.end() == ACCEPTOR && !response.closes();
        is_exchange.then(|| Asked {
            since: now,
            open_at: now,
            request_bytes: request.bytes(),
            response_bytes: response.bytes(),
            response_end: self.awaited[INITIATOR] + response.bytes(),
        })
    }

    /// What is complete now that `end` has `received` so much.
    #[inline]
    fn completed(&mut self, end: usize, received: u64) -> Option<Completed> {
        let asked = self.asked?;
        if self.is_concurrent {
            // Whichever end has all of it last; what it has counts down what is awaited.
            if received >= self.awaited[end] {
                self.awaited[end] = u64::MAX;
            }
            if self.awaited != [u64::MAX; 2] {
                return None;
            }
        } else if end != INITIATOR || received < asked.response_end {
            return None;
        }
        self.asked = None;
        let Asked { since, open_at, request_bytes, response_bytes, .. } = asked;
        Some(Completed { since, open_at, request_bytes, response_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::tmix::reading;

    const HALF: Span = Span::from_ms(50);
    const HEAD: &str = "w 1000 1000\nr 100000\nl 0 0\n";

    /// What happened where: (end, milliseconds, what).
    type Story = Vec<(usize, u64, String)>;

    /// Plays the only vector of `text` over a network that takes half a round trip of 100 ms for anything, and opens
    /// connections as TCP does: the initiator's side after a round trip, the acceptor's half of one later. The ends
    /// get a turn whenever something happens, and one in between for nothing.
    fn play(text: &str) -> (Story, Vec<Completed>) {
        let vectors = reading::read(text).expect("a set");
        let mut player = Player::new(&vectors, 0, Time::ZERO);
        let opened = [Time::ZERO + HALF * 2, Time::ZERO + HALF * 3];
        // When which end gets a turn, and what then arrives there.
        let mut events: Vec<(Time, usize, u64, bool)> = vec![(opened[0], 0, 0, false), (opened[1], 1, 0, false)];
        let (mut received, mut sees_close, mut closed) = ([0; 2], [false; 2], [false; 2]);
        let (mut story, mut finished) = (Vec::new(), Vec::new());
        while let Some(first) = (0..events.len()).min_by_key(|&i| events[i].0) {
            let (now, end, bytes, closes) = events.remove(first);
            received[end] += bytes;
            sees_close[end] |= closes;
            if now < opened[end] {
                events.push((opened[end], end, 0, false));
                continue;
            }
            let heard = Heard { received: received[end], is_closed: sees_close[end] };
            for _ in 0..2 {
                let turn = player.turn(&vectors, end, heard, now);
                let ms = now.ns() / 1_000_000;
                if turn.write > 0 {
                    story.push((end, ms, turn.write.to_string()));
                }
                let close = turn.close && !closed[end];
                if close {
                    closed[end] = true;
                    story.push((end, ms, "closes".to_owned()));
                }
                if turn.write > 0 || close {
                    events.push((now + HALF, 1 - end, turn.write, close));
                }
                events.extend(turn.wake_at.map(|at| (at, end, 0, false)));
                assert!(!turn.is_cut_off);
                finished.extend(turn.completed);
            }
        }
        assert_eq!(closed, [true; 2], "{story:?}");
        (story, finished)
    }

    fn told(story: &[(usize, u64, &str)]) -> Story {
        story.iter().map(|&(end, ms, what)| (end, ms, what.to_owned())).collect()
    }

    /// (asked for at, open at, request, response), in milliseconds and bytes.
    fn ms(finished: &[Completed]) -> Vec<(u64, u64, u64, u64)> {
        let row = |at: Time| at.ns() / 1_000_000;
        finished.iter().map(|f| (row(f.since), row(f.open_at), f.request_bytes, f.response_bytes)).collect()
    }

    #[test]
    fn ends_take_turns() {
        let (story, finished) =
            play(&format!("SEQ 0 2 1 1\n{HEAD}> 300\nt 7000\n< 5000\nt 200000\n> 400\nt 0\n< 60\nt 3000000\n"));
        assert_eq!(
            story,
            // Open at 100; there at 150, thinks 7, back at 207, thinks 200, there at 457, which answers at once.
            told(&[
                (0, 100, "300"),
                (1, 157, "5000"),
                (0, 407, "400"),
                (1, 457, "60"),
                (1, 3_457, "closes"),
                (0, 3_507, "closes"),
            ])
        );
        assert_eq!(ms(&finished), [(0, 100, 300, 5000), (407, 407, 400, 60)]);
    }

    #[test]
    fn the_same_end_waits_from_writing() {
        let (story, finished) = play(&format!(
            "SEQ 0 5 1 1\n{HEAD}> 10\nt 5000\n> 20\nt 1000\n< 30\nt 2000\n< 40\nt 9000\n> 50\nt 0\n> 60\nt 4000\n"
        ));
        assert_eq!(
            story,
            // The second is written 5 after the first; both are there at 155; the acceptor writes at 156 and 158; the
            // last byte is here at 208. Two units without a wait between them are one write.
            told(&[
                (0, 100, "10"),
                (0, 105, "20"),
                (1, 156, "30"),
                (1, 158, "40"),
                (0, 217, "110"),
                (0, 221, "closes"),
                (1, 271, "closes"),
            ])
        );
        // Only the second request has an answer of its own.
        assert_eq!(ms(&finished), [(105, 105, 20, 30)]);
    }

    #[test]
    fn an_acceptor_may_speak_first() {
        let (story, finished) = play(&format!("SEQ 0 2 1 1\n{HEAD}< 80\nt 10000\n> 5\nt 20000\n< 6\nt 0\n"));
        let expected = [(1, 150, "80"), (0, 210, "5"), (1, 280, "6"), (1, 280, "closes"), (0, 330, "closes")];
        assert_eq!((story, ms(&finished)), (told(&expected), vec![(210, 210, 5, 6)]));
    }

    #[test]
    fn independent_ends_wait_for_nobody() {
        let (story, finished) = play(&format!(
            "CONC 0 2 2 1 1\n{HEAD}c> 10\nt> 100000\nc> 20\nt> 1000\nt< 30000\nc< 7\nt< 2000\nc< 8\nt< 500000\n"
        ));
        assert_eq!(
            story,
            told(&[
                (0, 100, "10"),
                (1, 180, "7"),
                (1, 182, "8"),
                (0, 200, "20"),
                (0, 201, "closes"),
                (1, 682, "closes"),
            ])
        );
        // All is there when the initiator's last bytes are, at 250.
        assert_eq!(ms(&finished), [(0, 100, 30, 15)]);
    }

    #[test]
    fn an_end_that_hears_the_other_close_before_all_has_come_is_cut_off() {
        let sequential = ("SEQ 0 1 1 1", "> 300\nt 0\n< 5000\nt 0\n", INITIATOR, 5000);
        let concurrent = ("CONC 0 1 1 1 1", "c> 300\nt> 0\nc< 7\nt< 0\n", ACCEPTOR, 300);
        for (head, units, end, all) in [sequential, concurrent] {
            let vectors = reading::read(&format!("{head}\n{HEAD}{units}")).expect("a set");
            let is_cut_off = |received| {
                let mut player = Player::new(&vectors, 0, Time::ZERO);
                player.turn(&vectors, INITIATOR, Heard::default(), Time::ZERO);
                let request = Heard { received: 300, is_closed: false };
                if end == INITIATOR {
                    assert_eq!(player.turn(&vectors, ACCEPTOR, request, Time::ZERO).write, 5000);
                }
                player.turn(&vectors, end, Heard { received, is_closed: true }, Time::ZERO).is_cut_off
            };
            assert!(is_cut_off(all - 1) && !is_cut_off(all), "{head}");
        }
    }

    #[test]
    fn who_says_nothing_closes_after_the_other() {
        let (story, _) = play(&format!("CONC 0 1 2 1 1\n{HEAD}c> 10\nt> 0\nc< 7\nt< 400000\nc< 8\n"));
        // The acceptor sees the close at 150 and has still to write at 550.
        assert_eq!(
            story,
            told(&[(0, 100, "10"), (0, 100, "closes"), (1, 150, "7"), (1, 550, "8"), (1, 550, "closes")])
        );
        let (story, _) = play(&format!("CONC 0 0 1 1 1\n{HEAD}c< 7\n"));
        assert_eq!(story, told(&[(1, 150, "7"), (1, 1_150, "closes"), (0, 1_200, "closes")]));
    }
}
