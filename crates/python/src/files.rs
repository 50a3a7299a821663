//! This file reads the files that a scenario names, if they are regular ones of a bounded size.

use scenario::bounds::MOST_KEPT;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A reader of files that lie beside `origin`. It leaves out the mark of encoding with which some files begin.
pub fn beside(origin: &str) -> impl Fn(&str) -> Result<String, String> {
    let folder = Path::new(origin).parent().map(Path::to_path_buf).unwrap_or_default();
    move |name| read(folder.join(name))
}

fn read(path: PathBuf) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    // Pipes and devices may have no end, or may block whoever opens them.
    if !std::fs::metadata(&path).map_err(failed)?.is_file() {
        return Err("it is no regular file".into());
    }
    let mut text = String::new();
    let most = MOST_KEPT as u64;
    File::open(path).map_err(failed)?.take(most + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() > MOST_KEPT {
        return Err(format!("it is longer than {most} bytes"));
    }
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}
