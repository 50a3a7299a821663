//! The namespace of a link in which the kernel forwards packets from one device to the other, through its own
//! disciplines.
//!
//! ```text
//! to the bottleneck forward ── file of `reverse` │ IP forwarding │ qdisc of `forward` ── file of `forward`
//! file of `reverse` ── qdisc of `reverse` │ IP forwarding │ file of `forward` ── to the bottleneck in reverse
//! ```
//!
//! A TUN device has no Ethernet header and no offloads, so that what a discipline counts is an IP packet. What a
//! shaper lets go waits in the device until it is read; [`READABLE`] packets can.

use super::statistics::{self, Statistics};
use crate::addressing::Addressing;
use crate::bed;
use crate::namespace::Namespace;
use crate::settings;
use crate::tun::Tun;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice};
use scenario::Family;
use serde_json::{Value, json};
use std::io;
use std::process::{Command, Stdio};

/// The devices: that of the bottleneck forward, and that of the one in reverse.
pub const DEVICES: [&str; 2] = ["forward", "reverse"];
/// The handle of the discipline under study, `10:` in tc(8).
const HANDLE: u32 = 0x10 << 16;
/// The size of the hosts' packets; CoDel and others take it from the device.
const MTU: u32 = 1500;
/// Packets that a device holds for its file, beyond which the kernel would lose them.
const READABLE: u32 = 10_000;

/// What is to be set up: lines of shell, and what to try where they fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSpec {
    /// The lines, in order.
    pub lines: Vec<String>,
    /// Kinds of disciplines, and words that make one of each.
    pub kinds: Vec<(String, String)>,
}

impl KernelSpec {
    /// One for each link of `{"links": [["tc ...", ...], ...], "kinds": {"red": "limit ...", ...}}`.
    ///
    /// # Errors
    /// In one line, what was expected.
    pub fn from_json(value: &Value) -> Result<Vec<Self>, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let lines = |value: &Value| value.as_array()?.iter().map(text).collect::<Option<Vec<String>>>();
        let links = value["links"].as_array().and_then(|links| links.iter().map(lines).collect::<Option<Vec<_>>>());
        let kind = |(name, words): (&String, &Value)| Some((name.clone(), text(words)?));
        let kinds = value["kinds"].as_object().and_then(|kinds| kinds.iter().map(kind).collect::<Option<Vec<_>>>());
        match (links, kinds) {
            (Some(links), Some(kinds)) => {
                Ok(links.into_iter().map(|lines| Self { lines, kinds: kinds.clone() }).collect())
            }
            _ => Err("kernel_qdisc: expected the lines of each link, and kinds of disciplines, as text".to_owned()),
        }
    }
}

/// The kernel's disciplines, set up, and the socket on which they are asked for what they count. The devices last as
/// long as their files, and the namespace as long as this.
pub struct KernelLink {
    namespace: Namespace,
    socket: OwnedFd,
    requests: [[u8; 36]; 2],
    answer: Vec<u8>,
    spec: KernelSpec,
    remarks: Vec<String>,
}

impl KernelLink {
    /// Makes namespace, devices and disciplines for traffic of `family`, and returns the devices with it, as
    /// [`DEVICES`] has them.
    ///
    /// # Errors
    /// In one line, what this machine does not do; of kind `Unsupported` where the kernel lacks a discipline.
    pub fn open(spec: KernelSpec, family: Family) -> io::Result<(Self, [Tun; 2])> {
        let namespace = Namespace::new()?;
        let devices = [namespace.tun(DEVICES[0])?, namespace.tun(DEVICES[1])?];
        let (socket, requests, remarks) = namespace.within(|| {
            let has_ipv6 = settings::has_ipv6();
            setting_up(&interfaces(has_ipv6))?;
            forward(Family::Ipv4)?;
            let mut remarks = Vec::new();
            if has_ipv6 {
                match forward(Family::Ipv6) {
                    Err(error) if family == Family::Ipv4 => remarks.push(format!("{error}; no IPv6 over this link")),
                    done => done?,
                }
            }
            for line in &spec.lines {
                shell(line).map_err(|said| refusal(line, &said, &spec.kinds))?;
            }
            // NETLINK_ROUTE, which is number zero and what a netlink socket is of by default.
            let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
            let mut requests = [[0; 36]; 2];
            for (request, name) in requests.iter_mut().zip(DEVICES) {
                *request = statistics::request(netdevice::name_to_index(&socket, name)?, HANDLE);
            }
            Ok((socket, requests, remarks))
        })?;
        Ok((Self { namespace, socket, requests, answer: vec![0; 1 << 16], spec, remarks }, devices))
    }

