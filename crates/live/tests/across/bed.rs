//! Two hosts in network namespaces of their own, and the router between them.

use base::{Span, Time};
use live::paths::Announced;
use live::{Clock, Epoch, Namespace, Real, Report, Router, Sleeping, Tun};
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};
use scenario::{Resolved, Scenario, resolve};
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Both hosts' addresses: left, right.
pub const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
/// The same, IPv6.
pub const V6: [&str; 2] = ["fd09::1", "fd09::2"];
/// What the interface is called, on both sides.
pub const INTERFACE: &str = "aqm0";

/// A router that nobody stops stops after this.
const LONGEST: Span = Span::from_secs(600);

/// Hosts, and the router that runs.
pub struct Bed {
    /// Left, right.
    pub sides: [Namespace; 2],
    stop: Arc<AtomicBool>,
    router: JoinHandle<(io::Result<()>, Report)>,
}

impl Bed {
    /// Builds it, and starts the router over `scenario`, in the time of the machine or in that of a kernel whose time
    /// is virtual.
    pub fn start(scenario: &Resolved, is_virtual: bool) -> io::Result<Self> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let ports = [port(&sides, 0)?, port(&sides, 1)?];
        let mut scenario = scenario.scenario().expect("it has no load to calibrate").clone();
        // All of it is measured.
        (scenario.duration, scenario.warmup, scenario.cooldown) = (LONGEST, Span::ZERO, Span::ZERO);
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let router = std::thread::spawn(move || {
            const PUNCTUAL: &str = "any thread may be punctual";
            let epoch = Epoch::after(Span::ZERO);
            if is_virtual {
                carry(&scenario, ports, Sleeping::since(epoch).expect(PUNCTUAL), &stopping)
            } else {
                carry(&scenario, ports, Real::since(epoch).expect(PUNCTUAL), &stopping)
            }
        });
        Ok(Self { sides, stop, router })
    }

    /// Stops the router.
    pub fn end(self) -> (io::Result<()>, Report) {
        self.stop.store(true, Ordering::Relaxed);
        self.ends_by_itself()
    }

    /// Waits until the router has stopped.
    pub fn ends_by_itself(self) -> (io::Result<()>, Report) {
        self.router.join().expect("the router does not panic")
    }

    /// Runs `program` on `side` and returns what it prints.
    #[allow(dead_code, reason = "not by everybody")]
    pub fn runs(&self, side: usize, program: &str, arguments: &[&str]) -> io::Result<String> {
        self.sides[side].within(|| output(program, arguments))
    }
}

fn carry<C: Clock>(scenario: &Scenario, ports: [Tun; 2], clock: C, stop: &AtomicBool) -> (io::Result<()>, Report) {
    let mut router = Router::new(scenario, ports, clock, Announced::nothing(), None);
    let ended = router.run(Time::ZERO + LONGEST, stop);
    (ended, router.report())
}

/// The interface of `side`, which is up, has addresses, and sees the other side behind it.
pub fn port(sides: &[Namespace; 2], side: usize) -> io::Result<Tun> {
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

/// What `program` prints.
pub fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
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

/// Sends `count` echo requests of `size` bytes (IP) from the left, and returns the round-trip times.
pub fn ping(count: u16, size: usize) -> io::Result<Vec<Duration>> {
    let socket: OwnedFd = net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(2)))?;
    let to: SocketAddr = format!("{}:0", V4[1]).parse().expect("an address");
    let mut times = Vec::new();
    for number in 1..=count {
        let mut request = vec![8, 0, 0, 0, 0x0a, 0x0b];
        request.extend(number.to_be_bytes());
        request.resize(size - 20, 0);
        // RFC 792: the sum of three words that are not zero.
        let sum = 0x0800_u32 + 0x0a0b + u32::from(number);
        request[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        #[expect(clippy::disallowed_methods, reason = "a round trip is timed on the wall clock")]
        let sent = std::time::Instant::now();
        net::sendto(&socket, &request, SendFlags::empty(), &to)?;
        let mut reply = [0; 2048];
        loop {
            net::recv(&socket, &mut reply, RecvFlags::empty())?;
            // An echo reply, and ours.
            if reply[20] == 0 && reply[24..28] == request[4..8] {
                break;
            }
        }
        times.push(sent.elapsed());
    }
    Ok(times)
}
