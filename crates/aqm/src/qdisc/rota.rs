//! A rota has lists of queues that take turns. They are doubly linked, over numbers, in one array.

/// Some lists over the items `0..items`; an item is on one of them at most.
#[derive(Clone, Debug)]
pub struct Rota {
    /// `(before, after)` of each item, then of each list, which closes its circle. An item on no list points to itself.
    links: Vec<(u32, u32)>,
    items: u32,
}

impl Rota {
    /// `lists` empty lists over `items` items.
    pub fn new(items: u32, lists: u32) -> Self {
        Self { links: (0..items + lists).map(|at| (at, at)).collect(), items }
    }

    /// The first item of `list`.
    #[inline]
    pub fn first(&self, list: u32) -> Option<u32> {
        let first = self.links[(self.items + list) as usize].1;
        (first < self.items).then_some(first)
    }

    /// The items of `list`, from the first on.
    pub fn iter(&self, list: u32) -> impl Iterator<Item = u32> {
        let mut at = self.items + list;
        std::iter::from_fn(move || {
            at = self.links[at as usize].1;
            (at < self.items).then_some(at)
        })
    }

    /// The least of `of` over the items of `list`, and 0 for an empty list. It asks no further than to the first 0.
    #[inline]
    pub fn least(&self, list: u32, mut of: impl FnMut(u32) -> u64) -> u64 {
        let mut least = None;
        for item in self.iter(list) {
            let said = of(item);
            if said == 0 {
                return 0;
            }
            least = Some(least.map_or(said, |least: u64| least.min(said)));
        }
        least.unwrap_or(0)
    }

    /// Whether `list` has no item.
    #[inline]
    pub fn is_empty(&self, list: u32) -> bool {
        self.first(list).is_none()
    }

    /// Whether `item` is on a list.
    #[inline]
    pub fn is_listed(&self, item: u32) -> bool {
        self.links[item as usize].1 != item
    }

    /// Moves `item` to the end of `list`, from wherever it was.
    #[inline]
    pub fn push(&mut self, list: u32, item: u32) {
        self.remove(item);
        let end = self.items + list;
        let last = self.links[end as usize].0;
        self.links[item as usize] = (last, end);
        self.links[last as usize].1 = item;
        self.links[end as usize].0 = item;
    }

    /// Takes `item` off the list it is on, if any.
    #[inline]
    pub fn remove(&mut self, item: u32) {
        let (before, after) = self.links[item as usize];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
        self.links[item as usize] = (item, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(rota: &Rota, list: u32) -> Vec<u32> {
        rota.iter(list).collect()
    }

    #[test]
    fn an_item_is_on_one_list_at_most() {
        let mut rota = Rota::new(4, 2);
        for item in [2, 0, 3] {
            rota.push(0, item);
        }
        assert_eq!((items(&rota, 0), items(&rota, 1)), (vec![2, 0, 3], vec![]));
        // From the middle to another list, from the front to the end, and off.
        rota.push(1, 0);
        rota.push(0, 2);
        assert_eq!((items(&rota, 0), items(&rota, 1)), (vec![3, 2], vec![0]));
        rota.remove(3);
        rota.remove(3);
        assert_eq!((items(&rota, 0), items(&rota, 1)), (vec![2], vec![0]));
        assert_eq!([0, 1, 2, 3].map(|item| rota.is_listed(item)), [true, false, true, false]);
        rota.push(0, 3);
        assert_eq!((rota.least(0, u64::from), rota.least(1, u64::from), rota.least(1, |_| 9)), (2, 0, 9));
        rota.remove(0);
        assert_eq!(rota.least(1, |_| 9), 0);
    }
}
