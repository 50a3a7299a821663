//! This file calls foreign laws, and has all unsafe code of that.
//!
//! A comment beside each piece says why it is sound. Nobody can promise that foreign code keeps to the header: a law
//! that writes beyond its state breaks the process. Whoever runs shared libraries should therefore give them a process
//! of their own.
#![expect(unsafe_code, reason = "foreign functions are called here and nowhere else")]

use crate::abi::{self, Facts, Queue};
use crate::causes::Causes;
use aqm::Backlog;
use aqm::fault::Fault;
use aqm::qdisc::brought::{Handle, Signals};
use aqm::qdisc::fifo::Limit;
use base::{Rate, Stream};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Largest state of a law, in bytes.
pub const LARGEST_STATE: usize = 1 << 20;
/// Most parameters, most gauges, and most causes.
const MOST_ROWS: u32 = 64;

/// The table of a law or of a discipline, checked: pointers in it lead where the header says.
#[derive(Clone, Debug)]
pub struct Foreign {
    table: abi::Law,
    /// The calls of a discipline.
    offer: abi::QueueCall,
    take: abi::QueueCall,
    /// The library, which has to stay loaded as long as the table is used.
    _library: Option<Arc<libloading::Library>>,
}

// SAFETY: the header says that a table does not change and that its functions may be called from any thread, each
// with a state of its own.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// The law or discipline of a shared library, which stays loaded.
    ///
    /// # Errors
    /// It cannot be loaded, or is nothing of this version.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: constructors of the library run now, which the user has asked for by naming it.
        let library = Arc::new(unsafe { libloading::Library::new(path) }.map_err(|error| one_line(&error))?);
        // SAFETY: the header says of which type the function of this name is.
        let law = unsafe { library.get::<abi::Table>(b"aqmlab_law_table\0") }.map(|table| table());
        // SAFETY: as above.
        let discipline = unsafe { library.get::<abi::DisciplineTable>(b"aqmlab_discipline_table\0") };
        match (law, discipline.map(|table| table())) {
            (Ok(_), Ok(_)) => Err("exports a law and a discipline: expected one of them".into()),
            // SAFETY: the header says that the function answers a table that lives as long as the library.
            (_, Ok(table)) => unsafe { Self::of_discipline(table, Some(library)) },
            // SAFETY: as above.
            (Ok(table), _) => unsafe { Self::checked(table, Some(library)) },
            (Err(error), _) => Err(one_line(&error)),
        }
    }

    /// The law whose table is at `address`, in this process and for ever.
    ///
    /// # Errors
    /// It is no law of this version.
    ///
    /// # Safety
    /// There is a table at `address`, and nobody changes it or takes it away.
    pub unsafe fn at(address: usize) -> Result<Self, String> {
        // SAFETY: the caller says so.
        unsafe { Self::checked(address as *const abi::Law, None) }
    }

    /// The discipline whose table is at `address`, as [`Foreign::at`].
    ///
    /// # Errors
    /// It is no discipline of this version.
    ///
    /// # Safety
    /// As of [`Foreign::at`].
    pub unsafe fn discipline_at(address: usize) -> Result<Self, String> {
        // SAFETY: the caller says so.
        unsafe { Self::of_discipline(address as *const abi::Discipline, None) }
    }

    unsafe fn of_discipline(
        table: *const abi::Discipline,
        library: Option<Arc<libloading::Library>>,
    ) -> Result<Self, String> {
        // SAFETY: the caller says that it is such a table, which begins with that of a law.
        let found = unsafe { Self::checked(table.cast::<abi::Law>(), library) }?;
        // SAFETY: its version says that it is this struct.
        let abi::Discipline { law, offer, take } = unsafe { *table };
        if offer.is_none() || take.is_none() {
            return Err("is a discipline without offer or take: expected both".into());
        }
        let of_laws = [law.on_arrival, law.on_overflow, law.on_departure, law.on_idle];
        if of_laws.iter().any(Option::is_some) {
            return Err(
                "is a discipline with a call that only laws have: expected prepare, offer, take and tick".into()
            );
        }
        Ok(Self { offer, take, ..found })
    }

    /// Whether it is a discipline, which holds packets.
    pub fn holds_packets(&self) -> bool {
        self.take.is_some()
    }

    unsafe fn checked(table: *const abi::Law, library: Option<Arc<libloading::Library>>) -> Result<Self, String> {
        if table.is_null() || !table.is_aligned() {
            return Err("answers no table".into());
        }
        // SAFETY: every version begins with its number.
        let version = unsafe { (*table).version };
        if version != abi::VERSION {
            return Err(format!("is of version {version} of the interface: expected {}", abi::VERSION));
        }
        // SAFETY: of this version it is this struct.
        let table = unsafe { *table };
        if table.params_count.max(table.gauges_count).max(table.causes_count) > MOST_ROWS {
            return Err(format!("has more than {MOST_ROWS} parameters, gauges or causes"));
        }
        let lists = [
            ("params", table.params.is_null(), table.params_count),
            ("gauges", table.gauges.is_null(), table.gauges_count),
            ("causes", table.causes.is_null(), table.causes_count),
        ];
        if let Some((list, _, count)) = lists.into_iter().find(|&(_, is_null, count)| is_null && count > 0) {
            return Err(format!("says {list}_count = {count} and has {list} = NULL: expected {count} of them, or 0"));
        }
        if table.state_bytes as usize > LARGEST_STATE {
            return Err(format!("has a state of {} bytes: expected at most {LARGEST_STATE}", table.state_bytes));
        }
        Ok(Self { table, offer: None, take: None, _library: library })
    }

    /// The table.
    pub fn table(&self) -> &abi::Law {
        &self.table
    }

    /// Its parameters.
    pub fn params(&self) -> &[abi::Param] {
        // SAFETY: the header says that so many stand there, as long as the table lives.
        unsafe { slice(self.table.params, self.table.params_count) }
    }

    /// Its gauges.
    pub fn gauges(&self) -> &[abi::Gauge] {
        // SAFETY: as above.
        unsafe { slice(self.table.gauges, self.table.gauges_count) }
    }

    /// Causes of its own.
    pub fn causes(&self) -> &[abi::Cause] {
        // SAFETY: as above.
        unsafe { slice(self.table.causes, self.table.causes_count) }
    }

    /// A text of the table; empty for none.
    pub fn text(&self, at: *const c_char) -> String {
        if at.is_null() {
            return String::new();
        }
        // SAFETY: the header says that texts of the table end with a zero byte and live as long as it.
        unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
    }
}

