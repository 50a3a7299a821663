//! Connections that play connection vectors: what plays them, and their conditions.
//!
//! A packet that a vector has lost is lost on its sender's own access link, before it reaches the bottleneck, which
//! never hears of it: the link's counts are of what is offered to it. These losses are counted by themselves.

use crate::connection::Application;
use crate::simulation::Simulation;
use base::{Stream, packed};
use session::{Opening, Player};

/// What plays a vector on a connection.
#[derive(Clone, Debug)]
pub struct Playing {
    /// What its ends do.
    pub player: Player,
    /// What the connection has of its vector.
    pub conditions: Conditions,
}

packed!(Playing { player, conditions });

/// The conditions of a connection that are its vector's, by side.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Largest window that each side tells the other.
    windows: [u32; 2],
    losses: Option<Box<Losses>>,
}

packed!(Conditions { windows, losses });

/// Random losses of what each side sends.
#[derive(Clone, Debug)]
struct Losses {
    shares: [f64; 2],
    stream: Stream,
}

base::left_whole!(Losses);

impl Conditions {
    /// The window that `side` tells, which has room for `window` bytes.
    #[inline]
    pub fn window(&self, side: u8, window: u32) -> u32 {
        window.min(self.windows[side as usize])
    }

    /// Whether a packet that `side` sends is lost.
    #[inline]
    pub fn loses(&mut self, side: u8) -> bool {
        self.losses.as_mut().is_some_and(|losses| {
            let share = losses.shares[side as usize];
            share > 0.0 && losses.stream.chance(share)
        })
    }
}

impl Simulation<'_> {
    /// A connection begins that plays a vector.
    pub(crate) fn begin_vector(&mut self, opening: &Opening, vector: u32, copy: u32) {
        let (scenario, &Opening { block, number, client, .. }) = (self.scenario, opening);
        let traffic = &scenario.traffic[block as usize];
        let Some(tmix) = traffic.workload.vectors() else { return };
        let of_vector = tmix.vectors.get(vector);
        // By side rather than by who opens.
        let by_side = |pair: [f64; 2]| if client == 0 { pair } else { [pair[1], pair[0]] };
        let stream = |what: &str| Stream::named(scenario.seed, &format!("traffic/{block}/{what}/{copy}/{vector}"));
        let shares = by_side(of_vector.loss());
        let is_lossy = tmix.loss && shares != [0.0; 2];
        let windows = tmix.windows(vector, traffic.tcp.mss).unwrap_or([u32::MAX; 2]);
        let playing = Playing {
            player: Player::new(&tmix.vectors, vector, self.now),
            conditions: Conditions {
                windows: if client == 0 { windows } else { [windows[1], windows[0]] },
                losses: is_lossy.then(|| Box::new(Losses { shares, stream: stream("loss") })),
            },
        };
        let place = self.open(opening, number, Application::Vector(Box::new(playing)));
        // Without a handshake both ends are open at once.
        for end in [client, 1 - client] {
            self.attend(place, end.into(), &mut record::Discard);
        }
    }
}
