//! Connections that play connection vectors: what plays them, and their conditions.
//!
//! A packet that a vector has lost is lost on its sender's own access link, before it reaches the bottleneck, which
//! never hears of it: the link's counts are of what is offered to it. These losses are counted by themselves.

use crate::connection::Application;
use crate::simulation::Simulation;
use base::{Span, Stream, Time};
use session::{Heard, Opening, Player, Turn};
use traffic::tmix::Vectors;

/// What plays a vector on a connection.
pub struct Playing {
    player: Player,
    /// Nobody has anything to say for a while.
    is_pausing: bool,
    /// What the connection has of its vector.
    pub conditions: Conditions,
}

/// A pause as long as this is worth giving memory back for.
const PAUSE: Span = Span::from_secs(1);

/// The conditions of a connection that are its vector's, by side.
pub struct Conditions {
    /// Largest window that each side tells the other.
    windows: [u32; 2],
    losses: Option<Box<Losses>>,
}

/// Random losses of what each side sends.
struct Losses {
    shares: [f64; 2],
    stream: Stream,
}

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

/// All that play, by place.
#[derive(Default)]
pub struct Players {
    slots: Vec<Playing>,
    free: Vec<u32>,
}

impl Players {
    fn add(&mut self, playing: Playing) -> u32 {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = playing;
            place
        } else {
            self.slots.push(playing);
            self.slots.len() as u32 - 1
        }
    }

    /// The conditions at `place`.
    #[inline]
    pub fn conditions(&mut self, place: u32) -> &mut Conditions {
        &mut self.slots[place as usize].conditions
    }

    /// Whether an end, 0 the initiator, of the one at `place` has waited for something that is due.
    pub fn is_due(&self, place: u32, end: usize, now: Time) -> bool {
        self.slots[place as usize].player.is_due(end, now)
    }

    /// The turn of an end of the one at `place`, and whether nobody has anything to say for a while.
    #[inline]
    pub fn turn(&mut self, place: u32, vectors: &Vectors, end: usize, heard: Heard, now: Time) -> (Turn, bool) {
        let Playing { player, is_pausing, .. } = &mut self.slots[place as usize];
        let turn = player.turn(vectors, end, heard, now);
        if turn.write > 0 {
            *is_pausing = false;
        }
        if let Some(due) = turn.wake_at {
            *is_pausing = due.since(now) >= PAUSE;
        }
        (turn, *is_pausing)
    }

    /// Gives a place back.
    pub fn release(&mut self, place: u32) {
        self.free.push(place);
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
            is_pausing: false,
            conditions: Conditions {
                windows: if client == 0 { windows } else { [windows[1], windows[0]] },
                losses: is_lossy.then(|| Box::new(Losses { shares, stream: stream("loss") })),
            },
        };
        let player = self.players.add(playing);
        let place = self.open(opening, number, Application::Vector { player });
        // Without a handshake both ends are open at once.
        for end in [client, 1 - client] {
            self.attend(place, end.into(), &mut record::Discard);
        }
    }
}