/// # Safety
/// So many stand at `at` for as long as `'a`, unless it is null.
unsafe fn slice<'a, T>(at: *const T, count: u32) -> &'a [T] {
    if at.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(at, count as usize) }
}

fn one_line(error: &libloading::Error) -> String {
    let mut said = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        said = source.to_string();
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The engine's side of a call: the data of the functions that a law calls.
struct Host {
    stream: Stream,
    causes: Arc<Causes>,
    /// A number that the law drew by and that is no probability.
    refused: Option<f64>,
    /// What a discipline may do to packets, while a call lasts in which it may.
    signals: Option<*mut dyn Signals>,
    /// Whether packets may be marked.
    may_mark: bool,
    /// The arriving packet and its size, while it is not lost.
    arriving: Option<(i64, u32)>,
    /// What a discipline did wrong in the call.
    wrong: Option<Wrong>,
    /// For how long what waits is held back.
    later_ns: i64,
}

/// What a discipline did wrong.
pub enum Wrong {
    /// To a packet that it does not hold, or that cannot carry it.
    Packet(Fault),
    /// Otherwise: to which packet, and what; the name is to be added.
    Said(u64, String),
}

/// A piece of a state, aligned as the header says.
#[repr(align(16))]
#[derive(Clone, Copy, Default)]
struct Block([u64; 2]);

/// A law at work: its state, and what it is told. It may keep the address at which it is told it: nobody moves an
/// instance between its first call and its end.
pub struct Instance {
    state: Box<[Block]>,
    queue: Queue,
    /// Made by [`Box::into_raw`]; the law's functions reach it through the facts while a call lasts.
    host: *mut Host,
}

// SAFETY: the state and the host are this instance's alone, and a law keeps nothing outside its state.
unsafe impl Send for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: it was made by `Box::into_raw`, and nobody else has it.
        drop(unsafe { Box::from_raw(self.host) });
    }
}

impl Instance {
    /// A law with a state of zeros that gives `causes` and draws from `stream`.
    pub fn new(foreign: &Foreign, causes: &Arc<Causes>, stream: Stream) -> Self {
        let blocks = (foreign.table.state_bytes as usize).div_ceil(size_of::<Block>());
        let (signals, arriving, wrong) = (None, None, None);
        let causes = Arc::clone(causes);
        let host = Host { stream, causes, refused: None, signals, may_mark: false, arriving, wrong, later_ns: 0 };
        let host = Box::into_raw(Box::new(host));
        let facts = Facts {
            now_ns: 0,
            size: 0,
            ecn: 0,
            may_mark: 0,
            flow: 0,
            source: -1,
            destination: -1,
            backlog_packets: 0,
            backlog_bytes: 0,
            sojourn_ns: 0,
            rate_bps: 0.0,
            chance,
            uniform,
            host: host.cast(),
        };
        let (limit_packets, limit_bytes) = (i64::MAX, i64::MAX);
        let queue =
            Queue { facts, handle: 0, dscp: 0, limit_packets, limit_bytes, is_full: 0, drop: lose, mark, later };
        Self { state: vec![Block::default(); blocks].into_boxed_slice(), queue, host }
    }

