//! This file has the calls to the kernel for one socket that have no safe form elsewhere, and the errors that matter.

use base::Span;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

const SOL_SOCKET: c_int = 1;
const SO_RCVBUF: c_int = 8;
const SO_RCVBUFFORCE: c_int = 33;
const SO_MEMINFO: c_int = 55;
const IPPROTO_TCP: c_int = 6;
const TCP_WINDOW_CLAMP: c_int = 10;
const TCP_INFO: c_int = 11;
/// ioctl: when the packet that was read last came, as CLOCK_REALTIME says (socket(7)).
const SIOCGSTAMPNS: c_ulong = 0x8907;
const MSG_TRUNC: c_int = 0x20;
const MSG_DONTWAIT: c_int = 0x40;

#[expect(unsafe_code, reason = "rustix has no word for what these are used for")]
unsafe extern "C" {
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: u32) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> isize;
}

/// What the kernel waits for on behalf of these hosts.
pub struct Poll {
    epoll: OwnedFd,
}

impl Poll {
    /// Nothing yet.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed("waiting for sockets", error))?;
        Ok(Self { epoll })
    }

    /// Waits for all that happens at a connection, once each time it happens.
    pub fn connection(&self, socket: &OwnedFd, word: u64) -> io::Result<()> {
        use epoll::EventFlags as F;
        self.add(socket, word, F::IN | F::OUT | F::RDHUP | F::ET)
    }

    /// Says that `socket` can be read for as long as it can.
    pub fn readable(&self, socket: &OwnedFd, word: u64) -> io::Result<()> {
        self.add(socket, word, epoll::EventFlags::IN)
    }

    fn add(&self, socket: &OwnedFd, word: u64, flags: epoll::EventFlags) -> io::Result<()> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(word), flags)
            .map_err(|error| failed("waiting for a socket", error))
    }

    /// What happened within `span`, appended to nothing.
    pub fn wait(&self, events: &mut Vec<epoll::Event>, span: Span) -> io::Result<()> {
        let tv_sec = (span.ns() / 1_000_000_000) as i64;
        let timeout = Timespec { tv_sec, tv_nsec: (span.ns() % 1_000_000_000) as i64 };
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            // A signal: whoever waits looks at the time again.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(failed("waiting for sockets", error)),
        }
    }
}

impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// What a socket of a block has from the start, and what is accepted through it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Manner {
    /// Congestion controller, where it is another than the namespace's.
    pub congestion: Option<String>,
    /// Traffic class: the Differentiated Services codepoint, and the ECN field of datagrams in the lowest two bits.
    pub class: u8,
}

impl Manner {
    fn give(&self, socket: &OwnedFd, address: IpAddr, is_tcp: bool) -> io::Result<()> {
        if let Some(congestion) = self.congestion.as_deref().filter(|_| is_tcp) {
            sockopt::set_tcp_congestion(socket, congestion)
                .map_err(|error| failed(&format!("congestion control {congestion:?}"), error))?;
        }
        if self.class > 0 {
            match address {
                IpAddr::V4(_) => sockopt::set_ip_tos(socket, self.class),
                IpAddr::V6(_) => sockopt::set_ipv6_tclass(socket, u32::from(self.class)),
            }
            .map_err(|error| failed("traffic class of a socket", error))?;
        }
        Ok(())
    }
}

/// A socket of the host at `address`, not yet bound.
pub fn socket(address: IpAddr, kind: SocketType, manner: &Manner) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
        .map_err(|error| failed("a socket", error))?;
    // What is in TIME-WAIT keeps no port from another peer.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(|error| failed("a socket", error))?;
    if kind == SocketType::STREAM {
        // The simulator's hosts know no Nagle algorithm. What is accepted has what its listener has.
        sockopt::set_tcp_nodelay(&socket, true).map_err(|error| failed("a socket", error))?;
    }
    manner.give(&socket, address, kind == SocketType::STREAM)?;
    Ok(socket)
}

/// Listens at `port` of every address of the version of `address`.
pub fn listen(address: IpAddr, port: u16, manner: &Manner) -> io::Result<OwnedFd> {
    let any = unspecified(address, port);
    let socket = socket(address, SocketType::STREAM, manner)?;
    net::bind(&socket, &any)
        .and_then(|()| net::listen(&socket, i32::from(u16::MAX)))
        .map_err(|error| failed(&format!("listening at {any}"), error))?;
    Ok(socket)
}

