//! A thinned queue is first in, first out, but packets may also be taken out of the middle, each by how many wait
//! before it. A packet that leaves the middle leaves a hole, and a tree counts the holes. So finding the k-th packet
//! that waits costs the logarithm of the queue's length, or nothing while there are no holes.

use std::collections::VecDeque;

/// A queue that may be thinned.
#[derive(Clone, Debug)]
pub struct Thinned<T> {
    /// What waits, and holes; the first is no hole.
    places: VecDeque<Option<T>>,
    /// How many of the places are holes.
    holes: usize,
    /// Holes by place: a binary indexed tree (Fenwick, "A New Data Structure for Cumulative Frequency Tables", 1994)
    /// over the places since it was last planted, those that have left since included.
    tree: Vec<u32>,
    /// Where in the tree the first place is, and the holes before it.
    left: usize,
    left_holes: usize,
}

impl<T> Thinned<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { places: VecDeque::with_capacity(64), holes: 0, tree: Vec::new(), left: 0, left_holes: 0 }
    }

    /// How many wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len() - self.holes
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Puts one at the end.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.places.push_back(Some(item));
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.places.pop_front()?;
        self.left += 1;
        if self.holes > 0 {
            self.trim();
        }
        Some(first.expect("the first place is no hole"))
    }

    /// The one with `rank` others before it.
    #[inline]
    pub fn get(&self, rank: usize) -> Option<&T> {
        self.places.get(self.place(rank))?.as_ref()
    }

    /// Takes out the one with `rank` others before it.
    pub fn remove(&mut self, rank: usize) -> Option<T> {
        if rank >= self.len() {
            return None;
        }
        let place = self.place(rank);
        if self.left + self.places.len() > self.tree.len() {
            self.plant();
        }
        let item = self.places[place].take();
        self.holes += 1;
        self.count(place);
        self.trim();
        if 2 * self.holes > self.places.len() + 64 {
            // Half of it is holes: closing them costs no more than making them did.
            self.places.retain(Option::is_some);
            self.holes = 0;
            self.tree.clear();
        }
        item
    }

    /// How many places there are, holes among them.
    #[inline]
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// The one in `place`, the first being 0; `None` for a hole.
    #[inline]
    pub fn at(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    /// Takes out the one in `place`. Who does this must not ask by rank as well: the hole stays until it is the first
    /// place, and no tree counts it.
    pub fn remove_at(&mut self, place: usize) -> Option<T> {
        let item = self.places.get_mut(place)?.take()?;
        self.holes += 1;
        self.trim();
        Some(item)
    }

    /// Makes the tree anew, with room for as many places again.
    fn plant(&mut self) {
        self.tree.clear();
        self.tree.resize((2 * self.places.len()).next_power_of_two().max(64), 0);
        (self.left, self.left_holes) = (0, 0);
        if self.holes > 0 {
            for place in 0..self.places.len() {
                if self.places[place].is_none() {
                    self.count(place);
                }
            }
        }
    }

    /// Counts the hole at `place`.
    fn count(&mut self, place: usize) {
        let mut at = self.left + place + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Where the one with `rank` others before it is.
    #[inline]
    fn place(&self, rank: usize) -> usize {
        if self.holes == 0 { rank } else { self.descend(rank) }
    }

    /// The last place before which there are no more than `rank` that wait.
    fn descend(&self, rank: usize) -> usize {
        let mut rank = self.left - self.left_holes + rank;
        let mut at = 0;
        let mut step = self.tree.len();
        while step > 0 {
            // Beyond the tree there are no holes.
            let holes = self.tree.get(at + step - 1).copied().unwrap_or(0);
            let waiting = step - holes as usize;
            if waiting <= rank {
                rank -= waiting;
                at += step;
            }
            step /= 2;
        }
        at + rank - self.left
    }

    /// Drops the holes before the first that waits.
    fn trim(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.holes -= 1;
            self.left += 1;
            self.left_holes += 1;
        }
    }
}

impl<T> Default for Thinned<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;

    #[test]
    fn it_does_what_a_queue_without_holes_does() {
        let mut stream = Stream::named(1, "thinned");
        let (mut thinned, mut plain) = (Thinned::new(), VecDeque::new());
        for number in 0..300_000_u32 {
            // Times of growth, of thinning, and of both.
            let mood = number / 10_000 % 3;
            match stream.below(8) {
                0..4 => {
                    thinned.push_back(number);
                    plain.push_back(number);
                }
                4 if mood != 1 => assert_eq!(thinned.pop_front(), plain.pop_front()),
                5.. if mood != 0 => {
                    let rank = stream.below(plain.len() as u64 + 1) as usize;
                    assert_eq!(thinned.get(rank), plain.get(rank));
                    assert_eq!(thinned.remove(rank), plain.remove(rank));
                }
                _ => {
                    let rank = stream.below(plain.len() as u64 + 1) as usize;
                    assert_eq!(thinned.get(rank), plain.get(rank));
                }
            }
            assert_eq!((thinned.len(), thinned.is_empty()), (plain.len(), plain.is_empty()));
            assert!(2 * thinned.holes <= thinned.places.len() + 64, "holes are closed");
        }
    }
}
