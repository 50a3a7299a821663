//! What becomes of things that are sent one after the other: fates are told in any order, and settled in the order of
//! sending.

use base::Time;
use std::collections::VecDeque;

/// What became of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is not known.
    Unknown,
    /// The receiver had all of it at this time.
    Received(Time),
    /// It was lost.
    Lost,
}

/// Something that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T> {
    /// When.
    pub at: Time,
    /// What.
    pub what: T,
    /// What became of it.
    pub fate: Fate,
}

/// What one flow has sent and cannot be counted yet: its fate, or that of something before it, is not known.
#[derive(Clone, Debug)]
pub struct Fates<T> {
    /// Number of the first one.
    first: u32,
    waiting: VecDeque<Sent<T>>,
}

impl<T: Copy> Fates<T> {
    /// Nothing was sent yet.
    pub fn new() -> Self {
        Self { first: 0, waiting: VecDeque::with_capacity(16) }
    }

    /// Notes that something is sent; returns its number.
    pub fn sent(&mut self, at: Time, what: T) -> u32 {
        self.waiting.push_back(Sent { at, what, fate: Fate::Unknown });
        self.first + self.waiting.len() as u32 - 1
    }

    /// Notes the fate of what has this number.
    pub fn tell(&mut self, number: u32, fate: Fate) {
        self.waiting[(number - self.first) as usize].fate = fate;
    }

    /// The next one to be counted, with its number: the first, if its fate is known, or in any case once all `is_over`.
    pub fn next(&mut self, is_over: bool) -> Option<(u32, Sent<T>)> {
        let sent = *self.waiting.front().filter(|sent| is_over || sent.fate != Fate::Unknown)?;
        self.waiting.pop_front();
        self.first += 1;
        Some((self.first - 1, sent))
    }
}
