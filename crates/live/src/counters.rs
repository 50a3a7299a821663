//! This file reads the kernel's counters of a network namespace: `/proc/net/snmp`, `netstat` and `dev` (proc_net(5),
//! RFC 1213).

use crate::namespace::Namespace;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The counters of one namespace. They can be read from any thread: a file of `/proc/net` goes on counting the
/// namespace in which it was opened.
#[derive(Debug)]
pub struct Counters {
    tables: Vec<File>,
    devices: File,
}

/// What was counted at one instant, since the namespace was made: `TcpExt:TCPTimeouts` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted(BTreeMap<String, i64>);

/// What an interface counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets that came out of it for the hosts.
    pub received: u64,
    /// Packets from the hosts that were taken out of it.
    pub sent: u64,
    /// Packets from the hosts for which it had no room.
    pub send_dropped: u64,
}

impl Counters {
    /// Those of `namespace`.
    ///
    /// # Errors
    /// Where there is no `/proc`.
    pub fn of(namespace: &Namespace) -> io::Result<Self> {
        let open = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            File::open(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
        };
        namespace.within(|| Ok(Self { tables: vec![open("snmp")?, open("netstat")?], devices: open("dev")? }))
    }

    /// Reads them.
    ///
    /// # Errors
    /// Where the system does not let it.
    pub fn read(&self) -> io::Result<Counted> {
        let mut counted = Counted::default();
        for table in &self.tables {
            counted.add(&text(table)?);
        }
        Ok(counted)
    }

    /// Reads what the interface `name` counts; nothing where there is no such interface.
    ///
    /// # Errors
    /// Where the system does not let it.
    pub fn interface(&self, name: &str) -> io::Result<Interface> {
        Ok(interface(&text(&self.devices)?, name))
    }
}

impl Counted {
    /// The counter `name`; `None` if this kernel has no such.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(|&count| u64::try_from(count).ok())
    }

    /// What was counted since `earlier`; `None` where there is no such counter.
    pub fn since(&self, earlier: &Self, name: &str) -> Option<u64> {
        Some(self.get(name)?.saturating_sub(earlier.get(name).unwrap_or(0)))
    }

    /// Everything that was counted since `earlier` and is not zero.
    pub fn changes(&self, earlier: &Self) -> BTreeMap<String, i64> {
        let change = |(name, count): (&String, &i64)| (name.clone(), count - earlier.0.get(name).unwrap_or(&0));
        // Levels and limits are no counts.
        let is_count = |name: &String| {
            !["Ip:Forwarding", "Ip:DefaultTTL"].contains(&name.as_str()) && {
                !["Tcp:RtoAlgorithm", "Tcp:RtoMin", "Tcp:RtoMax", "Tcp:MaxConn", "Tcp:CurrEstab"]
                    .contains(&name.as_str())
            }
        };
        self.0.iter().map(change).filter(|(name, change)| *change != 0 && is_count(name)).collect()
    }

    /// Adds a table: lines in pairs, names and counts, each after the name of a group.
    fn add(&mut self, table: &str) {
        let mut lines = table.lines();
        while let (Some(names), Some(counts)) = (lines.next(), lines.next()) {
            let group = names.split(':').next().unwrap_or_default();
            for (name, count) in names.split_whitespace().zip(counts.split_whitespace()).skip(1) {
                if let Ok(count) = count.parse() {
                    self.0.insert(format!("{group}:{name}"), count);
                }
            }
        }
    }
}

fn interface(table: &str, name: &str) -> Interface {
    let counts = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    let counts: Vec<u64> =
        counts.unwrap_or_default().split_whitespace().map(|count| count.parse().unwrap_or(0)).collect();
    let count = |column: usize| counts.get(column).copied().unwrap_or(0);
    // Receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets errs drop ...
    Interface { received: count(1), sent: count(9), send_dropped: count(11) }
}

/// The whole of a file of `/proc`, from its beginning.
fn text(file: &File) -> io::Result<String> {
    let mut content = Vec::new();
    let mut part = [0; 4096];
    loop {
        match file.read_at(&mut part, content.len() as u64)? {
            0 => return Ok(String::from_utf8_lossy(&content).into_owned()),
            size => content.extend_from_slice(&part[..size]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_by_name() {
        let mut before = Counted::default();
        before.add("Tcp: RtoMin RetransSegs MaxConn\nTcp: 200 7 -1\nTcpExt: TCPTimeouts\nTcpExt: 3\n");
        let mut after = before.clone();
        after.add("Tcp: RtoMin RetransSegs MaxConn\nTcp: 250 9 -1\nIp: New\nIp: 4\n");
        assert_eq!(before.get("Tcp:RetransSegs"), Some(7));
        assert_eq!((before.get("Tcp:MaxConn"), before.get("Udp:InErrors")), (None, None));
        assert_eq!(after.since(&before, "Tcp:RetransSegs"), Some(2));
        assert_eq!(after.since(&before, "Ip:New"), Some(4));
        assert_eq!(after.since(&before, "Ip:Old"), None);
        let changes: Vec<_> = after.changes(&before).into_iter().collect();
        assert_eq!(changes, [("Ip:New".to_owned(), 4), ("Tcp:RetransSegs".to_owned(), 2)]);
    }

    #[test]
    fn an_interface_is_found() {
        let table = "Inter-|   Receive | Transmit\n face |bytes packets\n    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n\
                     \x20 aqm0: 100 20 0 1 0 0 0 0 300 40 0 5 0 0 0 0\n";
        assert_eq!(interface(table, "aqm0"), Interface { received: 20, sent: 40, send_dropped: 5 });
        assert_eq!(interface(table, "aqm"), Interface::default());
    }
}
