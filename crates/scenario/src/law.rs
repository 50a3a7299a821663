//! A scenario may name the file of a law, as a discipline that is not built in.
//!
//! ```toml
//! qdisc = "./my_law.py"                                          # as people write it
//! qdisc = { kind = "fq_my_law", law = "./my_law.py" }            # the law on each queue of a fair-queueing scheduler
//! law = { file = "my_law.py", sha256 = "9f86d081..." }           # as the resolved scenario has it, beside the kind
//! ```
//!
//! Nothing is loaded here. Whoever resolves the scenario has to bring the law into the registry before.

use crate::error::Error;
use crate::kept::KeptFile;
use crate::section::{Entry, Section};
use aqm::registry::Entry as Registered;
use std::path::Path;

/// The key that names the file of a law.
pub(crate) const KEY: &str = "law";

/// The endings of files of laws: code of Python, shared libraries, and policies that an agent has learnt.
const ENDINGS: [&str; 3] = [".py", ".so", ".onnx"];

const FILE: &str = "the file of a law, such as \"./my_law.py\", \"./my_law.so\" or \"./policy.onnx\"";

/// Reads the law whose file the discipline in `section` names, if it names any.
pub(crate) fn read<'a>(section: &Section<'a>) -> Result<Option<(&'a Registered, KeptFile)>, Error> {
    let kind = section.get("kind");
    let is_file = |entry: &Entry<'_>| entry.text().is_ok_and(|name| ENDINGS.iter().any(|end| name.ends_with(end)));
    let (entry, name) = match (section.get(KEY), kind) {
        (Some(law), None) => (law, None),
        (Some(_), Some(kind)) if is_file(&kind) => return Err(kind.expected("the law's name, or fq_ before it")),
        (Some(law), Some(kind)) => (law, Some(kind)),
        (None, Some(kind)) if is_file(&kind) => (kind, None),
        _ => return Ok(None),
    };
    let (file, sha256) = match entry.text() {
        Ok(file) => (file.to_owned(), None),
        Err(_) => {
            let table = entry.section(FILE)?;
            table.only(&[&["file", "sha256"]])?;
            let file = table.require("file", FILE, |entry| entry.text().map(str::to_owned))?;
            (file, Some(table.require("sha256", "the digest of the file", |entry| entry.text().map(str::to_owned))?))
        }
    };
    let registry = section.registry();
    let folder = Path::new(entry.context.origin).parent().unwrap_or(Path::new(""));
    let found = match &sha256 {
        Some(sha256) => registry.of_content(sha256),
        None => registry.of_file(&folder.join(&file)),
    };
    let (sha256, forms) = found.ok_or_else(|| {
        entry.error("names code, which is not run unasked: expected --allow-code, or its name on the command line")
    })?;
    let named = |name: &str| forms.into_iter().flatten().find(|form| form.row().name == name);
    let found = match &name {
        None => forms[0],
        Some(kind) => named(kind.text()?),
    };
    let found = found.ok_or_else(|| {
        let names: Vec<&str> = forms.into_iter().flatten().map(|form| &*form.row().name).collect();
        name.expect("without a name it is the law itself").expected(format!("{}, of {file}", names.join(" or ")))
    })?;
    Ok(Some((found, KeptFile { file, sha256: sha256.to_owned() })))
}
