//! Chores of the repository: the generated parts of `docs/`, and what the tests that keep the house tidy need.

pub mod docs;
mod header;
pub mod markdown;
pub mod tree;