/// Receives datagrams at `port` of every address of the version of `address`.
pub fn receive(address: IpAddr, port: u16) -> io::Result<OwnedFd> {
    let any = unspecified(address, port);
    let socket = socket(address, SocketType::DGRAM, &Manner::default())?;
    net::bind(&socket, &any).map_err(|error| failed(&format!("receiving at {any}"), error))?;
    Ok(socket)
}

fn unspecified(address: IpAddr, port: u16) -> SocketAddr {
    let any: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, port)
}

/// Accepts a connection; `None` if there is none after all.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, Option<SocketAddr>)>> {
    match net::acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok((socket, from)) => Ok(Some((socket, from.and_then(|from| SocketAddr::try_from(from).ok())))),
        Err(error) if is_out_of(error) => Err(failed("accepting a connection", error)),
        // It has gone again, or something else is wrong with it that is none of ours (accept(2)).
        Err(_) => Ok(None),
    }
}

/// Whether the kernel has none left of what it takes.
pub fn is_out_of(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// An error with what was tried, and what to do where the limit of files is what was met.
pub fn failed(what: &str, error: Errno) -> io::Error {
    let hint = match error {
        Errno::MFILE => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
            format!(": {limit} files are open, as many as allowed; raise it (ulimit -n), or take fewer users")
        }
        Errno::NFILE => ": raise the system's limit (sysctl fs.file-max), or take fewer users".to_owned(),
        _ => String::new(),
    };
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
}

/// How much is taken from a socket at a time.
const MOST: usize = 1 << 30;

/// Throws away what came, and says how many bytes; zero where the other end has closed and all came, or nothing did.
pub fn discard(socket: &OwnedFd) -> Result<u64, Errno> {
    // tcp(7): with MSG_TRUNC the bytes are discarded, and no buffer is written to.
    #[expect(unsafe_code, reason = "the safe form wants a buffer as large as what is discarded")]
    // SAFETY: of a TCP socket, MSG_TRUNC writes nowhere.
    let read = unsafe { recv(socket.as_raw_fd(), std::ptr::null_mut(), MOST, MSG_TRUNC | MSG_DONTWAIT) };
    match u64::try_from(read) {
        Ok(read) => Ok(read),
        Err(_) => match last_error() {
            Errno::AGAIN | Errno::INTR => Ok(0),
            error => Err(error),
        },
    }
}

/// Hands bytes to the kernel, and says how many it took. Where `more` follows, be it only that this end closes, what
/// does not fill a segment waits for that: the last segment then carries the FIN.
pub fn send(socket: &OwnedFd, bytes: &[u8], more: bool) -> Result<usize, Errno> {
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    match net::send(socket, bytes, flags) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        sent => sent,
    }
}

/// How long ago what was read last from `socket` came, by the kernel's time stamp; `None` where it has none, which it
/// says when it is asked for the first time.
pub fn age(socket: &OwnedFd) -> Option<Span> {
    let mut stamp = [0_i64; 2];
    #[expect(unsafe_code, reason = "rustix has no word for this ioctl")]
    // SAFETY: it writes a `struct timespec`, which on 64-bit machines is two words of 64 bits.
    let result = unsafe { ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, stamp.as_mut_ptr()) };
    let now = clock_gettime(ClockId::Realtime);
    // Both instants are on a clock that may be set: what lies between them is short.
    let ns = (now.tv_sec - stamp[0]) * 1_000_000_000 + (now.tv_nsec - stamp[1]);
    let age = Span::from_ns(u64::try_from(ns).ok()?);
    (result == 0 && age < Span::from_secs(1)).then_some(age)
}

/// The most that a receiver offers, bytes, of what its buffer would hold.
pub fn clamp_window(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    set(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes.min(i32::MAX.cast_unsigned()))
        .map_err(|error| failed("window of a socket", error))
}

/// Keeps the window of a receiver at `bytes`, when data has come. Before, a kernel does not know how much of its buffer
/// is data, and sets the window anew when it learns that. It does so too when it lets the buffer grow
/// (tcp_rcv_space_adjust), so the buffer is bound as well: at a size that bounds nothing else. A buffer that may not be
/// so large would itself be the bound: then it is left to grow, and the window comes down again with the next data.
pub fn hold_window(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    hold_within(socket, bytes, largest_buffer())
}

/// The same where buffers may be as large as `most`, or of any size.
fn hold_within(socket: &OwnedFd, bytes: u32, most: Option<u32>) -> io::Result<()> {
    let buffer = buffer_for(bytes);
    if most.is_none_or(|most| buffer <= most) {
        enlarge(socket, buffer)?;
    }
    clamp_window(socket, bytes)
}

