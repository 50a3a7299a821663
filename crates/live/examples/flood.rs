//! How many packets a second the router carries between two kernels' worth of TCP and UDP on this machine, how late,
//! and what each part costs.
//!
//! `flood [--virtual] [SECONDS [LOAD]]`: for each load whose name begins with LOAD, packets a second through the
//! router, both ways together, quantiles of their lateness, and the processor time of the router, of the senders and of
//! the receivers. As root, or in a user namespace (`unshare -Ur flood`), with ip(8). Link and access links are of 10
//! Gb/s with a FIFO of 1000 packets, so that it is the machine that limits; TCP sends each segment by itself, as it
//! does in a run.

#[cfg(target_os = "linux")]
#[path = "../tests/across/bed.rs"]
#[allow(dead_code, reason = "it has more than is needed here")]
mod bed;

#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that prints what was measured")]
mod flood {
    use crate::bed;
    use base::{Span, Time};
    use live::paths::Announced;
    use live::{Clock, Epoch, Namespace, Real, Report, Router, Sleeping, Tun};
    use rustix::net::sockopt;
    use rustix::time::{ClockId, clock_gettime};
    use scenario::Scenario;
    use std::io::{self, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    /// How long a receiver leaves its socket alone that has nothing to read.
    const RESTS: Duration = Duration::from_micros(500);

    /// The columns. Microseconds are of lateness, shares of one processor, and the cost of a packet is the router's.
    const HEAD: &str = concat!(
        "                             packets/s      Mb/s   p50 us  p99 us p999 us  max us   ro",
        "uter senders receivers  us/packet  remarks",
    );

    /// What is sent.
    #[derive(Clone, Copy)]
    struct Load {
        name: &'static str,
        is_tcp: bool,
        /// Size of a full packet, bytes (IP).
        packet: u16,
        flows: u16,
        link: &'static str,
    }

    const LOADS: [Load; 6] = [
        Load { name: "TCP, 1500 bytes", is_tcp: true, packet: 1500, flows: 4, link: "10gbit" },
        Load { name: "TCP, 300 bytes", is_tcp: true, packet: 300, flows: 4, link: "10gbit" },
        Load { name: "UDP, 1500 bytes", is_tcp: false, packet: 1500, flows: 1, link: "10gbit" },
        Load { name: "UDP, 300 bytes", is_tcp: false, packet: 300, flows: 1, link: "10gbit" },
        Load { name: "TCP, 1500 bytes at 1.2 Gb/s", is_tcp: true, packet: 1500, flows: 4, link: "1200mbit" },
        Load { name: "TCP, 1500 bytes at 100 Mb/s", is_tcp: true, packet: 1500, flows: 4, link: "100mbit" },
    ];

    pub fn main() -> io::Result<()> {
        let mut arguments = std::env::args().skip(1).peekable();
        let is_virtual = arguments.next_if_eq("--virtual").is_some();
        let seconds = arguments.next().map_or(5, |text| text.parse().expect("a number of seconds"));
        println!("{HEAD}");
        let wanted = arguments.next().unwrap_or_default();
        for load in LOADS.into_iter().filter(|load| load.name.starts_with(&wanted)) {
            measure(load, seconds, is_virtual)?;
        }
        Ok(())
    }

    fn measure(load: Load, seconds: u64, is_virtual: bool) -> io::Result<()> {
        let Load { link, .. } = load;
        let text = format!(
            "[link]\nrate = \"{link}\"\n[link.qdisc]\nkind = \"pfifo\"\nlimit = \"1000p\"\n\
             [path]\naccess_rate = \"10gbit\"\nrtt = \"1ms\""
        );
        let mut scenario = bed::scenario(&text).scenario().expect("it has no load to calibrate").clone();
        (scenario.duration, scenario.warmup, scenario.cooldown) =
            (Span::from_secs(seconds + 60), Span::ZERO, Span::ZERO);
        let sides = [Namespace::new()?, Namespace::new()?];
        let ports = [bed::port(&sides, 0)?, bed::port(&sides, 1)?];
        for side in &sides {
            let mtu = load.packet.to_string();
            let set = ["link", "set", bed::INTERFACE, "mtu", &mtu, "gso_max_segs", "1"];
            // The default may be one that paces, and a connection that began with it does so for ever.
            side.within(|| {
                bed::output("ip", &set)?;
                std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")
            })?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let router = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let epoch = Epoch::after(Span::ZERO);
                if is_virtual {
                    carry(&scenario, ports, Sleeping::since(epoch)?, &stop)
                } else {
                    carry(&scenario, ports, Real::since(epoch)?, &stop)
                }
            })
        };
        let received = Arc::new(AtomicU64::new(0));
        let (senders, receivers) = start(load, &sides, &stop, &received)?;
        thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let (report, router_s) = router.join().expect("the router does not panic")?;
        let cost = |threads: Vec<thread::JoinHandle<f64>>| -> f64 {
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        };
        print(load, &report, router_s, cost(senders), cost(receivers), received.load(Ordering::Relaxed));
        Ok(())
    }

    fn carry<C: Clock>(scenario: &Scenario, ports: [Tun; 2], clock: C, stop: &AtomicBool) -> io::Result<(Report, f64)> {
        let mut router = Router::new(scenario, ports, clock, Announced::nothing(), None);
        router.run(Time::ZERO + scenario.duration, stop)?;
        Ok((router.report(), cpu_s()))
    }

    fn print(load: Load, report: &Report, router_s: f64, senders_s: f64, receivers_s: f64, received: u64) {
        let seconds = report.ended.secs_f64();
        let late = &report.lateness;
        let us = |q| late.quantile(q).ns() as f64 * 1e-3;
        let packets: u64 = report.directions.iter().map(|direction| direction.written).sum();
        let share = |cpu_s: f64| format!("{:.0} %", cpu_s / seconds * 100.0);
        println!(
            "{:28} {:9.0} {:9.1}  {:7.1} {:7.1} {:7.1} {:7.0}  {:>7} {:>7} {:>9}  {:9.2}  {}",
            load.name,
            packets as f64 / seconds,
            received as f64 * 8e-6 / seconds,
            us(0.5),
            us(0.99),
            us(0.999),
            late.most().ns() as f64 * 1e-3,
            share(router_s),
            share(senders_s),
            share(receivers_s),
            router_s * 1e6 / packets as f64,
            report.void().unwrap_or_else(|| "within budget".to_owned()),
        );
    }

    type Threads = Vec<thread::JoinHandle<f64>>;

    /// Starts who sends from the left and who receives on the right, until all shall stop.
    fn start(
        load: Load,
        sides: &[Namespace; 2],
        stop: &Arc<AtomicBool>,
        received: &Arc<AtomicU64>,
    ) -> io::Result<(Threads, Threads)> {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for flow in 0..load.flows {
            let port = 7000 + flow;
            let (stop_sending, stop_receiving) = (Arc::clone(stop), Arc::clone(stop));
            let received = Arc::clone(received);
            if load.is_tcp {
                let listener = sides[1].within(|| TcpListener::bind((bed::V4[1], port)))?;
                let sender = sides[0].within(|| TcpStream::connect((bed::V4[1], port)))?;
                let (receiver, _) = listener.accept()?;
                sender.set_write_timeout(Some(Duration::from_millis(100)))?;
                receiver.set_nonblocking(true)?;
                // A write fills whole packets: 52 bytes of each are headers with timestamps.
                let whole = usize::from(load.packet - 52);
                senders.push(thread::spawn(move || {
                    let bytes = vec![0; whole * (65_536 / whole)];
                    while !stop_sending.load(Ordering::Relaxed) {
                        let _ = (&sender).write(&bytes);
                    }
                    cpu_s()
                }));
                receivers.push(thread::spawn(move || {
                    let mut buffer = vec![0; 262_144];
                    while !stop_receiving.load(Ordering::Relaxed) {
                        match (&receiver).read(&mut buffer) {
                            Ok(size) => drop(received.fetch_add(size as u64, Ordering::Relaxed)),
                            // To be woken for every packet would cost more than the packet.
                            Err(_) => thread::sleep(RESTS),
                        }
                    }
                    cpu_s()
                }));
            } else {
                let sender = sides[0].within(|| {
                    let socket = UdpSocket::bind((bed::V4[0], port))?;
                    socket.connect((bed::V4[1], port))?;
                    Ok(socket)
                })?;
                let receiver = sides[1].within(|| UdpSocket::bind((bed::V4[1], port)))?;
                receiver.set_nonblocking(true)?;
                // A user may not have as much.
                let _ = sockopt::set_socket_recv_buffer_size_force(&receiver, 8 << 20);
                sender.set_write_timeout(Some(Duration::from_millis(100)))?;
                let payload = usize::from(load.packet - 28);
                senders.push(thread::spawn(move || {
                    let bytes = vec![0; payload];
                    while !stop_sending.load(Ordering::Relaxed) {
                        let _ = sender.send(&bytes);
                    }
                    cpu_s()
                }));
                receivers.push(thread::spawn(move || {
                    let mut buffer = vec![0; 2048];
                    while !stop_receiving.load(Ordering::Relaxed) {
                        match receiver.recv(&mut buffer) {
                            Ok(size) => drop(received.fetch_add(size as u64, Ordering::Relaxed)),
                            Err(_) => thread::sleep(RESTS),
                        }
                    }
                    cpu_s()
                }));
            }
        }
        Ok((senders, receivers))
    }

    fn cpu_s() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    flood::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
