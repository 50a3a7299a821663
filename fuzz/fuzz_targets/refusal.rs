//! What every reader owes to whoever gave it something wrong.

/// One line, of a length that can be read, which moves no cursor.
pub fn check(said: &str) {
    assert!(!said.is_empty() && said.chars().count() <= 1500, "{said}");
    assert!(!said.contains(|c: char| c.is_control()), "{said:?}");
}
