//! Two hosts in network namespaces of their own, and the router between them.

use base::Time;
use live::{Namespace, Real, Report, Router, Tun};
use scenario::{Resolved, resolve};
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Both hosts' addresses: left, right.
pub const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
/// The same, IPv6.
pub const V6: [&str; 2] = ["fd09::1", "fd09::2"];
/// What the interface is called, on both sides.
pub const INTERFACE: &str = "aqm0";

/// Hosts, and the router that runs.
pub struct Bed {
    /// Left, right.
    pub sides: [Namespace; 2],
    stop: Arc<AtomicBool>,
    router: JoinHandle<(io::Result<()>, Report)>,
}

impl Bed {
    /// Builds it, and starts the router over `scenario`.
    pub fn start(scenario: &Resolved) -> io::Result<Self> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let [left, right] = [port(&sides, 0)?, port(&sides, 1)?];
        let scenario = scenario.scenario().expect("it has no load to calibrate").clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let router = std::thread::spawn(move || {
            let mut router = Router::new(&scenario, left, right, Real::start().expect("any thread may be punctual"));
            let ended = router.run(Time::NEVER, &stopping);
            (ended, router.report())
        });
        Ok(Self { sides, stop, router })
    }

    /// Stops the router, if it has not stopped by itself.
    pub fn end(self) -> (io::Result<()>, Report) {
        self.stop.store(true, Ordering::Relaxed);
        self.router.join().expect("the router does not panic")
    }

    /// Runs `program` on `side` and returns what it prints.
    #[allow(dead_code, reason = "not by everybody")]
    pub fn runs(&self, side: usize, program: &str, arguments: &[&str]) -> io::Result<String> {
        self.sides[side].within(|| output(program, arguments))
    }
}

/// The interface of `side`, which is up, has addresses, and sees the other side behind it.
fn port(sides: &[Namespace; 2], side: usize) -> io::Result<Tun> {
    sides[side].within(|| {
        let port = Tun::open(INTERFACE)?;
        let ip = |arguments: &str| output("ip", &arguments.split(' ').collect::<Vec<_>>());
        // Hosts are not to lose packets before the router has read them.
        ip(&format!("link set {INTERFACE} mtu 1500 txqueuelen 10000 addrgenmode none"))?;
        ip("link set lo up")?;
        ip(&format!("addr add {}/32 peer {} dev {INTERFACE}", V4[side], V4[1 - side]))?;
        ip(&format!("link set {INTERFACE} up"))?;
        // Without IPv6 there are still tests of IPv4.
        let _ = ip(&format!("addr add {}/64 dev {INTERFACE} nodad", V6[side]));
        Ok(port)
    })
}

fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{program} {}: {}", arguments.join(" "), said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A scenario of `text`, to which traffic is added that nobody asks for here.
pub fn scenario(text: &str) -> Resolved {
    let text = format!("{text}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n");
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    resolve(&text, "bed.toml", &[], &read).expect("it makes sense")
}
