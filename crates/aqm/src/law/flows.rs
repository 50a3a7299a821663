//! A law remembers flows in this hash table. Once it has grown to the number of flows there are, it allocates no more.
//! Its order depends on nothing but its history.
//!
//! It uses open addressing with linear probing, and is at most half full. A deletion moves later entries of the same
//! run back, so that no tombstones gather (Knuth, "The Art of Computer Programming" 3, §6.4, Algorithm R).

use base::FlowKey;

/// Keeps the table's hash apart from others over the same flows.
const SALT: u64 = 0xF10E;

/// A value for each flow.
#[derive(Clone, Debug)]
pub struct FlowTable<V> {
    // A power of two of slots, at least half of them free.
    slots: Vec<Option<(FlowKey, V)>>,
    len: usize,
}

impl<V> FlowTable<V> {
    /// An empty table that grows only beyond `flows` of them.
    pub fn with_room_for(flows: usize) -> Self {
        Self { slots: empty(slots_for(flows)), len: 0 }
    }

    /// How many bytes a table with room for so many flows holds beside itself.
    pub fn bytes_for(flows: usize) -> usize {
        slots_for(flows) * size_of::<Option<(FlowKey, V)>>()
    }

    /// How many flows are in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no flow is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is known of `flow`.
    #[inline]
    pub fn get(&self, flow: FlowKey) -> Option<&V> {
        self.slots[self.find(flow)].as_ref().map(|(_, value)| value)
    }

    /// What is known of `flow`, which may be changed.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowKey) -> Option<&mut V> {
        let slot = self.find(flow);
        self.slots[slot].as_mut().map(|(_, value)| value)
    }

    /// What is known of `flow`; if nothing is, `value` is from now on.
    #[inline]
    pub fn get_or_insert(&mut self, flow: FlowKey, value: V) -> &mut V {
        if 2 * (self.len + 1) > self.slots.len() {
            self.grow();
        }
        let slot = self.find(flow);
        self.len += usize::from(self.slots[slot].is_none());
        &mut self.slots[slot].get_or_insert((flow, value)).1
    }

    /// Forgets `flow`; returns what was known of it.
    #[inline]
    pub fn remove(&mut self, flow: FlowKey) -> Option<V> {
        let slot = self.find(flow);
        self.vacate(slot)
    }

    /// Keeps the flows for which `keep` says so; each is asked once.
    pub fn retain(&mut self, mut keep: impl FnMut(FlowKey, &mut V) -> bool) {
        let mask = self.slots.len() - 1;
        // From a free slot on, so that a run is met from its beginning and nothing moves back over the start.
        let start = self.slots.iter().position(Option::is_none).expect("half the slots are free");
        let mut step = 1;
        while step <= mask {
            let slot = (start + step) & mask;
            let stays = self.slots[slot].as_mut().is_none_or(|(flow, value)| keep(*flow, value));
            if stays {
                step += 1;
            } else {
                // What moves into the slot is asked next.
                drop(self.vacate(slot));
            }
        }
    }

    /// All flows, in an order that only the table's history decides.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &V)> {
        self.slots.iter().flatten().map(|(flow, value)| (*flow, value))
    }

    /// What is known of all flows in that order, which may be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().flatten().map(|(_, value)| value)
    }

    fn home(&self, flow: FlowKey) -> usize {
        flow.hash(SALT) as usize & (self.slots.len() - 1)
    }

    /// The slot of `flow`, or the free one where it would be.
    #[inline]
    fn find(&self, flow: FlowKey) -> usize {
        let mut slot = self.home(flow);
        while self.slots[slot].as_ref().is_some_and(|(other, _)| *other != flow) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn vacate(&mut self, mut hole: usize) -> Option<V> {
        let (_, value) = self.slots[hole].take()?;
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let Some((flow, _)) = &self.slots[slot] else { return Some(value) };
            // It may move back to the hole unless its home lies between the two.
            let home = self.home(*flow);
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.slots.swap(hole, slot);
                hole = slot;
            }
        }
    }

    fn grow(&mut self) {
        let twice = empty(2 * self.slots.len());
        for (flow, value) in std::mem::replace(&mut self.slots, twice).into_iter().flatten() {
            let slot = self.find(flow);
            self.slots[slot] = Some((flow, value));
        }
    }
}

fn slots_for(flows: usize) -> usize {
    (2 * flows).next_power_of_two().max(16)
}

fn empty<V>(slots: usize) -> Vec<Option<(FlowKey, V)>> {
    std::iter::repeat_with(|| None).take(slots).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn it_does_what_a_map_does() {
        let mut stream = Stream::named(3, "flows");
        let (mut table, mut map) = (FlowTable::with_room_for(1), BTreeMap::new());
        for step in 0..200_000_u64 {
            // Few keys at first and many later, so that runs are long and the table grows.
            let flow = FlowKey(stream.below(10 + step / 500));
            match stream.below(8) {
                0..3 => assert_eq!(*table.get_or_insert(flow, step), *map.entry(flow).or_insert(step)),
                3..7 => assert_eq!(table.remove(flow), map.remove(&flow)),
                _ if step % 64 == 7 => {
                    let mut asked = 0;
                    let keep = |flow: FlowKey, value: &mut u64| {
                        *value += 1;
                        !(flow.0 ^ *value).is_multiple_of(3)
                    };
                    let before = table.len();
                    table.retain(|flow, value| {
                        asked += 1;
                        keep(flow, value)
                    });
                    assert_eq!(asked, before, "each flow is asked once");
                    map.retain(|flow, value| keep(*flow, value));
                }
                _ => assert_eq!(table.get_mut(flow), map.get_mut(&flow)),
            }
            assert_eq!(table.len(), map.len());
        }
        let mut all: Vec<_> = table.iter().map(|(flow, value)| (flow, *value)).collect();
        all.sort_unstable();
        assert_eq!(all, map.into_iter().collect::<Vec<_>>());
    }
}
