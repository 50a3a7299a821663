//! This crate brings laws in from outside. It has the binary interface that they are written to, in any language, and
//! makes them disciplines of the registry.
//!
//! | file | what it is |
//! |---|---|
//! | `abi` | The interface, of which the C header `aqmlab_law.h` is made. |
//! | `causes` | Why packets are lost and marked: kinds of causes, and causes of a law's own. |
//! | `foreign` | All that is unsafe: tables of functions, libraries, states. |
//! | `check` | The trial of a new law. |
//! | `entry` | A law of the interface as a row of the registry, and as an [`aqm::Law`]. |
//! | `holding` | A discipline of the interface, which holds packets. |
//! | `steered` | A law whose decisions somebody outside makes, a step at a time: an agent that learns, or a policy. |

pub mod abi;
mod causes;
pub mod check;
pub mod entry;
mod foreign;
mod holding;
pub mod steered;

pub use entry::{at, discipline_at, open};
