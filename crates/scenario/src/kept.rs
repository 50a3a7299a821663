//! This file reads files that a scenario names and that are too large to be copied into its text: traces, connection
//! vectors, recorded demands.
//!
//! ```toml
//! vectors = "campus.cvec"                                       # as people write it
//! vectors = { file = "campus.cvec", sha256 = "9f86d081..." }    # as the resolved scenario has it
//! ```
//!
//! A resolved scenario states the content of the file by its SHA-256, and does not resolve with other content. The
//! content is part of the scenario's digest. The file's name is not, nor is the scenario's own. Whoever keeps results
//! keeps these files beside the resolved scenario ([`Resolved::files`](crate::Resolved::files)).

use crate::bounds::MOST_KEPT;
use crate::document::Data;
use crate::error::{Error, shortened};
use crate::section::Entry;
use crate::written::Written;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A file that a scenario names, and what is in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeptFile {
    /// Its name, as the scenario has it.
    pub file: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// A file that has been read.
pub(crate) struct ReadFile {
    pub kept: KeptFile,
    pub text: String,
    /// Key of the scenario that names it, for errors.
    key: String,
}

/// Reads the file that `entry` names. `what` says for errors what such a file has, as in "connection vectors".
pub(crate) fn read(entry: &Entry<'_>, what: &str) -> Result<ReadFile, Error> {
    let expected = format!("the name of a file of {what}");
    let (file, sha256) = match entry.data() {
        Data::Text(file) => (file.clone(), None),
        Data::Table(_) => {
            let section = entry.section(&expected)?;
            section.only(&[&["file", "sha256"]])?;
            let file = section.require("file", &expected, |entry| entry.text().map(str::to_owned))?;
            (file, section.get("sha256"))
        }
        _ => return Err(entry.expected(expected)),
    };
    let text = (entry.context.files)(&file).map_err(|reason| entry.error(format!("cannot be read: {reason}")))?;
    if text.len() > MOST_KEPT {
        return Err(entry.error(format!("{} bytes long, expected at most {MOST_KEPT}", text.len())));
    }
    let found = hexadecimal(&text);
    if let Some(stated) = sha256
        && stated.text()? != found
    {
        return Err(stated.error(format!("{file} has other content than it had: expected sha256 = \"{found}\"")));
    }
    Ok(ReadFile { kept: KeptFile { file, sha256: found }, text, key: entry.key.clone() })
}

/// Reads the file or the list of files that `entry` names.
pub(crate) fn read_all(entry: &Entry<'_>, what: &str) -> Result<Vec<ReadFile>, Error> {
    let Data::List(list) = entry.data() else { return Ok(vec![read(entry, what)?]) };
    if list.is_empty() {
        return Err(entry.expected(format!("the name of a file of {what}, or a list of them")));
    }
    entry.list(what)?.iter().map(|entry| read(entry, what)).collect()
}

/// Writes the name and digest of one file, so that [`read`] takes it and no other.
pub(crate) fn write(file: &ReadFile) -> Written {
    Written::File(file.kept.clone())
}

/// Writes the names and digests of files, so that [`read_all`] takes these and no others.
pub(crate) fn write_all(files: &[ReadFile]) -> Written {
    match files {
        [file] => write(file),
        files => Written::List(files.iter().map(write).collect()),
    }
}

impl ReadFile {
    /// The error that something is wrong with a line of the file, counted from 1.
    pub fn error(&self, line: usize, problem: String) -> Error {
        let content = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
        Error {
            place: format!("{}:{line}", self.kept.file),
            key: self.key.clone(),
            value: (!content.is_empty()).then(|| shortened(content)),
            problem,
        }
    }
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn hexadecimal(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
