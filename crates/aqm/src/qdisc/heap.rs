//! A heap over numbered items whose keys change tells which queue is longest, or which is next.

/// "Not in the heap".
const OUT: u32 = u32::MAX;

/// Items with keys, the one with the greatest key on top. Nothing is allocated once it has been as full as it gets.
#[derive(Clone, Debug)]
pub struct Heap<K> {
    /// A binary heap.
    entries: Vec<(K, u32)>,
    /// Where each item is among the entries.
    places: Vec<u32>,
}

impl<K: PartialOrd + Copy> Heap<K> {
    /// An empty heap of items below `items`; [`Heap::set`] makes room for more.
    pub fn new(items: usize) -> Self {
        Self { entries: Vec::new(), places: vec![OUT; items] }
    }

    /// The greatest key and its item. Of equal keys it is any, but always the same one after the same calls.
    #[inline]
    pub fn top(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Whether `item` is in.
    #[inline]
    pub fn contains(&self, item: u32) -> bool {
        self.places.get(item as usize).is_some_and(|place| *place != OUT)
    }

    /// How many items there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives `item` the key `key`, whether it was in or not. Keys can all be compared with each other.
    #[inline]
    pub fn set(&mut self, item: u32, key: K) {
        if self.places.len() <= item as usize {
            self.places.resize(item as usize + 1, OUT);
        }
        match self.places[item as usize] {
            OUT => {
                self.entries.push((key, item));
                self.rise(self.entries.len() - 1);
            }
            at => {
                let before = std::mem::replace(&mut self.entries[at as usize].0, key);
                if before < key {
                    self.rise(at as usize);
                } else {
                    self.sink(at as usize);
                }
            }
        }
    }

    /// Gives `item` the key `key` unless it has a greater one. With [`Heap::settle`]: keys that fall may stay as they
    /// were, as bounds, until somebody asks for the top.
    #[inline]
    pub fn raise(&mut self, item: u32, key: K) {
        let place = self.places.get(item as usize).copied().unwrap_or(OUT);
        if place == OUT || self.entries[place as usize].0 < key {
            self.set(item, key);
        }
    }

    /// The greatest key and its item, if the keys on the heap may be greater than what `key` says of each item. An item
    /// of which `key` says nothing is taken out. A key that fell is put in its place once, however often it fell.
    pub fn settle(&mut self, key: impl Fn(u32) -> Option<K>) -> Option<(K, u32)> {
        loop {
            let (bound, item) = self.top()?;
            match key(item) {
                None => self.remove(item),
                Some(key) if key < bound => {
                    self.entries[0].0 = key;
                    self.sink(0);
                }
                Some(_) => return Some((bound, item)),
            }
        }
    }

    /// Gives every item that is in the key that `key` says, and brings all in order from the bottom up.
    pub fn rekey(&mut self, key: impl Fn(u32) -> K) {
        self.entries.iter_mut().for_each(|entry| entry.0 = key(entry.1));
        (0..self.entries.len() / 2).rev().for_each(|at| self.sink(at));
    }

    /// Takes `item` out, if it is in.
    #[inline]
    pub fn remove(&mut self, item: u32) {
        let Some(&at) = self.places.get(item as usize).filter(|at| **at != OUT) else {
            return;
        };
        self.places[item as usize] = OUT;
        self.entries.swap_remove(at as usize);
        if (at as usize) < self.entries.len() {
            let at = self.rise(at as usize);
            self.sink(at);
        }
    }

    /// Moves the entry at `at` towards the top as far as it belongs; returns where it came to rest.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.entries[at];
        while at > 0 {
            let above = (at - 1) / 2;
            if self.entries[above].0 >= entry.0 {
                break;
            }
            self.put(at, self.entries[above]);
            at = above;
        }
        self.put(at, entry);
        at
    }

    /// Moves the entry at `at` away from the top as far as it belongs.
    fn sink(&mut self, mut at: usize) {
        let entry = self.entries[at];
        loop {
            let mut child = 2 * at + 1;
            if let Some([left, right]) = self.entries.get(child..child + 2) {
                // A sum and no jump: which is greater cannot be foretold.
                child += usize::from(right.0 > left.0);
            }
            let Some(below) = self.entries.get(child).copied().filter(|below| entry.0 < below.0) else {
                break;
            };
            self.put(at, below);
            at = child;
        }
        self.put(at, entry);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (K, u32)) {
        self.entries[at] = entry;
        self.places[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn keys_that_fell_are_found_out_when_they_come_up() {
        let mut stream = Stream::named(2, "heap");
        let mut heap = Heap::new(40);
        let mut plain = [None; 40];
        for _ in 0..20_000 {
            let item = stream.below(40) as u32;
            // No two are equal.
            let key = (stream.below(1000), item);
            match plain[item as usize] {
                _ if stream.chance(0.2) => plain[item as usize] = None,
                Some(old) if key < old => plain[item as usize] = Some(key),
                _ => {
                    plain[item as usize] = Some(key);
                    heap.raise(item, key);
                }
            }
            if stream.chance(0.1) {
                let greatest = plain.iter().flatten().max().copied();
                assert_eq!(heap.settle(|item| plain[item as usize]), greatest.map(|key| (key, key.1)));
            }
        }
    }

    #[test]
    fn the_top_is_the_greatest_whatever_was_done() {
        let mut stream = Stream::named(1, "heap");
        let (mut heap, mut plain) = (Heap::new(0), BTreeMap::new());
        for _ in 0..20_000 {
            let (item, key) = (stream.below(40) as u32, stream.below(1000) as f64);
            if stream.chance(0.01) {
                plain.iter_mut().for_each(|(item, key)| *key = f64::from((item * 7 + 3) % 11));
                heap.rekey(|item| plain[&item]);
            } else if stream.chance(0.4) {
                heap.remove(item);
                plain.remove(&item);
            } else {
                heap.set(item, key);
                plain.insert(item, key);
            }
            assert_eq!(heap.len(), plain.len());
            let greatest = plain.values().copied().reduce(f64::max);
            assert_eq!(heap.top().map(|(key, _)| key), greatest);
            assert!(heap.top().is_none_or(|(key, item)| plain[&item] == key));
        }
    }
}
