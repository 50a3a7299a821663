//! What a run is reckoned to need is what it takes, within a factor: an allocator counts.
//!
//! Bounds: four times either way, and 16 MB for what every run has. Reckoning is there to tell megabytes from a
//! machine's memory, and its weights are of hosts that have just begun; a run of hours has grown buffers, one of
//! seconds has not.

use record::Discard;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which knows the most that each thread held.
struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

fn held(change: i64) {
    // Not while the thread ends: its counters are gone by then.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing of it and does not allocate.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        held(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        held(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn what_is_reckoned_is_what_is_taken() {
    const EVERY_RUN: f64 = 16e6;
    for block in [
        "kind = \"bulk\"\nflows = 20000",
        "kind = \"poisson\"\narrivals = \"10000hz\"\nsize = \"10kb\"",
        "kind = \"web\"\nusers = 60000",
        "kind = \"web\"\nmodel = \"feldmann-pareto2\"\nusers = 40000",
        "kind = \"web\"\nmodel = \"feldmann-pareto2\"\nusers = 1\nobjects = 20000\ninter_page = \"1s\"\ninter_object = \"0s\"\nsize = \"1b\"",
        "kind = \"web\"\nmodel = \"feldmann-pareto2\"\nusers = 1000\nobjects = { pareto = { scale = 1, shape = 1 } }",
        "kind = \"web\"\nmodel = \"feldmann-pareto1\"\nusers = 1000\nobjects = 10000\ninter_object = \"10s\"",
        "kind = \"web\"\nmodel = \"feldmann-pareto1\"\nusers = 30000\npages = \"end-to-start\"\nobjects = 50\ninter_object = \"0s\"\ninter_page = \"100s\"\nsize = \"300b\"",
        "kind = \"cbr\"\nflows = 200000\nrate = \"10mbit\"",
        "kind = \"cbr\"\nflows = 10\nrate = \"1gbit\"\npacket = \"300b\"",
        "kind = \"bulk\"\nflows = 20\nwindow = \"16mb\"",
    ] {
        let text = format!(
            "duration = \"3s\"\n[link]\nrate = \"100mbit\"\n[link.qdisc]\nkind = \"pfifo\"\nlimit = \"4000000p\"\n\
             [tcp]\nstack = \"linux\"\n[[traffic]]\n{block}\n"
        );
        let resolved = scenario::resolve(&text, "memory.toml", &[], &|_| Err("no files here".into())).expect("sound");
        let scenario = resolved.scenario().expect("nothing to calibrate");
        let reckoned = sim::memory(scenario).iter().map(|need| need.bytes).sum::<u64>() as f64;
        let before = HELD.get();
        MOST.set(before);
        sim::run(scenario, &mut Discard, &mut |_| true).expect("the run was not broken off");
        let taken = (MOST.get() - before) as f64;
        assert!(taken <= 4.0 * reckoned + EVERY_RUN, "{block}: reckoned {reckoned:.3e}, taken {taken:.3e}");
        assert!(reckoned <= 4.0 * taken + EVERY_RUN, "{block}: reckoned {reckoned:.3e}, taken {taken:.3e}");
    }
}

/// The most that a run holds of so many connections, which say something every 20 s and are all open before any of them
/// does so again. Each has a vector of its own, which counts as well.
fn held_by_open_connections(connections: u64, stack: &str) -> i64 {
    let vector = |number| {
        let start_us = number * 20_000_000 / connections;
        let exchange = "> 300\nt 1000\n< 3000\nt 20000000\n";
        format!("SEQ {start_us} 3\nw 65535 65535\nr 80000\nl 0 0\n{exchange}{exchange}{exchange}")
    };
    let vectors: String = (0..connections).map(vector).collect();
    let text = format!(
        "duration = \"50s\"\nlink.rate = \"100mbit\"\ntcp.stack = \"{stack}\"\n\
         [[traffic]]\nkind = \"tmix\"\nvectors = \"set.cvec\"\n"
    );
    let before = HELD.get();
    let resolved = scenario::resolve(&text, "memory.toml", &[], &|_| Ok(vectors.clone())).expect("sound");
    MOST.set(HELD.get());
    sim::run(resolved.scenario().expect("nothing to calibrate"), &mut Discard, &mut |_| true).expect("it ends");
    MOST.get() - before
}

#[test]
fn an_open_connection_takes_less_than_a_kilobyte_while_it_pauses() {
    for stack in ["freebsd4", "linux"] {
        let [few, many] = [4_000, 8_000].map(|connections| held_by_open_connections(connections, stack));
        let each = (many - few) / 4_000;
        assert!((200..1_024).contains(&each), "{stack}: {each} bytes");
    }
}

/// Hosts that have something of their own have places by number, four for each: on both sides and at both ends.
#[test]
fn hosts_with_links_to_share_or_a_clock_are_reckoned() {
    let needs = |path: &str, keys: &str| {
        let text = format!("duration = \"100s\"\n{path}\n[[traffic]]\nkind = \"poisson\"\nsize = \"1kb\"\n{keys}\n");
        let resolved = scenario::resolve(&text, "memory.toml", &[], &|_| Err("no files here".into())).expect("sound");
        let needs = sim::memory(resolved.scenario().expect("nothing to calibrate"));
        needs.into_iter().find(|need| need.key == "traffic.0.hosts").map(|need| need.bytes)
    };
    let many = "arrivals = \"1000000hz\"\nhosts = 10000000";
    let clock = "rtt_at = \"clients\"\nrtt_tick = \"1ms\"";
    assert_eq!(needs("", many), None);
    let shared = needs("path.access = \"host\"", many).expect("they share links");
    // An instant for each link at the least.
    assert!((4 * 16 * 10_000_000..4 * 64 * 10_000_000).contains(&shared), "{shared}");
    assert_eq!(needs("", &format!("{many}\n{clock}")), Some(shared));
    for hosts in ["10000000", "\"own\""] {
        let few = needs("", &format!("arrivals = \"100hz\"\nhosts = {hosts}\n{clock}"));
        assert_eq!(few, Some(shared / 1000), "{hosts}: no more than come");
    }
}

#[test]
fn a_state_larger_than_any_machine_is_reckoned_without_being_built() {
    let text = "[link.qdisc]\nkind = \"fq_sred\"\nzombies = 1000000\nqueues = 65536\n[[traffic]]\nkind = \"bulk\"\n";
    let resolved = scenario::resolve(text, "memory.toml", &[], &|_| Err("no files here".into())).expect("sound");
    let needs = sim::memory(resolved.scenario().expect("nothing to calibrate"));
    let qdisc = needs.iter().find(|need| need.key == "link.qdisc (fq_sred)").expect("it asks for memory");
    // A million zombies of 8 bytes in each of 65,536 queues.
    assert!(qdisc.bytes > 8 * 1_000_000 * 65_536);
}
