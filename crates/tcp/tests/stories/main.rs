//! Stories of connections, packet by packet. The expected instants follow from the RFC named in each test and from
//! the bench: 50 ms each way, so that everything happens at multiples of a round trip of 100 ms and of the timers.

#[path = "../common/mod.rs"]
mod common;

mod acknowledging;
mod closing;
mod counting;
mod dctcp;
mod delaying;
mod echoing;
mod ecn;
mod losing_each;
mod newreno;
mod ns2_marks;
mod one_way;
mod opening;
mod probing;
mod recovering;
mod sack1;
mod sending;
mod timing;
mod told;
mod undoing;
mod windows;
