//! A TUN device is a network interface whose other end is a file (Linux, Documentation/networking/tuntap.rst).
//!
//! Packets come without Ethernet header and without offloads, so that what is read is what would be on the link: the
//! kernel has cut large segments and filled in checksums before. A read or a write is one packet; none waits.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, Updater, opcode};
use std::ffi::c_int;
use std::io;

/// The file end of an interface. The interface is there for as long as this is.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
}

/// `struct ifreq` of netdevice(7).
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: i16,
    rest: [u8; 22],
}

/// IFNAMSIZ, the zero at the end included.
const NAME: usize = 16;
/// IFF_TUN | IFF_NO_PI.
const FLAGS: i16 = 0x0001 | 0x1000;
/// TUNSETIFF: _IOW('T', 202, int).
const SET_INTERFACE: ioctl::Opcode = opcode::write::<c_int>(b'T', 202);

impl Tun {
    /// Makes the interface `name` in the network namespace of this thread, or takes it over where it is there and
    /// nobody has it.
    ///
    /// # Errors
    /// In one line: there is no TUN driver, no permission, or the interface is another's.
    pub fn open(name: &str) -> io::Result<Self> {
        let failed = |what: &str, error: Errno| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("interface {name}: {what}: {error}"))
        };
        if name.is_empty() || name.len() >= NAME || name.bytes().any(|byte| byte == b'/' || byte <= b' ') {
            let expected = format!("interface {name:?}: expected a name of 1 to {} characters", NAME - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, expected));
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|error| failed("opening /dev/net/tun, the kernel's TUN driver", error))?;
        let mut request = Request { name: [0; NAME], flags: FLAGS, rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        attach(&file, request).map_err(|error| failed("making it a TUN device", error))?;
        Ok(Self { file, name: name.to_owned() })
    }

    /// A device that was opened elsewhere: non-blocking, without packet information and without offloads.
    pub fn from_fd(file: OwnedFd, name: &str) -> Self {
        Self { file, name: name.to_owned() }
    }

    /// The same device, known by another descriptor.
    ///
    /// # Errors
    /// Where there are no more descriptors.
    pub fn duplicate(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, name: self.name.clone() })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a packet into `buffer` and returns its size, cut to the buffer's; `None` if there is none now.
    ///
    /// # Errors
    /// Where the device has gone.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, buffer) {
            Ok(size) => Ok(Some(size)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(self.gone(error)),
        }
    }

    /// Hands a packet to the hosts. Says whether they took it: an interface that is down, or a kernel without memory,
    /// takes none.
    ///
    /// # Errors
    /// Where the device has gone.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        loop {
            match rustix::io::write(&self.file, packet) {
                Ok(size) => return Ok(size == packet.len()),
                Err(Errno::INTR) => {}
                // EINVAL: what the kernel does not take for a packet.
                Err(Errno::AGAIN | Errno::IO | Errno::NOBUFS | Errno::NOMEM | Errno::INVAL) => return Ok(false),
                Err(error) => return Err(self.gone(error)),
            }
        }
    }

    fn gone(&self, error: Errno) -> io::Error {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("interface {}: the TUN device has gone: {error}", self.name))
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[expect(unsafe_code, reason = "rustix has no word for this ioctl")]
fn attach(file: &OwnedFd, mut request: Request) -> Result<(), Errno> {
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `Request` is and which outlives the call.
    unsafe { ioctl::ioctl(file, Updater::<SET_INTERFACE, Request>::new(&mut request)) }
}
