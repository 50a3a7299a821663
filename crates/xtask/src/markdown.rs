//! As much of Markdown as the pages here use: generated sections, tables, headings, links.

use std::ops::Range;

/// The part of `page` between `<!-- generated: NAME -->` and the next `<!-- end -->`, line breaks included.
pub fn generated(page: &str, name: &str) -> Option<Range<usize>> {
    let open = format!("<!-- generated: {name} -->\n");
    let start = page.find(&open)? + open.len();
    let end = start + page[start..].find("<!-- end -->")?;
    Some(start..end)
}

/// A table row of these cells.
pub fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The line below the heads of `count` columns.
pub fn rule(count: usize) -> String {
    format!("|{}\n", "---|".repeat(count))
}

/// The cells of every table row below the heading `title`, up to the next heading; heads and rules left out.
pub fn rows_below(page: &str, title: &str) -> Vec<Vec<String>> {
    let mut is_below = false;
    let mut rows = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(found) = heading(line) {
            is_below = found == title;
        }
        let is_rule = |line: &str| line.starts_with("|--") || line.starts_with("| --");
        if !is_below || !line.starts_with('|') || is_rule(line) || lines.peek().is_some_and(|next| is_rule(next)) {
            continue;
        }
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        rows.push(inner.split(" | ").map(|cell| cell.trim().replace("\\|", "|")).collect());
    }
    rows
}

/// The text of a heading line, without its marks of code.
pub fn heading(line: &str) -> Option<String> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim().replace('`', ""))
}

/// The headings of a page as the anchors that links name.
pub fn anchors(page: &str) -> Vec<String> {
    let headings = outside_code(page).filter_map(|(_, line)| heading(line));
    let anchor = |title: String| {
        let lower = title.to_lowercase();
        let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The targets of links and pictures, with their lines.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in outside_code(page) {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(end) = rest.find(')') {
                found.push((number, rest[..end].split(' ').next().unwrap_or_default().to_owned()));
            }
        }
        for attribute in ["src=\"", "href=\"", "srcset=\""] {
            for (at, _) in line.match_indices(attribute) {
                let target = &line[at + attribute.len()..];
                found.push((number, target[..target.find('"').unwrap_or(target.len())].to_owned()));
            }
        }
    }
    found
}

/// The lines outside blocks of code, numbered from 1.
fn outside_code(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    page.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A `b` c, d
[x](y.md#z) ![p](q.png \"title\")
```
# no
[no](no)
```
## T
| k | v |
|---|---|
| 1 | a\\|b |
## U
| 3 | 4 |
";

    #[test]
    fn what_pages_hold() {
        assert_eq!(anchors(PAGE), ["a-b-c-d", "t", "u"]);
        assert_eq!(links(PAGE), [(2, "y.md#z".to_owned()), (2, "q.png".to_owned())]);
        assert_eq!(rows_below(PAGE, "T"), [["1", "a|b"]]);
        assert_eq!(generated("x\n<!-- generated: n -->\nold\n<!-- end -->\n", "n"), Some(24..28));
    }
}
