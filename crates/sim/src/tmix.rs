//! Connections that play connection vectors: their conditions, and their applications' turns.
//!
//! A packet that a vector has lost is lost on its sender's own access link, before it reaches the bottleneck, which
//! never hears of it: the link's counts are of what is offered to it. These losses are counted by themselves.

use crate::connection::Purpose;
use crate::packets::What;
use crate::simulation::Simulation;
use base::{Span, Stream, Time};
use net::Rank;
use record::{ExchangeRow, Sink};
use session::Opening;
use traffic::tmix::{Finished, Player};

/// What plays a vector on a connection.
pub struct Playing {
    player: Player,
    /// Number of the connection within its block.
    number: u32,
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

    /// Number of the connection at `place` within its block.
    pub fn number(&self, place: u32) -> u32 {
        self.slots[place as usize].number
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
        // A sender waits until a whole segment fits.
        let windows = if tmix.window { of_vector.windows() } else { [u32::MAX; 2] };
        let windows = windows.map(|window| window.max(traffic.tcp.mss));
        let playing = Playing {
            player: Player::new(&tmix.vectors, vector, self.now),
            number,
            is_pausing: false,
            conditions: Conditions {
                windows: if client == 0 { windows } else { [windows[1], windows[0]] },
                losses: is_lossy.then(|| Box::new(Losses { shares, stream: stream("loss") })),
            },
        };
        let player = self.players.add(playing);
        let place = self.open(opening, Purpose::Tmix { player });
        // Without a handshake both ends are open at once.
        for end in [client, 1 - client] {
            self.attend_vector(place, end.into(), player, &mut record::Discard);
        }
    }

    /// The turn of the application at one end of a connection that plays a vector.
    pub(crate) fn attend_vector(&mut self, place: u32, end: usize, player: u32, sink: &mut dyn Sink) {
        let now = self.now;
        let connection = self.connections.get(place);
        let block = connection.block;
        let Some(tmix) = self.scenario.traffic[block as usize].workload.vectors() else { return };
        let who = connection.who(end);
        let endpoint = &mut connection.ends[end];
        let playing = &mut self.players.slots[player as usize];
        let mut finished = None;
        let mut has_written = false;
        if endpoint.is_established() {
            let turn = playing.player.turn(&tmix.vectors, who, endpoint.received(), endpoint.peer_closed(), now);
            if turn.write > 0 {
                endpoint.write(turn.write);
                has_written = true;
                playing.is_pausing = false;
            }
            if turn.close && !endpoint.is_closing() {
                endpoint.close();
                has_written = true;
            }
            if let Some(due) = turn.wake_at {
                playing.is_pausing = due.since(now) >= PAUSE;
                self.network.around.queue.push(due, Rank::Wake, place, What::end(end));
            }
            finished = turn.finished;
            if playing.is_pausing {
                endpoint.rest();
            }
        }
        let is_aborted = endpoint.is_aborted();
        if let Some(finished) = finished {
            let (number, direction) = (playing.number, 1 - connection.client);
            self.exchanged(&finished, block, number, direction, sink);
        }
        if has_written {
            self.with_end(place, end, |endpoint, config, now, out| endpoint.push(config, now, out));
        }
        self.settle(place, end, is_aborted);
    }

    fn exchanged(&mut self, finished: &Finished, traffic: u16, source: u32, direction: u8, sink: &mut dyn Sink) {
        if !self.is_measuring {
            return;
        }
        let response_time = self.now.since(finished.since);
        self.responses.record(response_time);
        sink.exchange(&ExchangeRow {
            start: finished.since,
            response_time,
            setup: finished.open_at.since(finished.since),
            request_bytes: u32::try_from(finished.request_bytes).unwrap_or(u32::MAX),
            response_bytes: finished.response_bytes,
            traffic,
            source,
            direction,
        });
    }
}
