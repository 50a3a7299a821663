//! These bounds say how much is read at most, so that reading takes bounded time and memory, whatever a file holds. The
//! guide has the table.

/// The most bytes of a scenario's text, a stack profile's or a table's. A text of this size that is all tables takes
/// about 1 GB while it is read.
pub const MOST_TEXT: usize = 4 << 20;
/// Bytes of a trace, of connection vectors or of recorded demands.
pub const MOST_KEPT: usize = 1 << 30;
/// Points of an empirical distribution, which are copied into the resolved scenario.
pub const MOST_POINTS: usize = 50_000;
/// Blocks of `[[traffic]]`.
pub const MOST_BLOCKS: usize = 1000;
/// Profiles of `[stacks]`.
pub const MOST_STACKS: usize = 100;
/// Links.
pub const MOST_LINKS: usize = 256;
/// Directions of links that are captured, each of which has a file.
pub const MOST_CAPTURES: usize = 32;
/// Entries of a link's schedule.
pub const MOST_CHANGES: usize = 50_000;
/// Tables and lists within each other, and parts of a dotted key.
pub const DEEPEST: usize = 40;
