//! Clocks: the only part of the laboratory that knows what time it is.
//!
//! A clock counts from the start of the run and waits for an instant or for a packet, whichever comes first. Two of
//! them, because the two kinds of time want opposite things of one who waits: real time passes, and a sleeper is woken
//! some microseconds late, so that the last stretch is spent looking; virtual time stands still while anybody looks, so
//! that looking for an instant would wait for ever.

use crate::tun::Tun;
use base::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use std::num::NonZeroU64;

/// A clock that waits.
pub trait Clock {
    /// The word for it in tables.
    const NAME: &'static str;

    /// Now, since the start of the run.
    fn now(&self) -> Time;

    /// Waits until `due`, or until a packet can be read from a port.
    ///
    /// # Errors
    /// Where the system cannot wait.
    fn wait(&self, due: Time, ports: &[Tun; 2]) -> io::Result<()>;
}

/// Real time: sleeps until shortly before an instant, then looks until it has come.
#[derive(Debug)]
pub struct Real {
    started: Timespec,
}

/// Virtual time: sleeps.
#[derive(Debug)]
pub struct Sleeping {
    started: Timespec,
}

/// How long before an instant [`Real`] stops sleeping: what a woken sleeper is usually late by (hrtimer, scheduler).
const LOOKS: Span = Span::from_us(50);

impl Real {
    /// A clock that starts now; this thread's sleeps end as sharply as the system can.
    ///
    /// # Errors
    /// Where the system does not let a thread set its timer slack.
    pub fn start() -> io::Result<Self> {
        sharpen()?;
        Ok(Self { started: monotonic() })
    }
}

impl Clock for Real {
    const NAME: &'static str = "real";

    #[inline]
    fn now(&self) -> Time {
        since(&self.started)
    }

    fn wait(&self, due: Time, ports: &[Tun; 2]) -> io::Result<()> {
        loop {
            let left = due.since(self.now());
            if left == Span::ZERO || is_readable(ports, left.saturating_sub(LOOKS))? {
                return Ok(());
            }
        }
    }
}

impl Sleeping {
    /// A clock that starts now; this thread's sleeps end as sharply as the system can.
    ///
    /// # Errors
    /// Where the system does not let a thread set its timer slack.
    pub fn start() -> io::Result<Self> {
        sharpen()?;
        Ok(Self { started: monotonic() })
    }
}

impl Clock for Sleeping {
    const NAME: &'static str = "virtual";

    #[inline]
    fn now(&self) -> Time {
        since(&self.started)
    }

    fn wait(&self, due: Time, ports: &[Tun; 2]) -> io::Result<()> {
        let left = due.since(self.now());
        if left > Span::ZERO {
            is_readable(ports, left)?;
        }
        Ok(())
    }
}

/// PR_SET_TIMERSLACK: by default Linux lets timers be late by 50 us, so that it can fire several at once.
fn sharpen() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

fn monotonic() -> Timespec {
    clock_gettime(ClockId::Monotonic)
}

fn since(started: &Timespec) -> Time {
    let now = monotonic();
    let ns = (now.tv_sec - started.tv_sec) * 1_000_000_000 + (now.tv_nsec - started.tv_nsec);
    Time::from_ns(u64::try_from(ns).expect("this clock never goes back"))
}

/// Whether a packet can be read from a port, or something is wrong with it, within `span`.
fn is_readable(ports: &[Tun; 2], span: Span) -> io::Result<bool> {
    let mut fds = [PollFd::new(&ports[0], PollFlags::IN), PollFd::new(&ports[1], PollFlags::IN)];
    let timeout = Timespec { tv_sec: (span.ns() / 1_000_000_000) as i64, tv_nsec: (span.ns() % 1_000_000_000) as i64 };
    match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        // A signal: whoever waits looks at the time again.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
