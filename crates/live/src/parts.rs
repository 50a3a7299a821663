//! A [`Part`] is a thread of a run. It has a name, stops the others if it fails, and says how much processor time it
//! took.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A thread that does one part of a run.
pub struct Part<T> {
    name: &'static str,
    thread: JoinHandle<(io::Result<T>, f64)>,
}

/// The result of a part that has ended, and what it cost.
pub struct Done<T> {
    /// The result of its work.
    pub result: io::Result<T>,
    /// Processor time, seconds.
    pub cpu_s: f64,
}

impl<T: Send + 'static> Part<T> {
    /// Starts `work`. If it fails or panics, it sets `stop`, since the others have nothing to go on for.
    ///
    /// # Errors
    /// Where there are no more threads.
    pub fn start(
        name: &'static str,
        stop: &Arc<AtomicBool>,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<Self> {
        let stops = StopsUnlessDone(Arc::clone(stop));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = work();
            if result.is_ok() {
                std::mem::forget(stops);
            }
            (result, cpu_s(ClockId::ThreadCPUTime))
        })?;
        Ok(Self { name, thread })
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end. An error says in which part it happened.
    pub fn join(self) -> Done<T> {
        let name = self.name;
        let failed = |message: String| io::Error::other(format!("{name}: {message}"));
        match self.thread.join() {
            Ok((result, cpu_s)) => {
                let result = result.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")));
                Done { result, cpu_s }
            }
            Err(panic) => {
                if let Some(fault) = panic.downcast_ref::<aqm::Fault>() {
                    return Done { result: Err(failed(fault.message())), cpu_s: 0.0 };
                }
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                Done { result: Err(failed(format!("stopped by a defect: {text}"))), cpu_s: 0.0 }
            }
        }
    }
}

/// Sets the flag when it is dropped, which a thread that fails or panics does.
struct StopsUnlessDone(Arc<AtomicBool>);

impl Drop for StopsUnlessDone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a clock of processor time says, seconds.
pub fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_stops_the_others_and_is_named() {
        let stop = Arc::new(AtomicBool::new(false));
        let fine = Part::start("fine", &stop, || Ok(3)).expect("a thread").join();
        assert!(fine.result.is_ok_and(|three| three == 3) && !stop.load(Ordering::Relaxed));
        let failed =
            Part::<()>::start("router", &stop, || Err(io::Error::other("no device"))).expect("a thread").join();
        assert_eq!(failed.result.expect_err("it failed").to_string(), "router: no device");
        assert!(stop.swap(false, Ordering::Relaxed));
        let panicked = Part::<()>::start("hosts", &stop, || panic!("lost {}", 1)).expect("a thread").join();
        assert_eq!(panicked.result.expect_err("it failed").to_string(), "hosts: stopped by a defect: lost 1");
        assert!(stop.load(Ordering::Relaxed));
    }
}
