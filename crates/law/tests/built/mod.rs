//! Shared libraries of laws in C.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a library of a source, in a place of its own.
pub fn built(source: &Path, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let words = ["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"];
    let mut cc = Command::new("cc");
    cc.args(words).arg(root.join("python/aqmlab/include")).arg("-o").arg(&library).arg(root.join(source));
    assert!(cc.status().expect("there is a C compiler").success());
    library
}

/// The same of code.
pub fn written(name: &str, code: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    std::fs::write(&source, code).expect("the folder is there");
    built(&source, name)
}
