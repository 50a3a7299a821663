//! A discipline of the kernel's own in place of ours: a third witness, beside the simulator and our router.
//!
//! ```text
//! left ── access, delay ── [ TUN: IP forwarding, htb and the qdisc: TUN ] ── access ── right
//! ```
//!
//! All but the bottleneck stays what it is: a packet that is due there is handed to the kernel ([`KernelLink`]), and
//! goes on when the kernel's shaper lets go of it. What comes out is told again by its [`signature`] and continues with
//! the bytes that came from its host, but for the ECN field: the kernel has counted a hop, the link has not. A
//! [`Passage`] works out of what goes in and comes out what waits, how long, and what was lost.
//!
//! The shaper is htb at the link's rate, with the discipline below it. It lets go of a packet when the one before has
//! been sent, as our link takes one from its queue; the time that sending takes comes after. So waits are measured
//! between the same two instants, on the router's clock. Where that comes late to a packet, its wait is longer by it.

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
