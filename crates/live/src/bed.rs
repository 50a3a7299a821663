//! The test bed is two network namespaces with an interface each. The router has the other ends of these, and the hosts
//! are set to what a scenario says.
//!
//! Nothing but file descriptors of this process holds the test bed, so it goes when the process ends.

use crate::addressing::Addressing;
use crate::counters::{Counters, Interface};
use crate::namespace::Namespace;
use crate::settings::{self, Settings};
use crate::tun::Tun;
use scenario::Family;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// What the hosts' interface is called, on both sides.
pub const INTERFACE: &str = "aqm0";
/// Of the hosts' interfaces, bytes: Ethernet's.
const MTU: u32 = 1500;
/// What the interface holds for the router: what two hundred thousand packets a second are in 50 ms. Hosts are not to
/// lose packets before the router has read them.
const QUEUE: u32 = 10_000;

/// Namespaces, interfaces and counters: left, right.
#[derive(Debug)]
pub struct Bed {
    /// Where the hosts live.
    pub sides: [Namespace; 2],
    /// Our ends of their interfaces.
    pub ports: [Tun; 2],
    /// What their kernel counts.
    pub counters: [Counters; 2],
    /// What was asked for and is not so.
    pub remarks: Vec<String>,
}

impl Bed {
    /// Makes it.
    ///
    /// # Errors
    /// In one line: what this machine does not let us, or has not; a setting that did not take.
    pub fn make(family: Family, settings: &Settings) -> io::Result<Self> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let mut remarks = settings.remarks.clone();
        let mut port = |side: u8| -> io::Result<Tun> {
            let (port, found) = sides[usize::from(side)].within(|| make_side(side, family, settings))?;
            remarks.extend(found);
            Ok(port)
        };
        let ports = [port(0)?, port(1)?];
        remarks.dedup();
        let counters = [Counters::of(&sides[0])?, Counters::of(&sides[1])?];
        Ok(Self { sides, ports, counters, remarks })
    }

    /// Where others find it while it lasts: namespaces, interface and addresses.
    pub fn to_json(&self) -> Value {
        let own = |side: u8| [Family::Ipv4, Family::Ipv6].map(|family| Addressing::new(family).own(side).to_string());
        json!({
            "pid": std::process::id(),
            "namespaces": { "left": self.sides[0].path(), "right": self.sides[1].path() },
            "interface": INTERFACE,
            "addresses": { "left": own(0), "right": own(1) },
        })
    }

    /// What the interfaces of both sides have counted.
    ///
    /// # Errors
    /// Where the system does not let it.
    pub fn interfaces(&self) -> io::Result<[Interface; 2]> {
        let [left, right] = &self.counters;
        Ok([left.interface(INTERFACE)?, right.interface(INTERFACE)?])
    }

    /// What both sides then are: read from the kernel, not from what was asked for.
    ///
    /// # Errors
    /// Where a namespace cannot be entered.
    pub fn read_back(&self, settings: &Settings) -> io::Result<Value> {
        let [left, right] = &self.sides;
        let read = |side: &Namespace| side.within(|| Ok(read_side(settings)));
        Ok(json!({ "left": read(left)?, "right": read(right)? }))
    }
}

