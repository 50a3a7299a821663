//! The bottleneck may have one of the kernel's own disciplines in place of ours. It is a third witness, beside the
//! simulator and our router.
//!
//! ```text
//! left ── access, delay ── [ TUN: IP forwarding, htb and the qdisc: TUN ] ── access ── right
//! ```
//!
//! Everything but the bottleneck stays as it is. A packet that is due there is handed to the kernel ([`KernelLink`]),
//! and goes on when the kernel's shaper lets go of it. A packet that comes out is recognised by its [`signature`]. It
//! goes on with the bytes that came from its host and the ECN field that the kernel left, because the kernel has
//! counted a hop and the link has not. A [`Passage`] works out what waits, for how long, and what was lost, from what
//! goes in and comes out.
//!
//! The shaper is htb at the link's rate, with the discipline below it. It lets go of a packet when the one before has
//! been sent, just as our link takes one from its queue then. The time that sending takes comes after. So waits are
//! measured between the same two instants, on the router's clock. If the router comes late to a packet, the packet's
//! wait is longer by that.

mod forwarding;
mod link;
mod outstanding;
mod passage;
mod signature;
mod statistics;

pub use forwarding::{is_forwarded, with_hops};
pub use link::{KernelLink, KernelSpec};
pub use passage::Passage;
pub use statistics::Statistics;
