//! The commands of [`session::Sources`] say what applications want done; this file carries them out on sockets.

use super::Hosts;
use super::connections::Token;
use super::timers::Due;
use session::{Command, Owner, Sources};
use std::io;

impl Hosts<'_> {
    /// A source of demand is due.
    pub(super) fn demand(&mut self, index: u32) -> io::Result<()> {
        let (at, now) = (self.due_at, self.now);
        self.heed(|sources, out| sources.due(index, at, now, out))
    }

    /// The exchange on a connection of `owner` is complete.
    pub(super) fn completed(&mut self, owner: Owner) -> io::Result<()> {
        let now = self.now;
        self.heed(|sources, out| sources.completed(owner, now, out))
    }

    /// A connection of `owner` was given up.
    pub(super) fn given_up(&mut self, owner: Owner, during_exchange: bool) -> io::Result<()> {
        let now = self.now;
        self.heed(|sources, out| sources.given_up(owner, during_exchange, now, out))
    }

    /// Tells the sources something, and does what they then want done.
    fn heed(&mut self, tell: impl FnOnce(&mut Sources<'_, Token>, &mut Vec<Command>)) -> io::Result<()> {
        let mut commands = std::mem::take(&mut self.commands);
        tell(&mut self.sources, &mut commands);
        for command in commands.drain(..) {
            self.carry_out(command)?;
        }
        self.commands = commands;
        Ok(())
    }

    fn carry_out(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Open { opening, owner, ask, is_last, since } => {
                let row = owner.map_or(opening.number, |owner| self.sources.row(owner));
                let token = self.open_client(&opening, row, owner, ask, is_last, since)?;
                if let Some(owner) = owner {
                    self.sources.keep(owner, token, is_last);
                }
            }
            Command::Ask { owner, ask, is_last, since } => {
                let token = self.sources.connection(owner);
                self.ask(token, ask, is_last, since)?;
            }
            Command::Close { owner } => self.close(self.sources.connection(owner)),
            Command::Transfer { opening, bytes } => self.open_transfer(&opening, bytes)?,
            Command::Vector { opening, vector, .. } => self.open_vector(&opening, vector)?,
            Command::Datagram { source, bytes } => self.send_datagram(source, bytes)?,
            Command::Media { .. } => unreachable!("a run with media was refused before it began"),
            Command::Wake { source, at } => self.timers.push(at, Due::Source(source)),
        }
        Ok(())
    }
}