    /// What is missing of it, and is not the traffic's.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What the discipline of `direction` says of itself.
    ///
    /// # Errors
    /// Where the kernel does not answer, or says that there is no such discipline.
    pub fn statistics(&mut self, direction: usize) -> io::Result<Statistics> {
        let failed = |error: rustix::io::Errno| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("asking for the statistics of {}: {error}", DEVICES[direction]))
        };
        rustix::net::send(self.socket.as_fd(), &self.requests[direction], SendFlags::empty()).map_err(failed)?;
        let (size, _) =
            rustix::net::recv(self.socket.as_fd(), &mut self.answer[..], RecvFlags::DONTWAIT).map_err(failed)?;
        statistics::answer(&self.answer[..size])
            .ok_or_else(|| io::Error::other(format!("the kernel has no qdisc 10: on {} any more", DEVICES[direction])))
    }

    /// The lines that were run, and what `tc -s qdisc show` and `tc class show` say now.
    pub fn readback(&self) -> Value {
        let said = |command: &str| {
            self.namespace.within(|| Ok(shell(command))).ok().and_then(Result::ok).map_or(Value::Null, |said| {
                serde_json::from_str(&said).unwrap_or_else(|_| Value::String(said.trim().to_owned()))
            })
        };
        let shown = |what: &str, options: &str| -> Value {
            DEVICES.iter().map(|name| said(&format!("tc {options} {what} show dev {name}"))).collect()
        };
        json!({
            "lines": self.spec.lines,
            "qdiscs": shown("qdisc", "-s -j"),
            "settings": shown("qdisc", "-d"),
            "classes": shown("class", "-d"),
        })
    }
}

/// Forwarding of a version of IP, also of packets whose way back would be another.
fn sysctls(family: Family) -> &'static [(&'static str, &'static str)] {
    match family {
        Family::Ipv4 => &[
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.all.send_redirects", "0"),
        ],
        Family::Ipv6 => &[("net.ipv6.conf.all.disable_ipv6", "0"), ("net.ipv6.conf.all.forwarding", "1")],
    }
}

/// The lines that bring the devices up.
fn interfaces(has_ipv6: bool) -> String {
    let mut script = String::new();
    // Without addresses and groups of its own the kernel sends nothing by itself: no packets but those of hosts.
    let addresses = if has_ipv6 { " addrgenmode none" } else { "" };
    for name in DEVICES {
        script += &format!("ip link set dev {name} mtu {MTU} txqueuelen {READABLE}{addresses} multicast off\n");
        script += &format!("ip link set dev {name} up\n");
    }
    script
}

/// Has the namespace of this thread forward a version of IP: all addresses of a side are behind one device.
fn forward(family: Family) -> io::Result<()> {
    for (name, value) in sysctls(family) {
        std::fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value)
            .map_err(|error| io::Error::new(error.kind(), format!("kernel qdisc: sysctl {name} = {value}: {error}")))?;
    }
    let addressing = Addressing::new(family);
    let route = |(side, device)| format!("ip route add {} dev {device}\n", addressing.side(side));
    setting_up(&[(1, DEVICES[0]), (0, DEVICES[1])].map(route).concat())
}

/// Runs lines that are to go well.
fn setting_up(lines: &str) -> io::Result<()> {
    shell(&format!("set -e\n{lines}")).map(drop).map_err(|said| io::Error::other(format!("kernel qdisc: {said}")))
}

/// Runs lines of shell in the namespace of this thread: what they say, or what they complain of in one line.
fn shell(lines: &str) -> Result<String, String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(lines).stdin(Stdio::null()).env("LC_ALL", "C");
    command.env("PATH", bed::path());
    let output = command.output().map_err(|error| format!("/bin/sh: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    Err(if said.is_empty() { output.status.to_string() } else { said.join("; ") })
}

/// Why a line failed: where it is that the kernel, or its tc, does not know a discipline, with what they know.
fn refusal(line: &str, said: &str, kinds: &[(String, String)]) -> io::Error {
    let is_unknown = said.contains("unknown") || said.contains("Unknown") || said.contains("No such file");
    let kind = |name: &str| line.split_whitespace().any(|word| word == name);
    let asked: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).filter(|name| kind(name)).collect();
    if !is_unknown || asked.is_empty() {
        return io::Error::other(format!("kernel qdisc: {line}: {said}"));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let asked = asked.last().expect("it is not empty");
    let has = available(kinds).join(", ");
    let lacks = format!("kernel qdisc: this kernel ({release}) or its tc has no {asked}; it has {has}");
    io::Error::new(io::ErrorKind::Unsupported, lacks)
}

/// Which of these kinds of disciplines a kernel and its tc can make, in the namespace of this thread.
fn available(kinds: &[(String, String)]) -> Vec<&str> {
    let can = |name: &str, words: &str| shell(&format!("tc qdisc replace dev lo root {name} {words}")).is_ok();
    let found = kinds.iter().filter(|(name, words)| can(name, words)).map(|(name, _)| name.as_str()).collect();
    let _ = shell("tc qdisc del dev lo root");
    found
}
