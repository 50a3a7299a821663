//! A route says which links a packet crosses, one after the other.

/// One direction of a link, where packets queue for it. Ports are numbered by link, forward before reverse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Port(u16);

impl Port {
    /// The port of link number `link` in `direction`: 0 is forward, 1 reverse.
    pub const fn new(link: u16, direction: u8) -> Self {
        Self(link * 2 + direction as u16)
    }

    /// The place of this port among all ports.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The port at this place among all ports.
    #[inline]
    pub const fn at(index: usize) -> Self {
        Self(index as u16)
    }

    /// The number of its link.
    pub const fn link(self) -> u16 {
        self.0 / 2
    }

    /// Its direction: 0 is forward, 1 reverse.
    pub const fn direction(self) -> u8 {
        (self.0 % 2) as u8
    }
}

/// A packet's place on its route: it says which port the packet crosses next, or stands at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step(u16);

base::packed!(Step(number));

impl Step {
    /// How many bits a packet has for its step.
    pub const BITS: u32 = 15;
    /// How many steps these bits can tell apart.
    pub const MOST: usize = 1 << Self::BITS;

    /// This step as a number below [`Step::MOST`].
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The step with this [`Step::number`].
    #[inline]
    pub const fn from_number(number: u16) -> Self {
        Self(number)
    }
}

/// The routes of all connections, one way each.
#[derive(Debug)]
pub struct Routes {
    /// All steps; those of a route follow each other. The array has a place for every step that a packet can carry, so
    /// that no access has to be checked.
    hops: Box<[Hop; Step::MOST]>,
    /// How many steps there are.
    steps: usize,
}

/// The port of a step, and its place in the route.
#[derive(Clone, Copy, Debug)]
struct Hop {
    port: Port,
    is_first: bool,
    is_last: bool,
}

impl Default for Routes {
    fn default() -> Self {
        let none = Hop { port: Port(0), is_first: true, is_last: true };
        let hops = vec![none; Step::MOST].try_into().expect("it is so long");
        Self { hops, steps: 0 }
    }
}

impl Routes {
    /// Adds a route over `ports`, in the order in which a packet meets them. Returns its first step.
    ///
    /// # Panics
    /// If there are no ports, or more steps than a packet can tell apart.
    pub fn add(&mut self, ports: &[Port]) -> Step {
        assert!(!ports.is_empty(), "a route crosses a link");
        let first = self.steps;
        self.steps += ports.len();
        assert!(self.steps <= Step::MOST, "a packet can tell its step");
        for (step, &port) in (first..).zip(ports) {
            self.hops[step] = Hop { port, is_first: step == first, is_last: step + 1 == self.steps };
        }
        Step(first as u16)
    }

    #[inline]
    fn hop(&self, step: Step) -> Hop {
        self.hops[usize::from(step.0) % Step::MOST]
    }

    /// The port that is crossed at `step`.
    #[inline]
    pub fn port(&self, step: Step) -> Port {
        self.hop(step).port
    }

    /// What comes after `step`; `None` where the route ends.
    #[inline]
    pub fn after(&self, step: Step) -> Option<Step> {
        if self.hop(step).is_last { None } else { Some(Step(step.0 + 1)) }
    }

    /// Whether a route begins with `step`.
    #[inline]
    pub fn is_first(&self, step: Step) -> bool {
        self.hop(step).is_first
    }

    /// The steps of the route that begins with `first`.
    pub fn route(&self, first: Step) -> impl Iterator<Item = Step> {
        std::iter::successors(Some(first), |step| self.after(*step))
    }

    /// How many steps all routes have.
    pub const fn steps(&self) -> usize {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_walked_to_its_end() {
        let mut routes = Routes::default();
        let ports = |numbers: &[u16]| numbers.iter().map(|&n| Port(n)).collect::<Vec<_>>();
        let wanted = [&[0, 2, 4][..], &[2], &[2, 4], &[2]];
        let firsts = wanted.map(|numbers| routes.add(&ports(numbers)));
        assert_eq!(routes.steps(), 7);
        for (first, wanted) in firsts.into_iter().zip(wanted) {
            assert_eq!(routes.route(first).map(|step| routes.port(step)).collect::<Vec<_>>(), ports(wanted));
            let is_first: Vec<bool> = routes.route(first).map(|step| routes.is_first(step)).collect();
            assert!(is_first[0] && is_first[1..].iter().all(|is_first| !is_first));
        }
    }

    #[test]
    fn a_port_knows_its_link_and_direction() {
        for (link, direction, index) in [(0, 0, 0), (0, 1, 1), (3, 0, 6), (3, 1, 7)] {
            let port = Port::new(link, direction);
            assert_eq!((port.link(), port.direction(), port.index()), (link, direction, index));
            assert_eq!(Port::at(index), port);
        }
    }
}
