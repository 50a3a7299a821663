//! The binary interface of laws and disciplines, for whoever writes one, in any language. The header `aqmlab_law.h` is
//! made from crates/law/src/abi.rs by `make docs`. A law decides about packets; a discipline orders them too.
//!
//! What the two sides promise each other:
//! - The engine owns the state: one block for each queue, aligned to 16 bytes, zeroed, and filled in with the
//!   parameters before the first call. It calls one law at a time with one state; calls with other states may run
//!   beside it in other threads.
//! - What a law is told, its facts or its queue, stands at one address as long as its queue is there. It always has
//!   what the present call is about.
//! - A law keeps all it knows in its state, reads no clock, and draws by `chance` and `uniform` of its facts alone: the
//!   same calls then give the same answers.
//! - Times are whole nanoseconds from the start of the run. Sizes are those of IP packets.

use std::ffi::{c_char, c_void};

/// The version of this interface. The engine takes laws of this version and of no other.
pub const VERSION: u32 = 2;

/// Forward the packet as it is.
pub const PASS: i32 = 0;
/// Lose the packet.
pub const DROP: i32 = 1;
/// Mark the packet. Only where `may_mark`.
pub const MARK: i32 = 2;
/// Signal congestion as this packet can carry it: mark it where `may_mark`, else lose it.
pub const SIGNAL: i32 = 3;

/// Added to a verdict: the law drew this packet. It is the cause where no other is added.
pub const EARLY: i32 = 0;
/// Added to a verdict: the law is past the threshold above which it signals everything.
pub const FORCED: i32 = 16;
/// Added to `DROP`: congestion is too heavy to mark what could be marked.
pub const OVERLOAD: i32 = 32;

/// Cause of a discipline alone: the queue is full.
pub const TAIL: i32 = 8;

/// Added to a verdict n times: the law's own cause of number n in its table; the first is 1. A discipline gives n times
/// this as a cause. No other cause is added then.
pub const OWN: i32 = 256;

/// Answered by any call: the law cannot go on. The run then ends with the law's name.
pub const FAILED: i32 = -1;

/// What a law learns in a call. What has no meaning in the call is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Now, in nanoseconds from the start of the run.
    pub now_ns: i64,
    /// Size of the packet in bytes.
    pub size: i64,
    /// ECN field of the packet: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    pub ecn: i64,
    /// Whether the packet may be marked: it is ECN-capable, and `ecn` is set for this discipline.
    pub may_mark: i64,
    /// Flow of the packet: 63 well-mixed bits that stand for its addresses and ports.
    pub flow: i64,
    /// Host that an arriving packet comes from, by a number of its own; -1 where that is not known, and where none
    /// arrives.
    pub source: i64,
    /// Host that an arriving packet goes to; -1 likewise.
    pub destination: i64,
    /// Packets that wait, without the one in hand and the one in transmission; in `prepare` too, where parameters have
    /// changed.
    pub backlog_packets: i64,
    /// The same in bytes.
    pub backlog_bytes: i64,
    /// How long the packet waited, in `on_departure`.
    pub sojourn_ns: i64,
    /// Rate of the link in bits a second.
    pub rate_bps: f64,
    /// True with this probability, from 0 to 1. The first argument is these facts.
    pub chance: extern "C" fn(facts: *const Facts, probability: f64) -> i32,
    /// A random number, uniform from 0 to 1 without 1.
    pub uniform: extern "C" fn(facts: *const Facts) -> f64,
    /// The engine's own.
    pub host: *mut c_void,
}

/// What is written for a parameter, and what the engine writes into its field.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number; `double`.
    Number = 0,
    /// A whole number from 0 to 2^53; `int64_t`.
    Integer = 1,
    /// `true` or `false`; `int64_t` 1 or 0.
    Flag = 2,
    /// A time such as `5ms`; `int64_t`, in nanoseconds. Default and range are in nanoseconds.
    Time = 3,
    /// A frequency such as `170hz`; `double`.
    Frequency = 4,
    /// A rate such as `10mbit`; `int64_t`, in bits a second.
    Rate = 5,
    /// A size such as `1500b`; `int64_t`, in bytes, at most 2^32 - 1.
    Size = 6,
}

/// A parameter of a law. Every discipline has `limit` and, where it marks, `ecn` besides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name in scenarios: small letters, digits and `_`.
    pub name: *const c_char,
    /// What it does, in a sentence.
    pub doc: *const c_char,
    /// Its unit, where `kind` has none; may be empty.
    pub unit: *const c_char,
    /// One of the kinds.
    pub kind: u32,
    /// Where in the state the engine writes it, in bytes.
    pub offset: u32,
    /// The default. What the kind cannot hold is refused: a number below 0 for any kind but a number, part of a
    /// nanosecond, of a bit a second or of a byte.
    pub default_value: f64,
    /// The smallest value; minus infinity for none. Only a number may have one below 0.
    pub low: f64,
    /// The largest value; infinite for none.
    pub high: f64,
}

