//! Drop-tail: no law at all. Packets are lost only when the queue is full.

use super::Law;

/// The law that lets everything pass; [`Fifo`](crate::qdisc::fifo::Fifo) around it is `pfifo` or `bfifo`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass;

impl Law for Pass {}
