//! A user may have a program run between the hosts; this file starts and ends it.

use crate::addressing::Addressing;
use crate::bed::Bed;
use crate::clock::Epoch;
use crate::hosts::files_at_first;
use base::{Span, Time};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, set_parent_process_death_signal, setrlimit};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, clock_nanosleep_absolute, move_into_link_name_space};
use rustix::time::{ClockId, Timespec};
use scenario::Family;
use serde_json::{Value, json};
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often it is looked at.
const LOOKS: Span = Span::from_ms(20);

/// How a program ended that was still there at the end of the run.
const ENDED_WITH_THE_RUN: &str = "ended with the run";

/// Runs `command` on `side` of `bed` until it ends or `stop` is set, which ends it and all that it started. The answer
/// is how it ended, for the summary: its exit code, the signal that ended it, or that it was ended with the run.
///
/// # Errors
/// Where it cannot be started.
pub fn run(command: &[String], side: u8, bed: &Bed, epoch: Epoch, stop: &AtomicBool) -> io::Result<Value> {
    let (program, arguments) = command.split_first().expect("a command has a name");
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{program}: {error}"));
    move_into_link_name_space(bed.sides[usize::from(side)].as_fd(), Some(LinkNameSpaceType::Network))?;
    // What it leaves behind goes with it. Where there are no such namespaces, only what it waits for does.
    let _first = if leave_processes().is_ok() { FirstProcess::start()? } else { None };
    let mut command = Command::new(program);
    command.args(arguments).envs(environment(side, bed));
    ends_with_this_thread(&mut command, false)?;
    let mut child = command.spawn().map_err(failed)?;
    let (status, is_stopped) = loop {
        if let Some(status) = child.try_wait()? {
            break (status, false);
        }
        if stop.load(Ordering::Relaxed) {
            child.kill()?;
            break (child.wait()?, true);
        }
        sleep_until(epoch, epoch.now() + LOOKS);
    };
    Ok(ended(status, is_stopped))
}

/// The first process of a process namespace, which does nothing: those beside it end with it. The program is not made
/// the first, since the kernel keeps from that every signal that it does not handle, Ctrl-C among them
/// (pid_namespaces(7)).
struct FirstProcess(Child);

impl FirstProcess {
    /// Starts it; `None` where its program is not there, and the next process is the first.
    fn start() -> io::Result<Option<Self>> {
        let Some(sleep) = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|path| Path::new(path).exists()) else {
            return Ok(None);
        };
        let mut command = Command::new(sleep);
        // For 68 years.
        command.arg(i32::MAX.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ends_with_this_thread(&mut command, true)?;
        let started = command.spawn();
        Ok(Some(Self(started.map_err(|error| io::Error::new(error.kind(), format!("{sleep}: {error}")))?)))
    }
}

impl Drop for FirstProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that others kill, such as the kernel for want of memory, has failed; one that the run's end stops has not.
fn ended(status: ExitStatus, is_stopped: bool) -> Value {
    match (status.code(), status.signal()) {
        (Some(code), _) => json!(code),
        (None, Some(signal)) if is_stopped && signal == Signal::KILL.as_raw() => json!(ENDED_WITH_THE_RUN),
        (None, Some(signal)) => json!(format!("signal {signal}")),
        (None, None) => Value::Null,
    }
}

/// What a program is told of where it is: addresses of both sides and their network namespaces, for nsenter(1).
fn environment(side: u8, bed: &Bed) -> Vec<(&'static str, String)> {
    let own = |side: u8, family: Family| Addressing::new(family).own(side).to_string();
    vec![
        ("AQMLAB_SIDE", ["left", "right"][usize::from(side)].to_owned()),
        ("AQMLAB_LEFT", own(0, Family::Ipv4)),
        ("AQMLAB_RIGHT", own(1, Family::Ipv4)),
        ("AQMLAB_LEFT6", own(0, Family::Ipv6)),
        ("AQMLAB_RIGHT6", own(1, Family::Ipv6)),
        ("AQMLAB_LEFT_NS", bed.sides[0].path()),
        ("AQMLAB_RIGHT_NS", bed.sides[1].path()),
    ]
}

