//! The hosts are set by sysctls of both sides and attributes of the routes of each block of traffic, in Linux's own
//! words. This file sets them, and reads back whether they are as they were set.

use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::Path;

/// What the hosts are to be set to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Sysctls, as `net.ipv4.tcp_sack`, of both sides.
    pub sysctl: Vec<(String, String)>,
    /// Attributes of the route to the other side that is no block's, in the words of ip-route(8): foreign programs'.
    pub route: String,
    /// What the hosts of each block of traffic have of their own.
    pub blocks: Vec<BlockSettings>,
    /// What was asked for and cannot be set.
    pub remarks: Vec<String>,
    /// What a kernel's discipline in the place of this laboratory's is set up with; null where there is none.
    pub kernel_qdisc: Value,
}

/// What the hosts of a block of traffic have of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSettings {
    /// Attributes of their routes, in the words of ip-route(8).
    pub route: String,
    /// Their congestion controller; empty for that of the side.
    pub congestion: String,
}

impl Settings {
    /// Those that `value` says: see [`crate::Plan::read`].
    ///
    /// # Errors
    /// What is not as expected.
    pub fn read(value: &Value) -> Result<Self, String> {
        let text = |value: &Value, key: &str| match &value[key] {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            other => Err(format!("settings: {key} = {other}: expected text")),
        };
        let sysctl = match &value["sysctl"] {
            Value::Null => Vec::new(),
            Value::Object(table) => table.iter().map(|(name, to)| sysctl(name, to)).collect::<Result<_, _>>()?,
            other => return Err(format!("settings.sysctl = {other}: expected a table")),
        };
        let blocks = list(value, "blocks")?
            .iter()
            .map(|block| Ok(BlockSettings { route: text(block, "route")?, congestion: text(block, "congestion")? }));
        let remarks = list(value, "remarks")?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let kernel_qdisc = value["kernel_qdisc"].clone();
        let route = text(value, "route")?;
        Ok(Self { sysctl, route, blocks: blocks.collect::<Result<_, String>>()?, remarks, kernel_qdisc })
    }
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    match &value[key] {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        other => Err(format!("settings.{key} = {other}: expected a list")),
    }
}

fn sysctl(name: &str, to: &Value) -> Result<(String, String), String> {
    let is_of_a_namespace = name.starts_with("net.") && !name.contains(['/', ' ']) && !name.contains("..");
    match to {
        Value::String(text) if is_of_a_namespace => Ok((name.to_owned(), text.clone())),
        Value::Number(number) if is_of_a_namespace => Ok((name.to_owned(), number.to_string())),
        _ => Err(format!("settings.sysctl.{name} = {to}: expected a setting of net and its value")),
    }
}

/// The default congestion controller of a namespace.
pub const CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// What every host of a test bed is set to besides, whatever the scenario: a sysctl, its value, why.
pub const ALWAYS: &[(&str, &str)] = &[
    // As many connections between two hosts as there are ports.
    ("net.ipv4.ip_local_port_range", "1024 65535"),
    // A port whose last connection is in TIME-WAIT is used again after a second (where hosts have timestamps), not
    // after a minute, for which 51,000 ports between two hosts would last 850 connections a second.
    ("net.ipv4.tcp_tw_reuse", "1"),
    // Listening sockets take what comes: nothing of a backlog is in the simulator.
    ("net.core.somaxconn", "65535"),
    ("net.ipv4.tcp_max_syn_backlog", "65535"),
    ("net.ipv4.tcp_syncookies", "0"),
    // Hosts have addresses without an interface having them one by one.
    ("net.ipv4.ip_nonlocal_bind", "1"),
    ("net.ipv6.ip_nonlocal_bind", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    // Hosts have both versions of IP where the kernel has, also where the machine's own interfaces do without.
    ("net.ipv6.conf.all.disable_ipv6", "0"),
    ("net.ipv6.conf.default.disable_ipv6", "0"),
    // Foreign programs may ping without privileges.
    ("net.ipv4.ping_group_range", "0 0"),
    // Nobody advertises routers or addresses here.
    ("net.ipv6.conf.all.accept_ra", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
];

/// Whether the kernel has IPv6, which can be left out of it, or off from its start (ipv6.disable=1).
pub fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

/// Writes a sysctl of the namespace of this thread and returns what it then is.
///
/// # Errors
/// Where there is none of this name, or it does not take the value.
pub fn set(name: &str, to: &str) -> io::Result<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let failed = |error: io::Error| {
        // Of some settings the kernel says ENOENT of a value that it does not know.
        let is_there = fs::metadata(&path).is_ok();
        io::Error::new(error.kind(), format!("sysctl {name} = {to}: {}", brief(&error, is_there)))
    };
    fs::write(&path, to).map_err(failed)?;
    let is = spaced(&fs::read_to_string(&path).map_err(failed)?);
    if is == spaced(to) {
        return Ok(is);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("sysctl {name} = {to}: the kernel made it {is}")))
}

