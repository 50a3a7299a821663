//! Before a process makes a test bed it binds its life to its parent's, and becomes root of a user namespace where it
//! is not root already.

use rustix::io::Errno;
use rustix::process::{Signal, getegid, geteuid, getppid, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};
use std::fs;
use std::io;

/// Makes sure that this process is killed as soon as its parent's thread that started it is gone, however that ends.
///
/// # Errors
/// Where `parent`, which is the parent as somebody knew it, is gone already.
pub fn die_with_parent(parent: Option<u32>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let is_here = |parent: u32| getppid().is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() == parent);
    // It may have ended before the line above.
    if parent.is_none_or(is_here) { Ok(()) } else { Err(io::Error::other("the process that started this one is gone")) }
}

/// Whether this process may make namespaces and interfaces.
pub fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Makes a user namespace and becomes its root, which may make network namespaces (user_namespaces(7)). The process
/// must have one thread.
///
/// # Errors
/// Where there are no user namespaces, or this user may not make one.
pub fn become_root() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare_user().map_err(|error| {
        let why = match error {
            Errno::INVAL => "the kernel has none, or this process has several threads".to_owned(),
            Errno::NOSPC | Errno::USERS => "no more of them are allowed (user.max_user_namespaces)".to_owned(),
            error => io::Error::from(error).to_string(),
        };
        let expected = "expected root, or a kernel that lets users make user namespaces";
        io::Error::new(io::Error::from(error).kind(), format!("making a user namespace: {why}; {expected}"))
    })?;
    let write = |file: &str, text: &str| {
        fs::write(file, text).map_err(|error| io::Error::new(error.kind(), format!("writing {file}: {error}")))
    };
    // Before a group may be mapped by one without privileges (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))?;
    // Some systems allow the namespace and take away what it is for (kernel.apparmor_restrict_unprivileged_userns).
    if is_privileged() {
        return Ok(());
    }
    let message = "the user namespace has no capabilities: expected root, or a system that does not restrict them";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[expect(unsafe_code, reason = "rustix cannot know which of the things left apart others rely on")]
fn unshare_user() -> Result<(), Errno> {
    // SAFETY: of this process only the user namespace is parted; memory and files are as they were.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
}
