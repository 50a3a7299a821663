//! No allocation per packet: once slabs and buffers have grown to what the traffic needs, packets cost no memory.
//!
//! Whole runs through [`sim::run`] with an allocator that counts. What is left after the warm-up is growth to a new
//! maximum, and each maximum is met only once: the most connections at once, and for each place the most segments
//! outstanding and the most holes in one window, in buffers that stay with the place when the next connection takes it.
//! The bounds:
//!
//! - 100 long flows have 400 such buffers. If each of them grew once more within the million packets counted, that
//!   would be one call in 2,500 packets; one in 10,000 is allowed.
//! - Transfers and web users have sizes without a finite variance, so that now and then the number of connections
//!   passes its record by hundreds, and each new place begins with empty buffers that grow three or four times. The
//!   mean connection takes some twenty packets and begins in a used place; one call in 1,000 packets is allowed, which
//!   even one connection in a hundred with buffers of its own would exceed.
//! - What `linux` needs to take a reduction back it asks for at a connection's first loss, which one in sixty has here:
//!   one call in 500 packets is allowed.

use base::Time;
use record::Discard;
use scenario::Resolved;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting the calls of each thread that ask for memory.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // Not while the thread ends: its counter is gone by then.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing of it and does not allocate.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn resolved(text: &str) -> Resolved {
    scenario::resolve(text, "allocation.toml", &[], &|_| Err("no files here".to_owned())).expect("a sound scenario")
}

/// What a run asked for in an interval: calls to the allocator, and packets that left the bottleneck.
#[derive(Clone, Copy, Debug)]
struct Asked {
    calls: u64,
    packets: u64,
}

/// Runs `text`; what it asked for after `settled_s` seconds.
fn asked_after(text: &str, settled_s: u64) -> Asked {
    let resolved = resolved(text);
    let scenario = resolved.scenario().expect("nothing to calibrate");
    let settled = Time::from_ns(settled_s * 1_000_000_000);
    let before = ASKED.get();
    let (mut first, mut last) = (None, (0, 0));
    let outcome = sim::run(scenario, &mut Discard, &mut |simulation| {
        let pulse = simulation.pulse();
        last = (ASKED.get(), pulse.bottleneck_packets);
        if pulse.now >= settled {
            first.get_or_insert(last);
        }
        true
    });
    assert!(outcome.is_some(), "the run was not broken off");
    let first = first.expect("the run is longer than it takes to settle");
    assert!(first.0 > before, "the warm-up asks for memory, and it is counted");
    Asked { calls: last.0 - first.0, packets: last.1 - first.1 }
}

fn bulk(kind: &str) -> String {
    format!(
        r#"
        duration = "120s"
        warmup = "1s"
        [link]
        rate = "100mbit"
        [link.qdisc]
        kind = "{kind}"
        limit = "240p"
        [path]
        rtt = {{ even = ["10ms", "150ms"] }}
        [tcp]
        stack = "ns2"
        [[traffic]]
        kind = "bulk"
        flows = 100
        start = {{ uniform = ["0s", "1s"] }}
        "#
    )
}

/// At most one call in `packets_per_call` packets.
fn assert_rare(what: &str, asked: Asked, packets_per_call: u64) {
    assert!(asked.packets > 500_000, "{what}: {asked:?} shows nothing");
    assert!(asked.calls * packets_per_call <= asked.packets, "{what}: {asked:?}");
}

#[test]
fn long_flows() {
    for kind in ["pfifo", "red", "ared", "pi", "rem"] {
        assert_rare(kind, asked_after(&bulk(kind), 60), 10_000);
    }
}

#[test]
fn short_transfers() {
    let never_takes_back = r#"{ stack = "linux", undo = false, frto = false }"#;
    for (hosts, packets_per_call) in
        [(r#"{ stack = "freebsd4" }"#, 1_000), (never_takes_back, 1_000), (r#"{ stack = "linux" }"#, 500)]
    {
        let text = format!(
            r#"
            duration = "180s"
            tcp = {hosts}
            warmup = "1s"
            [[traffic]]
            kind = "poisson"
            arrivals = "1480hz"
            size = {{ pareto = {{ mean = "7000b", shape = 1.2 }} }}
            "#
        );
        assert_rare(hosts, asked_after(&text, 60), packets_per_call);
    }
}

#[test]
fn web_users() {
    for kind in ["pfifo", "pi"] {
        let text = format!(
            r#"
            duration = "240s"
            tcp.stack = "freebsd4"
            warmup = "1s"
            [link]
            rate = "100mbit"
            [link.qdisc]
            kind = "{kind}"
            [[traffic]]
            kind = "web"
            users = 18000
            "#
        );
        assert_rare(kind, asked_after(&text, 120), 1_000);
    }
}

/// Sessions keep a list of the pages that they have not asked for whole; PackMime keeps places for persistent
/// connections. Both grow to what they need, and stay.
#[test]
fn web_sessions_and_connections() {
    for (model, how_many) in [("feldmann-pareto2", "users = 2500"), ("packmime", "arrivals = \"1000hz\"")] {
        let text = format!(
            r#"
            duration = "180s"
            tcp.stack = "freebsd4"
            warmup = "1s"
            [link]
            rate = "100mbit"
            [[traffic]]
            kind = "web"
            model = "{model}"
            {how_many}
            "#
        );
        assert_rare(model, asked_after(&text, 90), 1_000);
    }
}
