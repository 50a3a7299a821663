//! This file finds from its tokens how deep a text nests. Readers go one call deeper for each table or list within
//! another, so that a text that is too deep for them has to be found before.

use crate::bounds::DEEPEST;
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// The place in `text` from which on tables and lists lie too deep, be they brackets or parts of a dotted key. Text
/// that is no TOML may count as deeper than it is.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    // Dots of the current key, and of the keys that led to each open bracket.
    let (mut dots, mut around) = (0, Vec::new());
    // All dots of `around`.
    let mut above = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
                around.push(dots);
                above += dots;
                dots = 0;
            }
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                dots = around.pop().unwrap_or(0);
                above -= dots;
            }
            TokenKind::Comma | TokenKind::Newline => dots = 0,
            _ => {}
        }
        if dots + above + around.len() > DEEPEST {
            return Some(token.span().start());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_dots_count_together() {
        let deep = |text: &str| too_deep(text).is_some();
        for text in [
            "x = [[1.5, 2.5], [3.5]]\n".repeat(100),
            "a.b.c = { d.e = [{ f = 1 }] }\n".repeat(100),
            "[a.b]\n[[a.c]]\n".repeat(100),
            format!("x = \"{}\" # {}", "[.".repeat(100), "{.".repeat(100)),
            format!("x = [{}]", "1.5,".repeat(100)),
            format!("x = {}1{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST)),
        ] {
            assert!(!deep(&text), "{text}");
        }
        for text in [
            format!("{}a = 1", "a.".repeat(DEEPEST + 1)),
            format!("x = {}", "[".repeat(DEEPEST + 1)),
            format!("x = {}", "{ a.b = ".repeat(DEEPEST / 2 + 1)),
            "]".repeat(10) + &"[".repeat(DEEPEST + 1),
        ] {
            assert!(deep(&text), "{text}");
        }
    }
}