/// Sleeps until `at`.
pub fn sleep_until(epoch: Epoch, at: Time) {
    let ns = epoch.monotonic_ns(at);
    let at = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    // What a signal wakes sleeps on.
    while matches!(clock_nanosleep_absolute(ClockId::Monotonic, &at), Err(Errno::INTR)) {}
}

#[expect(unsafe_code, reason = "rustix cannot know which of the things left apart others rely on")]
fn leave_processes() -> Result<(), Errno> {
    // SAFETY: of this thread only the process namespace of later children is parted (pid_namespaces(7)).
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }
}

/// Has a process that will run `command` end with this thread. One that `forgets_children` leaves none of those
/// unburied that it is given when their parent has gone.
#[expect(unsafe_code, reason = "what is done between fork and exec must not touch what other threads hold")]
fn ends_with_this_thread(command: &mut Command, forgets_children: bool) -> io::Result<()> {
    let files = files_at_first();
    // As /proc has it, which may be of another process namespace than this process is.
    let parent = std::fs::read_link("/proc/self")?.to_str().and_then(|pid| pid.parse().ok());
    // SAFETY: system calls and what is on the stack, nothing else.
    unsafe {
        command.pre_exec(move || {
            setrlimit(Resource::Nofile, files)?;
            // Ctrl-C is the program's where this process does not hear it.
            set_signal(Signal::INT, SIG_DFL)?;
            if forgets_children {
                set_signal(Signal::CHILD, SIG_IGN)?;
            }
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // A parent that was gone before the line above is not told of.
            if parent_outside()? == parent { Ok(()) } else { Err(Errno::SRCH.into()) }
        })
    };
    Ok(())
}

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_ERR: usize = usize::MAX;

#[expect(unsafe_code, reason = "rustix has no word for this")]
unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
}

/// Has this process take a signal as it comes, or not at all.
#[expect(unsafe_code, reason = "rustix has no word for this")]
fn set_signal(which: Signal, to: usize) -> io::Result<()> {
    // SAFETY: neither is a function that would be called, and the call is one of signal-safety(7).
    if unsafe { signal(which.as_raw(), to) } == SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The parent of this process in the process namespace of `/proc`, which sees those that getppid(2) does not: the
/// first process of a namespace has its parent outside. Allocates nothing.
fn parent_outside() -> io::Result<Option<u32>> {
    let mut text = [0; 512];
    let file = rustix::fs::open(c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let length = rustix::io::read(&file, &mut text)?;
    Ok(parent_in(&text[..length]))
}

/// The parent in a `/proc/PID/stat`: "1 (a name) S 2 ...", where a name may have parentheses of its own (proc(5)).
fn parent_in(stat: &[u8]) -> Option<u32> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    let parent = stat[after_name..].split(|&byte| byte == b' ').nth(2)?;
    str::from_utf8(parent).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runs_end_may_kill() {
        let killed = ExitStatus::from_raw(Signal::KILL.as_raw());
        assert_eq!(ended(killed, true), json!(ENDED_WITH_THE_RUN));
        assert_eq!(ended(killed, false), json!("signal 9"));
        // It may end by itself just as it is to be stopped.
        assert_eq!(ended(ExitStatus::from_raw(7 << 8), true), json!(7));
        assert_eq!(ended(ExitStatus::from_raw(Signal::TERM.as_raw()), true), json!("signal 15"));
    }

    #[test]
    fn a_parent_stands_behind_any_name() {
        assert_eq!(parent_in(b"7 (sleep) S 42 7 7 0 -1"), Some(42));
        assert_eq!(parent_in(b"7 (a) S 5 (b) R 43 7"), Some(43));
        assert_eq!(parent_in(b""), None);
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        assert_eq!(parent_outside().expect("there is a /proc"), parent);
    }
}
