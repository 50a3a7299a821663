//! This file finds and reads the files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what was built or cached, wherever they are.
const BUILT: &[&str] = &["target", "__pycache__", "proptest-regressions"];
/// Folders of the root that hold what was built or measured.
const MADE: &[&str] = &["results", "dist"];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/").to_path_buf()
}

/// Every file of the repository, relative to its root, sorted; nothing that was built.
pub fn files() -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    collect(&root, &mut found);
    let mut files: Vec<PathBuf> =
        found.iter().map(|path| path.strip_prefix(&root).expect("found below the root").to_path_buf()).collect();
    files.sort();
    files
}

/// The files with one of these endings.
pub fn files_ending(endings: &[&str]) -> Vec<PathBuf> {
    let ends = |path: &PathBuf| path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e));
    files().into_iter().filter(ends).collect()
}

/// The text of a file, named relative to the root.
pub fn text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_hidden = name.starts_with('.') && !matches!(name, ".ci" | ".gitignore");
        // What a link leads to is found where it lies.
        let is_made = BUILT.contains(&name) || (MADE.contains(&name) && folder == root());
        if is_hidden || is_made || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}