/// Sets up the side of the namespace of this thread, and says what did not take of what is no scenario's.
fn make_side(side: u8, family: Family, settings: &Settings) -> io::Result<(Tun, Vec<String>)> {
    let mut remarks = Vec::new();
    for (name, to) in settings::ALWAYS {
        if let Err(error) = settings::set(name, to)
            && error.kind() != io::ErrorKind::NotFound
        {
            remarks.push(error.to_string());
        }
    }
    let control = set_sysctls(&settings.sysctl)?;
    let port = Tun::open(INTERFACE)?;
    let has_ipv6 = settings::has_ipv6();
    batch(&[], &interface_lines(has_ipv6))?;
    if family == Family::Ipv6 && !has_ipv6 {
        let message = "live.family = \"ipv6\": this kernel has no IPv6";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    // IPv4 is needed in any case: the link is checked with it.
    add_routes(side, Family::Ipv4, settings, control.as_deref())?;
    if has_ipv6 {
        match add_routes(side, Family::Ipv6, settings, control.as_deref()) {
            Err(error) if family == Family::Ipv4 => remarks.push(format!("no IPv6 between the hosts: {error}")),
            added => added?,
        }
    }
    // TCP is to send each segment as the window lets it, not to wait until several make one large packet
    // (tcp_tso_should_defer()), which a link without offloads would never see.
    if let Err(error) = ip(&["link", "set", "dev", INTERFACE, "gso_max_segs", "1"]) {
        remarks.push(error.to_string());
    }
    // A default discipline of the system's own may be one that drops and marks.
    let queue = ["qdisc", "replace", "dev", INTERFACE, "root", "pfifo", "limit", &QUEUE.to_string()];
    if let Err(error) = run("tc", &queue, "") {
        remarks.push(error.to_string());
    }
    Ok((port, remarks))
}

fn interface_lines(has_ipv6: bool) -> Vec<String> {
    let mut lines =
        vec!["link set dev lo up".to_owned(), format!("link set dev {INTERFACE} mtu {MTU} txqueuelen {QUEUE}")];
    if has_ipv6 {
        lines.push(format!("link set dev {INTERFACE} addrgenmode none"));
    }
    lines.push(format!("link set dev {INTERFACE} up"));
    lines
}

/// Sets what both sides have. Only its first namespace may have a congestion controller as its default that the kernel
/// restricts (net.ipv4.tcp_allowed_congestion_control, tcp_set_default_congestion_control()); the answer is one that
/// the routes are then to name.
fn set_sysctls(sysctls: &[(String, String)]) -> io::Result<Option<String>> {
    let mut control = None;
    for (name, to) in sysctls {
        match settings::set(name, to) {
            Err(error) if name == settings::CONTROL && error.kind() == io::ErrorKind::PermissionDenied => {
                control = Some(to.clone());
            }
            set => drop(set?),
        }
    }
    Ok(control)
}

/// The routes of `side`: all its addresses are its own, without being added one by one (AnyIP), and each block of
/// traffic has a route to the other side with attributes of its own, among them a congestion controller where the
/// namespace could not be given `control` as its default.
fn add_routes(side: u8, family: Family, settings: &Settings, control: Option<&str>) -> io::Result<()> {
    let addressing = Addressing::new(family);
    let (own, other) = (addressing.own(side), 1 - side);
    let (version, host) = match family {
        Family::Ipv4 => ("-4", "32"),
        Family::Ipv6 => ("-6", "128 nodad"),
    };
    let attributes = |route: &str, own: &str| match control {
        None => route.to_owned(),
        Some(control) => format!("{route} congctl {}", if own.is_empty() { control } else { own }),
    };
    let usual = attributes(&settings.route, "");
    let blocks = settings.blocks.iter().enumerate().map(|(block, settings)| {
        (addressing.block(other, block as u16), attributes(&settings.route, &settings.congestion))
    });
    let routes: Vec<(String, String)> = [(addressing.side(other), usual)].into_iter().chain(blocks).collect();
    let mut lines = vec![
        format!("addr add {own}/{host} dev {INTERFACE}"),
        format!("route add local {} dev lo", addressing.side(side)),
        format!("route add default dev {INTERFACE} src {own}"),
    ];
    lines.extend(routes.iter().map(|(to, has)| format!("route add {to} dev {INTERFACE} src {own} {has}")));
    batch(&[version], &lines)?;
    for (to, wanted) in &routes {
        let missing = settings::missing_attributes(wanted, &ip(&[version, "route", "show", to])?);
        if !missing.is_empty() {
            let what = missing.join(", ");
            let message = format!("the kernel did not take {what} for the route to {to}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}

/// What the side of the namespace of this thread is.
fn read_side(settings: &Settings) -> Value {
    let asked = settings.sysctl.iter().map(|(name, _)| name.as_str());
    let always = settings::ALWAYS.iter().map(|(name, _)| *name);
    let also = ["net.ipv4.tcp_available_congestion_control", settings::CONTROL, "net.ipv4.tcp_ecn"];
    let sysctls: Map<String, Value> =
        asked.chain(always).chain(also).map(|name| (name.to_owned(), json!(settings::get(name)))).collect();
    // What cannot be read is null: that a program is missing, or is too old, spoils no run.
    let read = |program: &str, words: &[&str]| run(program, words, "").ok();
    let of_ip = |words: &[&str]| read("ip", words).map(|text| settings::printed(&text));
    json!({
        "sysctls": sysctls,
        "routes": of_ip(&["-j", "-4", "route", "show"]),
        "routes_ipv6": of_ip(&["-j", "-6", "route", "show"]),
        "link": of_ip(&["-j", "-d", "link", "show", "dev", INTERFACE]),
        "qdiscs": read("tc", &["-j", "qdisc", "show", "dev", INTERFACE]).map(|text| settings::printed(&text)),
        "offloads": read("ethtool", &["-k", INTERFACE]).map(|text| settings::features(&text)),
    })
}

/// The release of the kernel that runs.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Does lines of ip(8), in the network namespace of this thread.
///
/// # Errors
/// The first line that is refused, with what ip(8) says.
pub fn batch(options: &[&str], lines: &[String]) -> io::Result<()> {
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    run("ip", &[options, &["-batch", "-"]].concat(), &text).map(drop).map_err(|error| {
        // "Command failed -:3"
        let said = error.to_string();
        let number = said.rsplit_once("-:").and_then(|(_, number)| number.trim().parse::<usize>().ok());
        let line = number.and_then(|number| lines.get(number.wrapping_sub(1)));
        let (said, _) = said.rsplit_once(" Command failed").unwrap_or((&said, ""));
        io::Error::new(error.kind(), line.map_or(said.to_owned(), |line| format!("{said} (ip {line})")))
    })
}

fn ip(words: &[&str]) -> io::Result<String> {
    run("ip", words, "")
}

/// Where the programs that set networks up are looked for: in the user's PATH and, as that may not name these, in the
/// system's folders.
pub fn path() -> String {
    let system = "/usr/sbin:/sbin:/usr/bin:/bin";
    let own = std::env::var("PATH").ok().filter(|own| !own.is_empty());
    own.map_or_else(|| system.to_owned(), |own| format!("{own}:{system}"))
}

/// Runs a program in the network namespace of this thread and returns what it prints.
///
/// # Errors
/// Where it is not there, or says that it failed.
pub fn run(program: &str, words: &[&str], input: &str) -> io::Result<String> {
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(io::ErrorKind::NotFound, format!("{program} is missing: expected iproute2's {program}(8)"))
        }
        kind => io::Error::new(kind, format!("{program}: {error}")),
    };
    let mut child = Command::new(program)
        .args(words)
        .env("PATH", path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    // Closed at the end of the statement. A program that has ended already says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    Err(io::Error::other(format!("{program} {}: {said}", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_ipv6_is_asked_for_none() {
        let with = interface_lines(true);
        assert_eq!(with.iter().filter(|line| line.contains("addrgenmode")).count(), 1);
        let without: Vec<_> = with.into_iter().filter(|line| !line.contains("addrgenmode")).collect();
        assert_eq!(interface_lines(false), without);
    }

    #[test]
    fn the_systems_folders_are_looked_into_last() {
        let path = path();
        let folders: Vec<&str> = path.split(':').collect();
        assert_eq!(folders[folders.len() - 4..], ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run("no-such-program", &[], "").expect_err("it is not there");
        assert!(error.to_string().starts_with("no-such-program is missing"), "{error}");
    }
}
