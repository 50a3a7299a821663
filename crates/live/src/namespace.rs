//! A network namespace lasts as long as a process holds it.
//!
//! A file descriptor holds the namespace, not a name. It goes, with every interface in it, when the last process that
//! holds or inhabits it ends, however that happens. So nothing has to be removed.

use crate::tun::Tun;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::io;

/// A network namespace (network_namespaces(7)).
#[derive(Debug)]
pub struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// A new namespace, without any interface that is up.
    ///
    /// # Errors
    /// Without the right to make one: CAP_SYS_ADMIN, in a user namespace of one's own where there are such.
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            leave()?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            Ok(Self { file: rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty())? })
        })
    }

    /// Does `work` on a thread within: sockets that it opens and programs that it starts are of this namespace.
    ///
    /// # Errors
    /// Without the right to enter; otherwise those of `work`.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }

    /// The path by which other programs can enter it while this process lives: `nsenter --net=PATH`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Moves this thread into the namespace, for good.
    ///
    /// # Errors
    /// Without the right to enter.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Opens the TUN device `name` of this namespace ([`Tun::open`]).
    ///
    /// # Errors
    /// Those of [`Namespace::within`] and [`Tun::open`].
    pub fn tun(&self, name: &str) -> io::Result<Tun> {
        self.within(|| Tun::open(name))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Does `work` on a new thread. Namespaces belong to threads, so that work in another one needs a thread that then
/// ends.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

#[expect(unsafe_code, reason = "rustix cannot know which of the things left apart others rely on")]
fn leave() -> io::Result<()> {
    // SAFETY: of this thread only the network namespace is parted from the others'; memory and files stay shared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| {
        let error = io::Error::from(error);
        let expected = "expected root, or root within a user namespace";
        io::Error::new(error.kind(), format!("making a network namespace: {error}; {expected}"))
    })
}