/// Of a buffer, what a window of `bytes` is held by; the kernel doubles it into an int.
pub fn buffer_for(bytes: u32) -> u32 {
    bytes.saturating_mul(4).min(i32::MAX.cast_unsigned() / 2)
}

/// The largest buffer that this process may give its sockets, bytes: net.core.rmem_max, which a user namespace cannot
/// read everywhere. `None` for who has CAP_NET_ADMIN of the machine: any (socket(7)).
pub fn largest_buffer() -> Option<u32> {
    static LARGEST: OnceLock<Option<u32>> = OnceLock::new();
    *LARGEST.get_or_init(|| {
        let socket = net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
        enlarge(&socket, buffer_for(u32::MAX)).ok()?;
        let most = sockopt::socket_recv_buffer_size(&socket).ok()? / 2;
        u32::try_from(most).ok().filter(|&most| most < buffer_for(u32::MAX))
    })
}

/// As little room as there can be for what nobody reads.
pub fn shrink(socket: &OwnedFd) -> io::Result<()> {
    set(socket, SOL_SOCKET, SO_RCVBUF, 1).map_err(|error| failed("buffer of a socket", error))
}

/// As much room as there can be up to `bytes`, for what is not to be lost when it is read late.
pub fn enlarge(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    // Beyond net.core.rmem_max only who has CAP_NET_ADMIN gets it (socket(7)).
    set(socket, SOL_SOCKET, SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, SOL_SOCKET, SO_RCVBUF, bytes))
        .map_err(|error| failed("buffer of a socket", error))
}

/// How many packets came that the buffer of `socket` had no room for; zero where the kernel does not say.
pub fn dropped(socket: &OwnedFd) -> u64 {
    // sock_diag.h: SK_MEMINFO_DROPS is the last of SK_MEMINFO_VARS words.
    let mut words = [0_u32; 9];
    let mut length = size_of_val(&words) as u32;
    #[expect(unsafe_code, reason = "there is no safe form of this option")]
    // SAFETY: the kernel writes no more than `length` bytes.
    let result =
        unsafe { getsockopt(socket.as_raw_fd(), SOL_SOCKET, SO_MEMINFO, words.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 { words[8].into() } else { 0 }
}

fn set(socket: &OwnedFd, level: c_int, name: c_int, value: u32) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "there is no safe form of these options")]
    // SAFETY: the options are ints, and the kernel reads no more than that.
    let result =
        unsafe { setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size_of::<u32>() as u32) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// What is read of `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpInfo {
    /// `tcpi_state`.
    pub state: u8,
    /// `tcpi_ca_state`.
    pub congestion_state: u8,
    /// `tcpi_rto`, us.
    pub rto_us: u32,
    /// `tcpi_rtt`, us; zero before the first sample.
    pub rtt_us: u32,
    /// `tcpi_rttvar`, us.
    pub rttvar_us: u32,
    /// `tcpi_snd_ssthresh`, segments; [`TcpInfo::NO_SSTHRESH`] before the first reduction.
    pub ssthresh: u32,
    /// `tcpi_snd_cwnd`, segments.
    pub cwnd: u32,
    /// `tcpi_unacked` - `tcpi_sacked` - `tcpi_lost` + `tcpi_retrans`: tcp_packets_in_flight.
    pub in_flight: u32,
    /// `tcpi_pacing_rate`, bytes a second; all bits set without a limit.
    pub pacing_rate: u64,
    /// `tcpi_bytes_acked`.
    pub acknowledged: u64,
    /// `tcpi_total_retrans`.
    pub retransmitted: u32,
    /// `tcpi_delivered`.
    pub delivered: u32,
    /// `tcpi_delivered_ce`.
    pub delivered_ce: u32,
}

impl TcpInfo {
    /// TCP_INFINITE_SSTHRESH (net/tcp.h).
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;
    /// To the end of `tcpi_delivered_ce`.
    const SIZE: usize = 200;

