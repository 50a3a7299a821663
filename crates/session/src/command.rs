//! What the driver is told to do.

use base::{Span, Time};
use traffic::{Command as Spoken, Exchange};

/// Whom the exchanges on a connection are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The source, by its place in [`Sources`](crate::Sources).
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
    /// Number within the block of the source or arrival that it is for, by which its [`hosts`](crate::hosts) are found.
    pub number: u32,
    /// The side that opens it.
    pub client: u8,
    /// Its round-trip propagation delay, beside that of the links.
    pub rtt: Span,
}

/// What the driver is told to do. Commands are carried out in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Open a connection and ask on it what has been wanted since `since`. If it is for a source, the driver tells
    /// [`Sources::keep`](crate::Sources::keep) which connection it is.
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
    /// Say at this instant that the source is due.
    Wake {
        /// The source.
        source: u32,
        /// When.
        at: Time,
    },
}
