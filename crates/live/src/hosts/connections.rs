//! This file keeps the ends of connections that these hosts have, by place.

use super::http::Parser;
use super::joint::Joint;
use base::Span;
use rustix::fd::OwnedFd;
use session::{Exchanges, Owner};
use std::net::SocketAddr;

/// Where an end is kept, and which of those that were kept there it is: what was meant for an earlier one finds nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(u64);

impl Token {
    /// Nobody's.
    pub const NONE: Self = Self(u64::MAX);

    /// As a word for the kernel to keep.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The one that the kernel kept.
    pub fn of_word(word: u64) -> Self {
        Self(word)
    }

    fn place(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// Bytes to be sent, of which only the number and the head matter.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outgoing {
    /// What they begin with.
    pub head: Head,
    /// All of them.
    pub total: u64,
    /// Those which the kernel has taken.
    pub sent: u64,
}

/// What bytes begin with; the rest is zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Head {
    /// Zeros too.
    #[default]
    None,
    /// A request for that many bytes, which come after that long.
    Request {
        /// Bytes of the response.
        response_bytes: u64,
        /// What the server is to take.
        delay: Span,
        /// HTTP/1.0 rather than 1.1.
        is_last: bool,
    },
    /// A response, of HTTP/1.1 or 1.0.
    Response {
        /// Whether the connection stays open.
        stays: bool,
    },
    /// The response to what is no request.
    Refusal,
}

impl Outgoing {
    /// Whether the kernel has not taken all of it.
    pub fn is_pending(&self) -> bool {
        self.sent < self.total
    }
}

/// What an end is.
pub enum Role {
    /// Asks.
    Client {
        /// For whom; `None` for a single exchange.
        owner: Option<Owner>,
        /// What it asks.
        exchanges: Exchanges,
    },
    /// Answers.
    Server {
        /// What came of the request.
        parser: Parser,
        /// What came after it, which is read once it is answered.
        rest: Vec<u8>,
        /// The request that it is answering.
        exchanges: Exchanges,
        /// Something came while it was answering.
        has_unread: bool,
    },
    /// Sends or receives a transfer, or plays a vector.
    Joint(Joint),
}

impl Role {
    /// A server whom nobody has asked yet.
    pub fn server() -> Self {
        let (parser, exchanges) = (Parser::default(), Exchanges::default());
        Self::Server { parser, rest: Vec::new(), exchanges, has_unread: false }
    }

    /// Whether such an end has data to send.
    pub fn sends(&self) -> bool {
        match self {
            Self::Client { .. } => false,
            Self::Server { .. } => true,
            Self::Joint(joint) => joint.sends(),
        }
    }
}

/// One end of a connection.
pub struct Connection {
    /// The socket.
    pub socket: OwnedFd,
    /// Block of traffic.
    pub block: u16,
    /// Which flow, user or arrival of the block it is of.
    pub number: u32,
    /// How the recorder of demands knows it.
    pub recorded: u64,
    /// Where it was opened from, if it was here.
    pub local: Option<SocketAddr>,
    /// It is open.
    pub is_open: bool,
    /// This end closes once all is sent.
    pub closes: bool,
    /// The other end has closed.
    pub is_closed_there: bool,
    /// This end has closed.
    pub is_closed_here: bool,
    /// Bytes that came so far.
    pub received: u64,
    /// What is to be sent.
    pub outgoing: Outgoing,
    /// Whether the kernel is asked about it now and then.
    pub is_sampled: bool,
    /// What it is.
    pub role: Role,
}

impl Connection {
    /// An end of which nothing came yet.
    pub fn new(socket: OwnedFd, block: u16, number: u32, role: Role) -> Self {
        Self {
            socket,
            block,
            number,
            recorded: 0,
            local: None,
            is_open: false,
            closes: false,
            is_closed_there: false,
            is_closed_here: false,
            received: 0,
            outgoing: Outgoing::default(),
            is_sampled: false,
            role,
        }
    }

    /// Whether this end opened it.
    pub fn is_opener(&self) -> bool {
        self.local.is_some()
    }
}

/// All of them.
#[derive(Default)]
pub struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    token: Token,
    connection: Option<Connection>,
}

/// What the second use of a place adds to its token. The highest bit stays free for other words.
const USE: u64 = 1 << 32;
const USES: u64 = (1 << 63) - 1;

impl Connections {
    /// Keeps one.
    pub fn insert(&mut self, connection: Connection) -> Token {
        if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            slot.token = Token(slot.token.0.wrapping_add(USE) & USES);
            slot.connection = Some(connection);
            slot.token
        } else {
            let token = Token(self.slots.len() as u64);
            self.slots.push(Slot { token, connection: Some(connection) });
            token
        }
    }

    /// The one of this token, if it is still there.
    #[inline]
    pub fn get(&mut self, token: Token) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token.place()).filter(|slot| slot.token == token)?;
        slot.connection.as_mut()
    }

    /// The same, which then is no longer.
    pub fn remove(&mut self, token: Token) -> Option<Connection> {
        let slot = self.slots.get_mut(token.place()).filter(|slot| slot.token == token)?;
        let connection = slot.connection.take()?;
        self.free.push(token.place() as u32);
        Some(connection)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(number: u32) -> Connection {
        let socket = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
        let role = Role::Client { owner: None, exchanges: Exchanges::default() };
        Connection::new(socket.expect("there is such a file"), 0, number, role)
    }

    #[test]
    fn an_old_token_finds_nobody() {
        let mut connections = Connections::default();
        let first = connections.insert(end(1));
        let second = connections.insert(end(2));
        assert_eq!(connections.get(second).expect("it is there").number, 2);
        assert_eq!(connections.remove(first).expect("it was there").number, 1);
        assert!(connections.remove(first).is_none());
        let third = connections.insert(end(3));
        assert_eq!((third.place(), connections.len()), (first.place(), 2));
        assert!(connections.get(first).is_none() && connections.get(Token::NONE).is_none());
        assert_eq!(connections.get(Token::of_word(third.word())).expect("it is there").number, 3);
    }
}
