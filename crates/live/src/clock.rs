//! Only this part of the laboratory reads clocks.
//!
//! All threads of a run count from one [`Epoch`]. A clock waits for an instant or for a packet, whichever comes first.
//! There are two clocks, because the two kinds of time need opposite ways of waiting:
//! - Real time passes, and a sleeper is woken some microseconds late. So [`Real`] spends the last stretch looking.
//! - Virtual time stands still while anybody looks, so that looking for an instant would never end. So [`Sleeping`]
//!   sleeps all the time.

use crate::tun::Tun;
use base::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cell::Cell;
use std::io;
use std::num::NonZeroU64;

/// Time zero of a run: an instant of CLOCK_MONOTONIC, which is one for all threads and namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// Nanoseconds from the start of CLOCK_MONOTONIC.
    zero_ns: u64,
}

impl Epoch {
    /// An epoch whose time zero comes after `span`. Threads that are ready before then wait for it.
    pub fn after(span: Span) -> Self {
        Self { zero_ns: monotonic_ns() + span.ns() }
    }

    /// Now, since time zero; zero until then.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_ns(monotonic_ns().saturating_sub(self.zero_ns))
    }

    /// How long it is from now until `due`; zero if that has passed. Before time zero this includes the wait for it.
    #[inline]
    pub fn until(self, due: Time) -> Span {
        Span::from_ns(self.zero_ns.saturating_add(due.ns()).saturating_sub(monotonic_ns()))
    }

    /// The instant `at` as nanoseconds of CLOCK_MONOTONIC.
    pub fn monotonic_ns(self, at: Time) -> u64 {
        self.zero_ns.saturating_add(at.ns())
    }
}

/// Which of the ports that were waited for may have something to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready(u32);

impl Ready {
    /// All of them may.
    pub const ALL: Self = Self(u32::MAX >> 1);
    /// All of them may, since an unknown time: nobody has looked at ports during the wait.
    pub const UNWATCHED: Self = Self(u32::MAX);

    /// Whether the port at `index` may.
    #[inline]
    pub const fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Whether a packet would have ended the wait.
    #[inline]
    pub const fn is_watched(self) -> bool {
        self.0 >> 31 == 0
    }

    /// Whether any may.
    pub const fn any(self) -> bool {
        self.0 != 0
    }
}

/// A clock that waits.
pub trait Clock {
    /// The word for it in tables.
    const NAME: &'static str;

    /// Whether time passes while somebody works.
    const PASSES: bool;

    /// What may be added to a packet's lateness to be woken less often.
    const SLACK: Span;

    /// Now, since the start of the run.
    fn now(&self) -> Time;

    /// Waits until `due`, or until a packet can be read from one of at most [`MOST_PORTS`] ports. Returns from which
    /// ports one may be read. `now` is what this clock said last.
    ///
    /// # Errors
    /// Where the system cannot wait.
    fn wait(&self, now: Time, due: Time, ports: &[Tun]) -> io::Result<Ready>;
}

/// How many ports a clock can wait for.
pub const MOST_PORTS: usize = 30;

/// The clock of real time sleeps until shortly before an instant, then looks at the time until it has come.
///
/// It wakes early by as much as sleepers are usually late. It learns that from every sleep, as TCP learns a round-trip
/// time (RFC 6298 §2: the mean plus four mean deviations). It never looks for longer than [`LOOKS`], so that a machine
/// whose sleepers oversleep does not spend its processors on looking.
///
/// Packets may follow one another so closely that there is no time to sleep between them. Looking would then take a
/// whole processor. The kernel does not leave that to a real-time thread (sched_rt_runtime_us), but would stop it for
/// 50 ms of each second. So a clock that has hardly slept lately rests for a moment instead, and what became due
/// meanwhile is done at once, some tens of microseconds late. Network interfaces moderate their interrupts in this way.
#[derive(Debug)]
pub struct Real {
    epoch: Epoch,
    /// By how much sleepers oversleep in the mean, and its mean deviation, ns.
    oversleeps: Cell<(u64, u64)>,
    pressure: Cell<Pressure>,
}

/// The share of time that a clock sleeps, which tells whether it is under pressure.
#[derive(Clone, Copy, Debug)]
struct Pressure {
    /// The start of the stretch that is judged next, ns.
    since_ns: u64,
    /// How much of the stretch was spent asleep, ns.
    slept_ns: u64,
    is_high: bool,
}

/// The length of a stretch that [`Pressure`] judges, ns. Where it matters, that is some hundred packets.
const JUDGED_NS: u64 = 2_000_000;
/// How long a clock under pressure rests. With the lateness of waking this is a quarter of the usual budget.
const RESTS: Span = Span::from_us(30);

/// The clock of virtual time, which only sleeps.
#[derive(Debug)]
pub struct Sleeping {
    epoch: Epoch,
}

/// Longest stretch before an instant that [`Real`] spends looking.
const LOOKS: Span = Span::from_us(50);

