//! This file tells the scheduler how urgent the thread of the router is.
//!
//! A router that waits for a processor behind its hosts is late. If it may (root, or CAP_SYS_NICE), its thread takes
//! the real-time class SCHED_FIFO, and so comes before all ordinary threads as soon as something is due (sched(7)). The
//! kernel still leaves these a twentieth of the time (sched_rt_runtime_us), so that a router that is never done does
//! not take the machine away. Otherwise the thread takes the lowest nice value that it gets.

use std::ffi::c_int;
use std::fs;

/// The urgency of a thread to the scheduler, which ends when this is dropped.
#[derive(Debug)]
pub struct Urgency {
    class: Class,
}

/// How urgent a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SCHED_FIFO.
    RealTime,
    /// An ordinary thread of this nice value.
    Nice(i32),
}

/// How often a thread had to wait for a processor, and how long in all (the kernel's sched-stats.rst: the second and
/// the third value of `schedstat`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited {
    /// Nanoseconds.
    pub ns: u64,
    /// Times that it got a processor.
    pub times: u64,
}

/// `struct sched_param` of sched_setscheduler(2).
#[repr(C)]
struct Parameters {
    priority: c_int,
}

/// The priority among real-time threads, above those that ask for the lowest.
const PRIORITY: c_int = 10;
const SCHED_OTHER: c_int = 0;
const SCHED_FIFO: c_int = 1;
/// Processes that the thread starts are ordinary ones.
const SCHED_RESET_ON_FORK: c_int = 0x4000_0000;
/// Nice values to be tried: the strongest, and what a session may have been granted (RLIMIT_NICE).
const NICE: [i32; 4] = [-20, -15, -10, -5];

#[expect(unsafe_code, reason = "rustix has no word for this call")]
unsafe extern "C" {
    /// sched_setscheduler(2): of the calling thread, where `pid` is 0.
    fn sched_setscheduler(pid: c_int, policy: c_int, parameters: *const Parameters) -> c_int;
}

impl Urgency {
    /// Makes the calling thread as urgent as it may be.
    pub fn raise() -> Self {
        Self::of(PRIORITY, &NICE)
    }

    /// Makes the calling thread the next urgent after those that were raised. Hosts that are late spoil a run too, but
    /// must never delay the router.
    pub fn follow() -> Self {
        Self::of(PRIORITY - 1, &NICE[1..])
    }

    fn of(priority: c_int, nice: &[i32]) -> Self {
        if schedule(SCHED_FIFO | SCHED_RESET_ON_FORK, priority) {
            return Self { class: Class::RealTime };
        }
        let nice = nice.iter().copied().find(|&nice| rustix::process::setpriority_process(None, nice).is_ok());
        Self { class: Class::Nice(nice.unwrap_or(0)) }
    }

    /// How urgent it is.
    pub fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        match self.class {
            Class::RealTime => {
                schedule(SCHED_OTHER, 0);
            }
            Class::Nice(0) => {}
            // It may always be less urgent.
            Class::Nice(_) => drop(rustix::process::setpriority_process(None, 0)),
        }
    }
}

impl Class {
    /// The word for it.
    pub fn name(self) -> String {
        match self {
            Self::RealTime => "SCHED_FIFO".to_owned(),
            Self::Nice(nice) => format!("nice {nice}"),
        }
    }
}

impl Waited {
    /// Of the calling thread, until now; `None` where the kernel does not count it.
    pub fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut values = text.split_whitespace().skip(1).map_while(|word| word.parse().ok());
        Some(Self { ns: values.next()?, times: values.next()? })
    }

    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self { ns: self.ns.saturating_sub(earlier.ns), times: self.times.saturating_sub(earlier.times) }
    }
}

#[expect(unsafe_code, reason = "rustix has no word for this call")]
fn schedule(policy: c_int, priority: c_int) -> bool {
    // SAFETY: it reads one `struct sched_param`, which `Parameters` is and which outlives the call.
    unsafe { sched_setscheduler(0, policy, &Parameters { priority }) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy of this thread, from stat(5) of proc: the last but eleven of 52 fields.
    fn policy() -> c_int {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("it is there");
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        fields.split_whitespace().nth(41 - 3).and_then(|word| word.parse().ok()).expect("field 41")
    }

    #[test]
    fn it_ends_with_the_urgency() {
        // A thread of its own: urgency is a thread's.
        let raised = std::thread::spawn(|| {
            let urgency = Urgency::raise();
            let expected = if urgency.class() == Class::RealTime { SCHED_FIFO } else { SCHED_OTHER };
            assert_eq!(policy() & !SCHED_RESET_ON_FORK, expected, "{}", urgency.class().name());
            drop(urgency);
            assert_eq!(policy(), SCHED_OTHER);
        });
        raised.join().expect("it does not panic");
    }
}
