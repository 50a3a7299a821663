//! This file says how a source of demand talks to its driver. The driver tells it what happened ([`Turn`]), and the
//! source says what is to be done ([`Command`]) through a [`Voice`]. It knows no connection and no clock.

use crate::demand::Source;
use crate::scenario::{RttSpec, Traffic};
use base::{Span, Time};
use traffic::{Command as Spoken, Exchange};

/// A source of demand.
pub trait Asks: Send {
    /// Hears what happened, and says what is to be done.
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>);
}

/// The reason why a source has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A time that it asked for is over.
    Due,
    /// The exchange on this lane is complete.
    Completed(u32),
    /// The connection of this lane was given up during an exchange.
    Failed(u32),
    /// The connection of this lane was given up between two exchanges, or after the last.
    Lost(u32),
}

/// The owner of a connection: the source that its exchanges are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The source, by its place among all.
    pub source: u32,
    /// Its lane; of a recording, the recorded connection.
    pub lane: u32,
}

impl Owner {
    /// The owner of a connection that the source has done with.
    pub const fn done(self) -> Self {
        Self { lane: Spoken::NO_LANE, ..self }
    }
}

/// A connection that is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Block of traffic.
    pub block: u16,
    /// Number within the block of the source or arrival that it is for, by which its hosts are found.
    pub number: u32,
    /// The side that opens it.
    pub client: u8,
    /// Its round-trip propagation delay, beside that of the links.
    pub rtt: Span,
}

/// Something to be done. Commands are carried out in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Open a connection and ask on it what has been wanted since `since`. If it is for a source, the source's lane is
    /// told which connection it is.
    Open {
        /// The connection.
        opening: Opening,
        /// Whom it is for; `None` for a single exchange.
        owner: Option<Owner>,
        /// What is asked.
        ask: Exchange,
        /// Whether the server closes after the response.
        is_last: bool,
        /// Since when it has been wanted.
        since: Time,
    },
    /// Ask on the connection of `owner` what has been wanted since `since`.
    Ask {
        /// Whose connection.
        owner: Owner,
        /// What is asked.
        ask: Exchange,
        /// Whether the server closes after the response.
        is_last: bool,
        /// Since when it has been wanted.
        since: Time,
    },
    /// The client closes the connection of `owner`.
    Close {
        /// Whose connection.
        owner: Owner,
    },
    /// Open a connection on which the side that opens it sends.
    Transfer {
        /// The connection.
        opening: Opening,
        /// Bytes; `None` lasts for ever.
        bytes: Option<u64>,
    },
    /// Open a connection that plays a connection vector.
    Vector {
        /// The connection; its number is that of the vector's start.
        opening: Opening,
        /// The vector, and which copy of it.
        vector: u32,
        /// Copies of one vector differ in what is drawn for them.
        copy: u32,
    },
    /// Send a packet of this many bytes that heeds nothing.
    Datagram {
        /// The source.
        source: u32,
        /// Bytes of its IP packet.
        bytes: u32,
    },
    /// The source's media begin: from now on its endpoints say what they do.
    Media {
        /// The source.
        source: u32,
    },
    /// Say at this instant that the source is due.
    Wake {
        /// The source.
        source: u32,
        /// When.
        at: Time,
    },
}

/// The voice by which a source says what it wants done.
pub struct Voice<'a> {
    /// When the source was due. News of a connection is due at once.
    pub at: Time,
    /// The time now, which is later than `at` if the driver is late.
    pub now: Time,
    /// The source's place among all.
    index: u32,
    block: u16,
    number: u32,
    client: u8,
    rtt: &'a RttSpec,
    side: Option<u8>,
    spoken: &'a mut Vec<Spoken>,
    out: &'a mut Vec<Command>,
}

impl<'a> Voice<'a> {
    /// A voice for the `index`-th of all sources, whose commands go to `out`. Its round-trip delays are those of
    /// `traffic`. It speaks of connections that are opened from `side`, or from both sides without one. The source was
    /// due at `at`, and it is `now`.
    #[inline]
    pub fn lend(
        index: u32,
        source: &mut Source<'_>,
        turn: Turn,
        (at, now): (Time, Time),
        (traffic, side): (&'a Traffic, Option<u8>),
        (spoken, out): (&'a mut Vec<Spoken>, &'a mut Vec<Command>),
    ) {
        let &mut Source { block, number, client, .. } = source;
        let mut voice = Self { at, now, index, block, number, client, rtt: &traffic.rtt, side, spoken, out };
        source.asks.turn(turn, &mut voice);
    }

    /// The source's number within its block.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Asks for a call at this instant.
    #[inline]
    pub fn wake(&mut self, at: Time) {
        self.out.push(Command::Wake { source: self.index, at });
    }

    /// Sends an unresponsive packet.
    #[inline]
    pub fn datagram(&mut self, bytes: u32) {
        self.out.push(Command::Datagram { source: self.index, bytes });
    }

    /// Lets the source's media begin.
    pub fn media(&mut self) {
        self.out.push(Command::Media { source: self.index });
    }

    /// Says any other command.
    #[inline]
    pub fn say(&mut self, command: Command) {
        self.out.push(command);
    }

    /// A connection that the source's side opens, between the hosts of `number`.
    pub fn opening(&self, number: u32, rtt: Span) -> Opening {
        self.opening_from(self.client, number, rtt)
    }

    /// A connection that `client` opens, between the hosts of `number`.
    pub fn opening_from(&self, client: u8, number: u32, rtt: Span) -> Opening {
        Opening { block: self.block, number, client, rtt }
    }

    /// Whom exchanges on `lane` are for.
    pub fn owner(&self, lane: u32) -> Owner {
        Owner { source: self.index, lane }
    }

    /// Whether connections that `client` opens are opened here.
    pub fn opens(&self, client: u8) -> bool {
        opens(self.side, client)
    }

    /// The round-trip delay at this quantile of the block's.
    pub fn rtt(&self, unit: f64) -> Span {
        self.rtt.at(unit)
    }

    /// Says the commands of a web user or session, over connections between the hosts of `number`.
    #[inline]
    pub fn pages(&mut self, number: u32, say: impl FnOnce(&mut Vec<Spoken>)) {
        let mut spoken = std::mem::take(self.spoken);
        say(&mut spoken);
        let owner = |lane: u32| Owner { source: self.index, lane };
        let (now, client) = (self.now, self.client);
        self.out.extend(spoken.drain(..).map(|spoken| match spoken {
            Spoken::Open { lane, rtt_unit, ask, last } => {
                let opening = Opening { block: self.block, number, client, rtt: self.rtt.at(rtt_unit) };
                Command::Open { opening, owner: Some(owner(lane)), ask, is_last: last, since: now }
            }
            Spoken::Ask { lane, ask } => Command::Ask { owner: owner(lane), ask, is_last: false, since: now },
            Spoken::Close { lane } => Command::Close { owner: owner(lane) },
            Spoken::Think { span } => Command::Wake { source: self.index, at: self.at + span },
        }));
        *self.spoken = spoken;
    }
}

/// Whether connections that `client` opens are opened on `side`, or on both.
pub fn opens(side: Option<u8>, client: u8) -> bool {
    side.is_none_or(|side| side == client)
}
