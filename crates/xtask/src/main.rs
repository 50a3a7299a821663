//! Chores of the repository, called by the Makefile.
//!
//! `xtask docs` writes the generated parts of `docs/` and the header of laws anew; `xtask docs --check` only says which
//! are out of date.

use std::process::ExitCode;
use xtask::docs;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_check = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["docs"] => false,
        ["docs", "--check"] => true,
        _ => {
            eprintln!("xtask: expected docs or docs --check");
            return ExitCode::from(2);
        }
    };
    match docs::outdated() {
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
        Ok(pages) if is_check => {
            for page in &pages {
                eprintln!("{}: its generated parts are out of date; make docs writes them", page.path.display());
            }
            if pages.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(pages) => {
            for page in &pages {
                if let Err(error) = std::fs::write(&page.path, &page.text) {
                    eprintln!("{}: {error}", page.path.display());
                    return ExitCode::from(3);
                }
                eprintln!("{}", page.path.display());
            }
            ExitCode::SUCCESS
        }
    }
}
