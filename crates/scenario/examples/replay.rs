//! Runs traces through the disciplines: one JSON object a line on standard input, one a line on standard output.
//!
//! `python -m oracle.conformance compare` talks to it; the protocol is in `tests/python/oracle/README.md`.

use std::io::{self, BufRead, BufWriter, Write};

#[path = "../tests/replay/mod.rs"]
mod replay;

fn main() -> io::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        writeln!(output, "{}", replay::reply(&request))?;
    }
    output.flush()
}