    /// What the kernel says of `socket`; `None` where it says less.
    pub fn of(socket: &OwnedFd) -> Option<Self> {
        let (mut bytes, mut length) = ([0_u8; Self::SIZE], Self::SIZE as u32);
        #[expect(unsafe_code, reason = "there is no safe form of this option")]
        // SAFETY: the kernel writes no more than `length` bytes.
        let result = unsafe {
            getsockopt(socket.as_raw_fd(), IPPROTO_TCP, TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[at + k]));
        (result == 0 && length as usize == Self::SIZE).then(|| Self {
            state: bytes[0],
            congestion_state: bytes[1],
            rto_us: word(8),
            rtt_us: word(68),
            rttvar_us: word(72),
            ssthresh: word(76),
            cwnd: word(80),
            // Counters that are read one after the other: never below nothing.
            in_flight: (word(24) + word(36)).saturating_sub(word(28) + word(32)),
            pacing_rate: long(104),
            acknowledged: long(120),
            retransmitted: word(100),
            delivered: word(192),
            delivered_ce: word(196),
        })
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_tells_of_a_connection_and_discards() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let mut here = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (there, _) = listener.accept().expect("it connected");
        let (before, there) = (TcpInfo::of(&here.try_clone().expect("a file").into()).expect("told"), there.into());
        // TCP_ESTABLISHED, with an initial window and a timeout within RFC 6298's bounds.
        assert_eq!((before.state, before.retransmitted, before.ssthresh), (1, 0, TcpInfo::NO_SSTHRESH));
        assert!((1..=1000).contains(&before.cwnd) && (200_000..=3_000_000).contains(&before.rto_us), "{before:?}");
        assert_eq!(discard(&there), Ok(0), "nothing came");
        here.write_all(&[0; 70_000]).expect("it is read");
        let mut read = 0;
        while read < 70_000 {
            read += discard(&there).expect("the other end is there");
        }
        assert_eq!(read, 70_000);
        let after = TcpInfo::of(&here.into()).expect("told");
        // Of the loopback's 65,483 bytes a segment, and the SYN.
        assert!(after.delivered >= 2 && after.rtt_us > 0, "{after:?}");
    }

    #[test]
    fn what_a_buffer_has_no_room_for_is_told() {
        let lost_of = |resize: fn(&OwnedFd) -> io::Result<()>| {
            let sink = receive(std::net::Ipv4Addr::LOCALHOST.into(), 0).expect("a port is free");
            resize(&sink).expect("it may");
            let to = std::net::UdpSocket::from(sink.try_clone().expect("a file"));
            let port = to.local_addr().expect("it is bound").port();
            let from = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
            for _ in 0..100 {
                assert_eq!(from.send_to(&[0; 1000], ("127.0.0.1", port)).expect("it is sent"), 1000);
            }
            dropped(&sink)
        };
        // Of a kilobyte each, in a buffer of some two; in one of a megabyte, or of the usual limit of 2 x 208 KiB.
        assert!(lost_of(shrink) >= 90);
        assert_eq!(lost_of(|sink| enlarge(sink, 1 << 20)), 0);
    }

    #[test]
    fn a_window_is_held_by_a_buffer_that_may_be_so_large_or_by_its_clamp_alone() {
        let held = |bytes: u32, most: Option<u32>| {
            let socket = socket(std::net::Ipv4Addr::LOCALHOST.into(), SocketType::STREAM, &Manner::default());
            let socket = socket.expect("there is TCP");
            let buffer = || sockopt::socket_recv_buffer_size(&socket).expect("it has one");
            let usual = buffer();
            hold_within(&socket, bytes, most).expect("it may");
            (clamp_of(&socket), usual, buffer())
        };
        // Linux's net.core.rmem_max by default.
        let rmem_max = Some(212_992);
        let (clamp, _, buffer) = held(16 << 10, rmem_max);
        assert_eq!((clamp, buffer), (16 << 10, 2 * (64 << 10)));
        let (clamp, usual, buffer) = held(1 << 20, rmem_max);
        assert_eq!((clamp, buffer), (1 << 20, usual), "it grows by itself");
        // What is no positive int when it is doubled and doubled again would leave next to nothing.
        for bytes in [(1 << 29) - 1, 1 << 29, 1 << 30, u32::MAX] {
            let (clamp, usual, buffer) = held(bytes, None);
            assert!(buffer >= usual && clamp >= (1 << 29) - 1, "{bytes}: {clamp} {buffer}");
        }
    }

    fn clamp_of(socket: &OwnedFd) -> u32 {
        let (mut clamp, mut length) = (0_u32, 4);
        #[expect(unsafe_code, reason = "there is no safe form of this option")]
        // SAFETY: the kernel writes no more than four bytes.
        let result = unsafe {
            getsockopt(socket.as_raw_fd(), IPPROTO_TCP, TCP_WINDOW_CLAMP, (&raw mut clamp).cast(), &raw mut length)
        };
        assert_eq!(result, 0);
        clamp
    }

    #[test]
    fn too_many_files_are_told_with_what_to_do() {
        let message = failed("a socket", Errno::MFILE).to_string();
        assert!(message.starts_with("a socket: ") && message.ends_with("or take fewer users"), "{message}");
    }
}