    /// Bytes that one holds beside itself.
    pub fn bytes(foreign: &Foreign) -> usize {
        foreign.table.state_bytes as usize + size_of::<Block>() + size_of::<Host>()
    }

    /// What the law is told in the next call.
    pub fn facts(&mut self) -> &mut Facts {
        &mut self.queue.facts
    }

    /// What the law was told in the last call.
    pub fn facts_now(&self) -> &Facts {
        &self.queue.facts
    }

    /// Takes over the rate of the link.
    pub fn set_rate(&mut self, rate: Rate) {
        self.queue.facts.rate_bps = rate.bps_f64();
    }

    /// Calls the law; 0 where it has no such function.
    #[inline]
    pub fn call(&mut self, function: abi::Call) -> i32 {
        let Some(function) = function else { return 0 };
        // The facts come first: what a discipline is handed in `prepare` and `tick` is its queue.
        function(self.state.as_mut_ptr().cast::<c_void>(), (&raw const self.queue).cast::<Facts>())
    }

    /// What a discipline is told in the next call.
    pub fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// Whether a discipline may mark packets.
    pub fn set_may_mark(&mut self, may_mark: bool) {
        // SAFETY: the host lives as long as this, and no call is under way.
        unsafe { (*self.host).may_mark = may_mark };
    }

    /// A packet of a discipline arrives.
    ///
    /// # Errors
    /// What it did wrong.
    pub fn offer(&mut self, foreign: &Foreign, size: u32, signals: &mut dyn Signals) -> Result<i64, Wrong> {
        self.ask(foreign.offer, Some((self.queue.handle, size)), signals)
    }

    /// A discipline is asked for a packet.
    ///
    /// # Errors
    /// What it did wrong.
    pub fn take(&mut self, foreign: &Foreign, signals: &mut dyn Signals) -> Result<i64, Wrong> {
        self.ask(foreign.take, None, signals)
    }

    fn ask(
        &mut self,
        function: abi::QueueCall,
        arriving: Option<(i64, u32)>,
        signals: &mut dyn Signals,
    ) -> Result<i64, Wrong> {
        let Some(function) = function else { return Ok(0) };
        let signals: *mut (dyn Signals + '_) = signals;
        // SAFETY: only the lifetime changes, and the pointer is gone from the host before that ends. The host lives as
        // long as this, and no call is under way.
        unsafe {
            (*self.host).signals = Some(std::mem::transmute::<*mut (dyn Signals + '_), *mut dyn Signals>(signals));
            (*self.host).arriving = arriving;
            (*self.host).wrong = None;
            (*self.host).later_ns = 0;
        }
        let said = function(self.state.as_mut_ptr().cast::<c_void>(), (&raw mut self.queue).cast_const());
        // SAFETY: the host lives as long as this, and the call is over.
        let host = unsafe { &mut *self.host };
        host.signals = None;
        host.wrong.take().map_or(Ok(said), Err)
    }

    /// What a discipline did wrong in a call in which it has no packets to do anything to.
    pub fn wrong(&mut self) -> Option<Wrong> {
        // SAFETY: the host lives as long as this, and no call is under way.
        unsafe { (*self.host).wrong.take() }
    }

    /// Whether the packet that arrived in the last call was not lost in it.
    pub fn is_arriving_held(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.host).arriving.is_some() }
    }

    /// For how long the discipline holds back what waits, as it said in the last call; 0 if it did not.
    pub fn later_ns(&self) -> i64 {
        // SAFETY: as above.
        unsafe { (*self.host).later_ns }
    }

    /// A number that is no probability, if the law drew by one. The run is over then.
    #[inline]
    pub fn refused(&self) -> Option<f64> {
        // SAFETY: the host lives as long as this, and no call is under way.
        unsafe { (*self.host).refused }
    }

    /// Writes eight bytes of the state, at a place that [`holds`] has approved of.
    pub fn write(&mut self, offset: u32, word: [u8; 8]) {
        *self.word(offset) = u64::from_ne_bytes(word);
    }

    /// Reads eight bytes of the state, as [`Instance::write`].
    pub fn read(&self, offset: u32) -> [u8; 8] {
        let at = offset as usize / 8;
        self.state[at / 2].0[at % 2].to_ne_bytes()
    }

    fn word(&mut self, offset: u32) -> &mut u64 {
        let at = offset as usize / 8;
        &mut self.state[at / 2].0[at % 2]
    }
}

/// Whether a field of eight bytes at `offset` lies within the state.
pub fn holds(table: &abi::Law, offset: u32) -> bool {
    let field: Range<u64> = u64::from(offset)..u64::from(offset) + 8;
    offset.is_multiple_of(8) && field.end <= u64::from(table.state_bytes)
}

/// [`Facts::chance`].
extern "C" fn chance(facts: *const Facts, probability: f64) -> i32 {
    // SAFETY: the header says that a law hands on the facts of the call it is in; while it lasts nobody else has the
    // host.
    let host = unsafe { &mut *(*facts).host.cast::<Host>() };
    // The one question for almost every packet; what is left is an end of the range, or none of it.
    if probability > 0.0 && probability < 1.0 {
        return i32::from(host.stream.chance(probability));
    }
    if !(0.0..=1.0).contains(&probability) {
        // No unwinding through foreign frames: it is told when the call is over.
        host.refused = Some(probability);
    }
    i32::from(probability == 1.0)
}

/// [`Facts::uniform`].
extern "C" fn uniform(facts: *const Facts) -> f64 {
    // SAFETY: as in `chance`.
    unsafe { (*(*facts).host.cast::<Host>()).stream.unit() }
}

/// The host of a call of a discipline.
///
/// # Safety
/// `queue` is that of the call which is under way.
unsafe fn host_of<'a>(queue: *const Queue) -> &'a mut Host {
    // SAFETY: the caller says so; while the call lasts nobody else has the host.
    unsafe { &mut *(*queue).facts.host.cast::<Host>() }
}

impl Host {
    /// Does something to a packet; 0, or what is wrong is kept for when the call is over: no unwinding through foreign
    /// frames.
    fn signal(&mut self, what: &str, handle: i64, cause: i32, is_mark: bool) -> i32 {
        let done = self.try_signal(what, handle, cause, is_mark);
        let Err(wrong) = done else { return 0 };
        self.wrong.get_or_insert(wrong);
        abi::FAILED
    }

