//! This file calls foreign laws, and has all unsafe code of that.
//!
//! A comment beside each piece says why it is sound. Nobody can promise that foreign code keeps to the header: a law
//! that writes beyond its state breaks the process. Whoever runs shared libraries should therefore give them a process
//! of their own.
#![expect(unsafe_code, reason = "foreign functions are called here and nowhere else")]

use crate::abi::{self, Facts};
use base::{Rate, Stream};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Largest state of a law, in bytes.
pub const LARGEST_STATE: usize = 1 << 20;
/// Most parameters, and most gauges.
const MOST_ROWS: u32 = 64;

/// The table of a law, checked: pointers in it lead where the header says.
#[derive(Clone, Debug)]
pub struct Foreign {
    table: abi::Law,
    /// The library, which has to stay loaded as long as the table is used.
    _library: Option<Arc<libloading::Library>>,
}

// SAFETY: the header says that a table does not change and that its functions may be called from any thread, each
// with a state of its own.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// The law of a shared library, which stays loaded.
    ///
    /// # Errors
    /// It cannot be loaded, or is no law of this version.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: constructors of the library run now, which the user has asked for by naming it.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| one_line(&error))?;
        // SAFETY: the header says of which type the function of this name is.
        let table = unsafe { library.get::<abi::Table>(b"aqmlab_law_table\0") }.map_err(|error| one_line(&error))?();
        // SAFETY: the header says that the function answers a table that lives as long as the library.
        unsafe { Self::checked(table, Some(Arc::new(library))) }
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

    unsafe fn checked(table: *const abi::Law, library: Option<Arc<libloading::Library>>) -> Result<Self, String> {
        if table.is_null() || !table.is_aligned() {
            return Err("aqmlab_law_table() answers no table".into());
        }
        // SAFETY: every version begins with its number.
        let version = unsafe { (*table).version };
        if version != abi::VERSION {
            return Err(format!("is of version {version} of the interface: expected {}", abi::VERSION));
        }
        // SAFETY: of this version it is this struct.
        let table = unsafe { *table };
        if table.params_count > MOST_ROWS || table.gauges_count > MOST_ROWS {
            return Err(format!("has more than {MOST_ROWS} parameters or gauges"));
        }
        if table.state_bytes as usize > LARGEST_STATE {
            return Err(format!("has a state of {} bytes: expected at most {LARGEST_STATE}", table.state_bytes));
        }
        Ok(Self { table, _library: library })
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
    /// A number that the law drew by and that is no probability.
    refused: Option<f64>,
}

/// A piece of a state, aligned as the header says.
#[repr(align(16))]
#[derive(Clone, Copy, Default)]
struct Block([u64; 2]);

/// A law at work: its state, and what it is told.
pub struct Instance {
    state: Box<[Block]>,
    facts: Facts,
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
    /// A law with a state of zeros that draws from `stream`.
    pub fn new(foreign: &Foreign, stream: Stream) -> Self {
        let blocks = (foreign.table.state_bytes as usize).div_ceil(size_of::<Block>());
        let host = Box::into_raw(Box::new(Host { stream, refused: None }));
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
        Self { state: vec![Block::default(); blocks].into_boxed_slice(), facts, host }
    }

    /// Bytes that one holds beside itself.
    pub fn bytes(foreign: &Foreign) -> usize {
        foreign.table.state_bytes as usize + size_of::<Block>() + size_of::<Host>()
    }

    /// What the law is told in the next call.
    pub fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// What the law was told in the last call.
    pub fn facts_now(&self) -> &Facts {
        &self.facts
    }

    /// Takes over the rate of the link.
    pub fn set_rate(&mut self, rate: Rate) {
        self.facts.rate_bps = rate.bps_f64();
    }

    /// Calls the law; 0 where it has no such function.
    #[inline]
    pub fn call(&mut self, function: abi::Call) -> i32 {
        let Some(function) = function else { return 0 };
        function(self.state.as_mut_ptr().cast::<c_void>(), &raw const self.facts)
    }

    /// A number that is no probability, if the law drew by one since this was last asked.
    #[inline]
    pub fn refused(&mut self) -> Option<f64> {
        // SAFETY: the host lives as long as this, and no call is under way.
        unsafe { (*self.host).refused.take() }
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
    if !(0.0..=1.0).contains(&probability) {
        // No unwinding through foreign frames: it is told when the call is over.
        host.refused = Some(probability);
        return 0;
    }
    i32::from(aqm::law::is_drawn(&mut host.stream, probability))
}

/// [`Facts::uniform`].
extern "C" fn uniform(facts: *const Facts) -> f64 {
    // SAFETY: as in `chance`.
    unsafe { (*(*facts).host.cast::<Host>()).stream.unit() }
}