impl Real {
    /// A clock that counts from `epoch`, for the thread that makes it: its sleeps end as sharply as the system can.
    ///
    /// # Errors
    /// Where the system does not let a thread set its timer slack.
    pub fn since(epoch: Epoch) -> io::Result<Self> {
        sharpen()?;
        let pressure = Pressure { since_ns: monotonic_ns(), slept_ns: 0, is_high: false };
        Ok(Self { epoch, oversleeps: Cell::new((LOOKS.ns(), 0)), pressure: Cell::new(pressure) })
    }

    /// Whether there was hardly any time to sleep lately. Once this is so, it stays so until there is much of it again.
    fn is_pressed(&self) -> bool {
        let Pressure { since_ns, slept_ns, is_high } = self.pressure.get();
        let now_ns = monotonic_ns();
        let passed_ns = now_ns - since_ns;
        if passed_ns < JUDGED_NS {
            return is_high;
        }
        // Pressure begins below a quarter of the time asleep, and ends above two thirds.
        let is_high = if is_high { 3 * slept_ns < 2 * passed_ns } else { 4 * slept_ns < passed_ns };
        self.pressure.set(Pressure { since_ns: now_ns, slept_ns: 0, is_high });
        is_high
    }

    fn slept(&self, span: Span) {
        let pressure = self.pressure.get();
        self.pressure.set(Pressure { slept_ns: pressure.slept_ns + span.ns(), ..pressure });
    }

    fn looks(&self) -> Span {
        let (mean, deviation) = self.oversleeps.get();
        Span::from_ns(mean + 4 * deviation).min(LOOKS)
    }

    fn overslept(&self, ns: u64) {
        let (mean, deviation) = self.oversleeps.get();
        let deviation = (3 * deviation + mean.abs_diff(ns)) / 4;
        self.oversleeps.set(((7 * mean + ns) / 8, deviation));
    }
}

impl Clock for Real {
    const NAME: &'static str = "real";
    const PASSES: bool = true;
    /// About what a woken thread needs to get going.
    const SLACK: Span = Span::from_us(10);

    #[inline]
    fn now(&self) -> Time {
        self.epoch.now()
    }

    fn wait(&self, _now: Time, due: Time, ports: &[Tun]) -> io::Result<Ready> {
        let is_pressed = self.is_pressed();
        loop {
            let left = self.epoch.until(due);
            if left == Span::ZERO {
                // Nobody has looked.
                return Ok(Ready::ALL);
            }
            let began_ns = monotonic_ns();
            if is_pressed {
                poll(&mut [], Some(&timespec(RESTS))).or_else(interrupted)?;
                self.slept(Span::from_ns(monotonic_ns() - began_ns));
                return Ok(Ready::UNWATCHED);
            }
            let sleeps = left.saturating_sub(self.looks());
            let ready = readable(ports, sleeps)?;
            if sleeps > Span::ZERO {
                let took = Span::from_ns(monotonic_ns() - began_ns);
                self.slept(took);
                if !ready.any() {
                    self.overslept(took.saturating_sub(sleeps).ns());
                }
            }
            if ready.any() {
                return Ok(ready);
            }
        }
    }
}

impl Sleeping {
    /// A clock that counts from `epoch`, for the thread that makes it: its sleeps end as sharply as the system can.
    ///
    /// # Errors
    /// Where the system does not let a thread set its timer slack.
    pub fn since(epoch: Epoch) -> io::Result<Self> {
        sharpen()?;
        Ok(Self { epoch })
    }
}

impl Clock for Sleeping {
    const NAME: &'static str = "virtual";
    const PASSES: bool = false;
    const SLACK: Span = Span::ZERO;

    #[inline]
    fn now(&self) -> Time {
        self.epoch.now()
    }

    fn wait(&self, now: Time, due: Time, ports: &[Tun]) -> io::Result<Ready> {
        // To ask what time it is would cost a system call and, in a kernel of virtual time, a moment of that.
        let before_zero = if now == Time::ZERO { self.epoch.until(now) } else { Span::ZERO };
        readable(ports, before_zero + due.since(now))
    }
}

/// PR_SET_TIMERSLACK: by default Linux lets timers be late by 50 us, so that it can fire several at once.
fn sharpen() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// From which ports a packet can be read, or with which something is wrong, within `span`.
fn readable(ports: &[Tun], span: Span) -> io::Result<Ready> {
    let count = ports.len();
    assert!((1..=MOST_PORTS).contains(&count), "{count} ports to wait for");
    let mut fds: [PollFd<'_>; MOST_PORTS] =
        std::array::from_fn(|index| PollFd::new(&ports[index.min(count - 1)], PollFlags::IN));
    match poll(&mut fds[..count], Some(&timespec(span))).or_else(interrupted) {
        Ok(0) => Ok(Ready::default()),
        Ok(_) => {
            let bits = fds[..count].iter().enumerate().map(|(index, fd)| u32::from(!fd.revents().is_empty()) << index);
            Ok(Ready(bits.sum()))
        }
        Err(error) => Err(error.into()),
    }
}

/// A signal: whoever waits looks at the time again.
fn interrupted(error: Errno) -> Result<usize, Errno> {
    if error == Errno::INTR { Ok(0) } else { Err(error) }
}

fn timespec(span: Span) -> Timespec {
    Timespec { tv_sec: (span.ns() / 1_000_000_000) as i64, tv_nsec: (span.ns() % 1_000_000_000) as i64 }
}
