//! How much is read at most: whatever a file holds, reading it takes bounded time and memory. The guide has the table.

/// Bytes of a scenario's text, of a stack profile's and of a table's: a text of this size that is all tables takes
/// about 1 GB while it is read.
pub const MOST_TEXT: usize = 4 << 20;
/// Bytes of a trace, of connection vectors or of recorded demands.
pub const MOST_KEPT: usize = 1 << 30;
/// Points of an empirical distribution: they are copied into the resolved scenario.
pub const MOST_POINTS: usize = 50_000;
/// Blocks of `[[traffic]]`.
pub const MOST_BLOCKS: usize = 1000;
/// Profiles of `[stacks]`.
pub const MOST_STACKS: usize = 100;
/// Links.
pub const MOST_LINKS: usize = 256;
/// Directions of links that are captured: each has a file.
pub const MOST_CAPTURES: usize = 32;
/// Entries of a link's schedule.
pub const MOST_CHANGES: usize = 50_000;
/// Tables and lists within each other, and parts of a dotted key.
pub const DEEPEST: usize = 40;