/// Something that a law shows in time series. One may be called `probability`, one `flows`, one anything else.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// Its name.
    pub name: *const c_char,
    /// What it is, in a sentence.
    pub doc: *const c_char,
    /// Its unit; may be empty.
    pub unit: *const c_char,
    /// Where in the state it stands, in bytes.
    pub offset: u32,
    /// Whether it is an `int64_t` there and no `double`.
    pub is_integer: u32,
}

/// A cause of a law's own, why it loses or marks packets. Tables and reports show it under its name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Its name: small letters, digits and `_`.
    pub name: *const c_char,
    /// What it is, in a sentence.
    pub doc: *const c_char,
    /// The cause as which it counts where causes are summed up: `EARLY`, `FORCED`, `OVERLOAD`; of a discipline also
    /// `TAIL`.
    pub kind: i32,
}

/// A call of a law with its state and facts. Calls that decide answer a verdict, all others 0.
pub type Call = Option<extern "C" fn(state: *mut c_void, facts: *const Facts) -> i32>;

/// A law: what it is called, what it needs, and what it does. It has `on_arrival` or `on_departure`, which decide; any
/// other call may be null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// The version of this interface that it was built for.
    pub version: u32,
    /// Size of the state.
    pub state_bytes: u32,
    /// Its name in scenarios: small letters, digits and `_`.
    pub name: *const c_char,
    /// The idea in one sentence.
    pub doc: *const c_char,
    /// Where it was published; may be empty.
    pub source: *const c_char,
    /// The compiler and its flags, for the record; may be empty.
    pub built_with: *const c_char,
    /// Year of publication.
    pub year: u32,
    /// Whether it marks ECN-capable packets where `ecn` is set.
    pub marks: u32,
    /// Its parameters.
    pub params: *const Param,
    /// How many there are.
    pub params_count: u32,
    /// How many gauges there are.
    pub gauges_count: u32,
    /// Its gauges.
    pub gauges: *const Gauge,
    /// Causes of its own.
    pub causes: *const Cause,
    /// Nanoseconds from one `tick` to the next; 0 for none, or for the time of `tick_param`.
    pub tick_ns: i64,
    /// The parameter, a time or a frequency, that says how often `tick` is called; -1 for none.
    pub tick_param: i32,
    /// Whether it wants to know between which hosts arriving packets go.
    pub wants_hosts: u32,
    /// How many causes of its own there are.
    pub causes_count: u32,
    /// Parameters are there, or have changed: computes what follows from them and from the link's rate.
    pub prepare: Call,
    /// Decides about an arriving packet. Not called for one that a full queue refuses.
    pub on_arrival: Call,
    /// A full queue has refused an arriving packet.
    pub on_overflow: Call,
    /// Decides about the packet at the head of the queue. After a loss the next one follows at once.
    pub on_departure: Call,
    /// The link asked for a packet, and none waits.
    pub on_idle: Call,
    /// The periodic work.
    pub tick: Call,
}

/// What a shared library exports, under the name `aqmlab_law_table`.
pub type Table = extern "C" fn() -> *const Law;

/// Answered by `take` of a discipline: something is held back (see `later`).
pub const LATER: i64 = -2;

/// What a discipline learns in a call, and what it may do in it. Packets are handles: positive numbers that the engine
/// gives to packets as they arrive, later ones greater, none twice. The engine holds the packets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// What a law learns too; `size`, `ecn`, `may_mark`, `flow` and the hosts are those of the arriving packet. The
    /// backlog is what is held, in `offer` without the arriving packet, and follows what the call loses.
    pub facts: Facts,
    /// The arriving packet, in `offer`.
    pub handle: i64,
    /// Its Differentiated Services codepoint.
    pub dscp: i64,
    /// The parameter `limit`, where it is in packets; `INT64_MAX` where it is not.
    pub limit_packets: i64,
    /// The same in bytes.
    pub limit_bytes: i64,
    /// Whether the arriving packet goes beyond the limit: it or others have to be lost before `offer` ends.
    pub is_full: i64,
    /// Loses a packet that is held, for a cause; in `offer` and `take`. 0, or FAILED where it is not held.
    pub drop: extern "C" fn(queue: *const Queue, handle: i64, cause: i32) -> i32,
    /// Marks a packet that is held and may be marked, for a cause; as `drop`.
    pub mark: extern "C" fn(queue: *const Queue, handle: i64, cause: i32) -> i32,
    /// What `take` answers where what waits is held back for so many nanoseconds, at least 1. A packet that arrives
    /// makes the link ask before.
    pub later: extern "C" fn(queue: *const Queue, ns: i64) -> i64,
}

/// A call of a discipline.
pub type QueueCall = Option<extern "C" fn(state: *mut c_void, queue: *const Queue) -> i64>;

/// A discipline: what it is called and what it needs, and what it does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Discipline {
    /// Its version, name, state, parameters, gauges and causes, `prepare` and `tick`, as of a law. All other calls are
    /// null.
    pub law: Law,
    /// A packet arrives. It is held unless it is lost in the call. Answers 0.
    pub offer: QueueCall,
    /// Which packet is sent: its handle; 0 if nothing waits; or what `later` answers.
    pub take: QueueCall,
}

/// What the shared library of a discipline exports, under the name `aqmlab_discipline_table`.
pub type DisciplineTable = extern "C" fn() -> *const Discipline;