    fn try_signal(&mut self, what: &str, handle: i64, cause: i32, is_mark: bool) -> Result<(), Wrong> {
        let handle = Handle::of_word(handle);
        let Some(signals) = self.signals else {
            let what = format!("{what} packet {}: expected that in offer or take alone", handle.number());
            return Err(Wrong::Said(handle.number(), what));
        };
        let found = self.causes.find(cause);
        let number = handle.number();
        let cause = found.map_err(|why| Wrong::Said(number, format!("{what} packet {number} for {why}")))?;
        if is_mark && !self.may_mark {
            let what = format!("{what} packet {}, which may not be marked: ecn is not set", handle.number());
            return Err(Wrong::Said(handle.number(), what));
        }
        // SAFETY: it was put there for the call that is under way, and nobody else uses it while that lasts.
        let signals = unsafe { &mut *signals };
        if is_mark { signals.try_mark(handle, cause) } else { signals.try_drop(handle, cause) }.map_err(Wrong::Packet)
    }

    /// What is held without the arriving packet, and whether that is beyond the limit.
    fn backlog(&self, queue: &Queue) -> Option<(Backlog, bool)> {
        // SAFETY: as above.
        let mut held = unsafe { &*self.signals? }.held();
        let Some((_, size)) = self.arriving else { return Some((held, false)) };
        let is_full = !limit(queue).holds(held);
        held.packets -= 1;
        held.bytes -= u64::from(size);
        Some((held, is_full))
    }
}

/// The limit that a queue is told.
fn limit(queue: &Queue) -> Limit {
    if queue.limit_bytes < i64::MAX {
        Limit::Bytes(queue.limit_bytes as u64)
    } else {
        Limit::Packets(u32::try_from(queue.limit_packets).unwrap_or(u32::MAX))
    }
}

/// [`Queue::drop`].
extern "C" fn lose(queue: *const Queue, handle: i64, cause: i32) -> i32 {
    // SAFETY: the header says that a discipline hands on the queue of the call it is in.
    let host = unsafe { host_of(queue) };
    let said = host.signal("loses", handle, cause, false);
    if said == 0 {
        host.arriving = host.arriving.filter(|(arriving, _)| *arriving != handle);
        // SAFETY: as above; the engine has made it, and reads and writes it when no call is under way.
        let queue = unsafe { &mut *queue.cast_mut() };
        if let Some((held, is_full)) = host.backlog(queue) {
            queue.facts.backlog_packets = i64::from(held.packets);
            queue.facts.backlog_bytes = held.bytes as i64;
            queue.is_full = i64::from(is_full);
        }
    }
    said
}

/// [`Queue::mark`].
extern "C" fn mark(queue: *const Queue, handle: i64, cause: i32) -> i32 {
    // SAFETY: as in `lose`.
    unsafe { host_of(queue) }.signal("marks", handle, cause, true)
}

/// [`Queue::later`].
extern "C" fn later(queue: *const Queue, ns: i64) -> i64 {
    // SAFETY: as in `lose`.
    unsafe { host_of(queue) }.later_ns = ns;
    abi::LATER
}
