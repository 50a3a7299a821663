//! Half of the packets beyond a threshold are lost: a law of one's own in Rust.
//!
//! ```sh
//! cargo build --release && aqmlab compare web-pi.toml target/release/libmy_law.so pfifo
//! ```

use law::abi::{DROP, Facts, Kind, Law, PASS, Param, VERSION};
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::null;

/// The engine writes the parameter, and zeroes what the law learns.
#[repr(C)]
struct HalfBeyond {
    threshold_ns: i64,
    seen: i64,
}

extern "C" fn on_departure(state: *mut c_void, facts: *const Facts) -> i32 {
    // SAFETY: the engine hands in this law's state, which is nobody else's during the call, and facts.
    let (law, facts) = unsafe { (&mut *state.cast::<HalfBeyond>(), &*facts) };
    law.seen += i64::from(facts.sojourn_ns > law.threshold_ns);
    if facts.sojourn_ns > law.threshold_ns && law.seen % 2 == 0 { DROP } else { PASS }
}

/// What the engine reads, and nobody changes.
struct Table<T>(T);
// SAFETY: it is never written, nor is what its pointers lead to.
unsafe impl<T> Sync for Table<T> {}

static PARAMS: Table<[Param; 1]> = Table([Param {
    name: c"threshold".as_ptr(),
    doc: c"Of packets that waited longer every second one is lost.".as_ptr(),
    unit: c"".as_ptr(),
    kind: Kind::Time as u32,
    offset: offset_of!(HalfBeyond, threshold_ns) as u32,
    default_value: 20e6,
    low: 0.0,
    high: 1e10,
}]);

static LAW: Table<Law> = Table(Law {
    version: VERSION,
    state_bytes: size_of::<HalfBeyond>() as u32,
    name: c"half_beyond".as_ptr(),
    doc: c"Loses half of the packets that waited longer than a threshold.".as_ptr(),
    source: c"".as_ptr(),
    built_with: c"rustc, --release".as_ptr(),
    year: 2026,
    marks: 0,
    params: PARAMS.0.as_ptr(),
    params_count: 1,
    gauges_count: 0,
    gauges: null(),
    causes: null(),
    tick_ns: 0,
    tick_param: -1,
    wants_hosts: 0,
    causes_count: 0,
    prepare: None,
    on_arrival: None,
    on_overflow: None,
    on_departure: Some(on_departure),
    on_idle: None,
    tick: None,
});

/// What aqmlab looks for.
#[unsafe(no_mangle)]
pub extern "C" fn aqmlab_law_table() -> *const Law {
    &raw const LAW.0
}
