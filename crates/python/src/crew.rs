//! Threads that let runs pass while Python does something else. Python hands over the runs of a batch one by one, and
//! then asks for what was seen of them, whichever is there first. As long as none is there, its own thread lets runs
//! pass as well.

use crate::laws;
use crate::stepped::{Passed, Shared, Stepped, over, pass};
use aqm::Fault;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What came of a run, and its number in the batch: nothing if it was over, and what was said if the thread panicked.
type Answer = (usize, std::thread::Result<Option<Result<Passed, Fault>>>);

/// What is there of a batch and was not asked for.
#[derive(Default)]
struct Answers {
    list: Mutex<VecDeque<Answer>>,
    more: Condvar,
}

/// A run that is to pass.
struct Job {
    number: usize,
    run: Arc<Shared>,
    until_ns: u64,
    answers: Arc<Answers>,
}

impl Job {
    fn serve(self) {
        // Nobody shall wait for a thread that has panicked: whoever asks panics then.
        let passed = catch_unwind(AssertUnwindSafe(|| pass(&self.run, self.until_ns)));
        locked(&self.answers.list).push_back((self.number, passed));
        self.answers.more.notify_one();
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread without work stays awake for a while; no run knows of it")]
fn now() -> Instant {
    Instant::now()
}

/// What the threads share.
#[derive(Default)]
struct Work {
    state: Mutex<State>,
    /// How many runs nobody has begun with.
    waiting: AtomicUsize,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl State {
    /// What the thread of a number does next. Each mostly has the runs that it had before, whose memory is at hand; one
    /// that has nothing to do takes over a run of another.
    fn next(&mut self, thread: usize) -> Option<Job> {
        let own = self.jobs.iter().position(|job| job.run.home.load(Ordering::Relaxed) == thread);
        let job = self.jobs.remove(own.or(self.jobs.len().checked_sub(1))?)?;
        job.run.home.store(thread, Ordering::Relaxed);
        Some(job)
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that has nothing to do sleeps after so long: to wake it takes as long as some steps.
const AWAKE: Duration = Duration::from_micros(100);

/// The number of the thread that asks.
const ASKING: usize = 0;

impl Work {
    /// What the thread of a number does next, see [`State::next`].
    fn next(&self, thread: usize) -> Option<Job> {
        let mut state = locked(&self.state);
        let job = state.next(thread);
        self.waiting.store(state.jobs.len(), Ordering::Release);
        job
    }

    /// What the thread of a number does all its life.
    fn serve(&self, thread: usize) {
        loop {
            if let Some(job) = self.next(thread) {
                job.serve();
                continue;
            }
            let since = now();
            while self.waiting.load(Ordering::Acquire) == 0 && since.elapsed() < AWAKE {
                std::hint::spin_loop();
            }
            let state = locked(&self.state);
            if state.is_closed {
                return;
            }
            if state.jobs.is_empty() {
                drop(self.more.wait(state).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

/// Threads of the engine.
#[pyclass(frozen, module = "aqmlab._native")]
pub struct Crew(Arc<Work>);

#[pymethods]
impl Crew {
    /// Starts so many threads.
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        let crew = Self(Arc::default());
        for number in 1..=threads {
            let work = Arc::clone(&crew.0);
            let thread = std::thread::Builder::new().name("aqmlab-link".into());
            thread.spawn(move || work.serve(number)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        Ok(crew)
    }

    /// A batch without runs.
    fn batch(&self) -> Batch {
        Batch { work: Arc::clone(&self.0), answers: Arc::default(), jobs: Mutex::default(), begun: AtomicUsize::new(0) }
    }

    /// Lets the threads end once they have done what they were given.
    fn close(&self) {
        locked(&self.0.state).is_closed = true;
        self.0.more.notify_all();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs that pass at once. Iterating gives their numbers and what `Stepped.advance` returns of them.
#[pyclass(frozen, module = "aqmlab._native")]
pub struct Batch {
    work: Arc<Work>,
    answers: Arc<Answers>,
    /// Runs that nobody was asked to begin with.
    jobs: Mutex<VecDeque<Job>>,
    /// How many runs were handed over and not asked for.
    begun: AtomicUsize,
}

impl Batch {
    fn next(&self) -> Answer {
        {
            let mut jobs = locked(&self.jobs);
            if !jobs.is_empty() {
                let mut state = locked(&self.work.state);
                self.work.waiting.store(jobs.len(), Ordering::Release);
                state.jobs.append(&mut jobs);
                self.work.more.notify_all();
            }
        }
        loop {
            if let Some(answer) = locked(&self.answers.list).pop_front() {
                return answer;
            }
            if let Some(job) = self.work.next(ASKING) {
                job.serve();
                continue;
            }
            let list = locked(&self.answers.list);
            let none = |list: &mut VecDeque<Answer>| list.is_empty();
            drop(self.answers.more.wait_while(list, none).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[pymethods]
impl Batch {
    /// Hands over a run that is to pass until the instant `until_ns`, as `Stepped.advance` lets it. All pass from the
    /// first question on.
    fn begin(&self, number: usize, run: &Stepped, until_ns: u64) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let answers = Arc::clone(&self.answers);
        locked(&self.jobs).push_back(Job { number, run: run.shared(), until_ns, answers });
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(usize, Passed)>> {
        let less = |begun: usize| begun.checked_sub(1);
        if self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return Ok(None);
        }
        let (number, passed) = py.detach(|| self.next());
        let passed = passed.unwrap_or_else(|payload| resume_unwind(payload));
        Ok(Some((number, passed.ok_or_else(over)?.map_err(laws::misbehaved)?)))
    }

    /// Ends the batch early: runs that nobody has begun with do not pass, and of the others none passes any more when
    /// this returns.
    fn end(&self, py: Python<'_>) {
        // Laws of the runs that pass need the interpreter's lock.
        py.detach(|| {
            let left = self.begun.swap(0, Ordering::Relaxed) - self.taken_back();
            let mut list = locked(&self.answers.list);
            while list.len() < left {
                list = self.answers.more.wait(list).unwrap_or_else(PoisonError::into_inner);
            }
            list.clear();
        });
    }
}

impl Batch {
    /// Takes back the runs that nobody has begun with, and returns how many.
    fn taken_back(&self) -> usize {
        let mut unasked = locked(&self.jobs);
        let mut state = locked(&self.work.state);
        let before = unasked.len() + state.jobs.len();
        unasked.clear();
        state.jobs.retain(|job| !Arc::ptr_eq(&job.answers, &self.answers));
        self.work.waiting.store(state.jobs.len(), Ordering::Release);
        before - state.jobs.len()
    }
}

impl Drop for Batch {
    /// Runs that nobody has begun with do not pass.
    fn drop(&mut self) {
        self.taken_back();
    }
}

/// What this file adds to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Crew>()?;
    module.add_class::<Batch>()
}