/// What a sysctl of the namespace of this thread is; `None` where there is none of this name.
pub fn get(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok().map(|text| spaced(&text))
}

fn brief(error: &io::Error, is_there: bool) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if is_there => "this kernel does not have that".to_owned(),
        io::ErrorKind::NotFound => "this kernel has no such setting".to_owned(),
        io::ErrorKind::InvalidInput => "this kernel does not take the value".to_owned(),
        _ => error.to_string(),
    }
}

/// With one space between words.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The attributes of `wanted` that a route does not have, as ip-route(8) prints it.
pub fn missing_attributes(wanted: &str, printed: &str) -> Vec<String> {
    let words =
        |text: &str| text.split_whitespace().filter(|word| *word != "lock").map(str::to_owned).collect::<Vec<_>>();
    let (wanted, printed) = (words(wanted), words(printed));
    let is_there = |pair: &[String]| {
        printed
            .windows(2)
            .any(|there| there[0] == pair[0] && (there[1] == pair[1] || is_same_time(&there[1], &pair[1])))
    };
    wanted.chunks(2).filter(|pair| pair.len() < 2 || !is_there(pair)).map(|pair| pair.join(" ")).collect()
}

/// Whether two words say the same time: `1s` and `1000ms`.
fn is_same_time(one: &str, other: &str) -> bool {
    let ns = |word: &str| {
        let at = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = match &word[at..] {
            "s" => 1e9,
            "ms" => 1e6,
            "us" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        // Both are decimal: what rounding leaves over is far below a nanosecond.
        Some((word[..at].parse::<f64>().ok()? * unit).round())
    };
    matches!((ns(one), ns(other)), (Some(one), Some(other)) if one == other)
}

/// What programs print as JSON, or as text where it is none.
pub fn printed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text.trim()))
}

/// `feature: on` lines of ethtool(8).
pub fn features(text: &str) -> Value {
    let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
    let table: Map<String, Value> = lines.map(|(name, is)| (name.to_owned(), json!(is))).collect();
    Value::Object(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_refused() {
        let read = |text: &str| Settings::read(&serde_json::from_str(text).expect("JSON"));
        let settings = read(
            r#"{"sysctl": {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_rmem": "1 2 3"},
                "blocks": [{"route": "initcwnd 2", "congestion": "reno", "ecn": false}, {}], "remarks": ["no"]}"#,
        )
        .expect("they make sense");
        assert_eq!(settings.sysctl[0], ("net.ipv4.tcp_ecn".to_owned(), "1".to_owned()));
        assert_eq!((settings.blocks[0].congestion.as_str(), settings.blocks.len()), ("reno", 2));
        assert_eq!(settings.remarks, ["no"]);
        for bad in [
            r#"{"sysctl": {"kernel.core_pattern": "|x"}}"#,
            r#"{"sysctl": {"net/../kernel/x": "1"}}"#,
            r#"{"sysctl": {"net...kernel.x": "1"}}"#,
            r#"{"sysctl": {"net.ipv4.tcp_ecn": []}}"#,
            r#"{"sysctl": 3}"#,
            r#"{"blocks": [{"route": 3}]}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn attributes_are_found_as_the_kernel_prints_them() {
        let printed = "10.128.0.0/16 dev aqm0 scope link src 10.127.0.1 window 16384 rto_min lock 1s initcwnd 2 \
                       features ecn quickack 1";
        let missing = |wanted: &str| missing_attributes(wanted, printed);
        assert!(missing("window 16384 initcwnd 2 rto_min 1000ms features ecn quickack 1").is_empty());
        assert_eq!(missing("window 16385 advmss 1448"), ["window 16385", "advmss 1448"]);
        assert_eq!(missing("rto_min 200ms"), ["rto_min 200ms"]);
    }
}
