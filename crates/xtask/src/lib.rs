//! This crate does chores of the repository: it generates parts of `docs/`, and has what the tidiness tests need.

pub mod docs;
mod header;
pub mod markdown;
pub mod tree;
