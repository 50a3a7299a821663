//! `aqmlab_law.h`, the header for whoever writes a law or a discipline in C or C++, made from
//! `crates/law/src/abi.rs` by cbindgen.

use crate::docs::Page;
use crate::tree;
use cbindgen::{Builder, Config, Language, Style};

/// Where it lies: in the package, so that whoever has aqmlab has it.
const PATH: &str = "python/aqmlab/include/aqmlab_law.h";

/// What things of the interface are called in C.
const NAMES: &[(&str, &str)] = &[
    ("Facts", "aqmlab_facts"),
    ("Kind", "aqmlab_kind"),
    ("Param", "aqmlab_param"),
    ("Gauge", "aqmlab_gauge"),
    ("Cause", "aqmlab_cause"),
    ("Call", "aqmlab_call"),
    ("Law", "aqmlab_law"),
    ("Queue", "aqmlab_queue"),
    ("QueueCall", "aqmlab_queue_call"),
    ("Discipline", "aqmlab_discipline"),
    ("VERSION", "AQMLAB_LAW_VERSION"),
    ("PASS", "AQMLAB_PASS"),
    ("DROP", "AQMLAB_DROP"),
    ("MARK", "AQMLAB_MARK"),
    ("SIGNAL", "AQMLAB_SIGNAL"),
    ("EARLY", "AQMLAB_EARLY"),
    ("FORCED", "AQMLAB_FORCED"),
    ("OVERLOAD", "AQMLAB_OVERLOAD"),
    ("TAIL", "AQMLAB_TAIL"),
    ("OWN", "AQMLAB_OWN"),
    ("FAILED", "AQMLAB_FAILED"),
    ("LATER", "AQMLAB_LATER"),
];

/// What stands at its end: the one function that a library has to export.
const EXPORT: &str = "
#ifdef __cplusplus
extern \"C\"
#endif
/** What the shared library of a law exports: the law, which lives as long as the library. */
const struct aqmlab_law *aqmlab_law_table(void);

#ifdef __cplusplus
extern \"C\"
#endif
/** What the shared library of a discipline exports in its place. */
const struct aqmlab_discipline *aqmlab_discipline_table(void);";

/// The header as it should be.
///
/// # Errors
/// The interface cannot be read.
pub fn page() -> Result<Page, String> {
    let source = tree::root().join("crates/law/src/abi.rs");
    let opening = std::fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    let said = opening.lines().map_while(|line| line.strip_prefix("//!")).map(|line| format!(" *{line}"));
    let mut config = Config {
        language: Language::C,
        style: Style::Both,
        include_guard: Some("AQMLAB_LAW_H".into()),
        header: Some(format!("/*\n{}\n */", said.collect::<Vec<_>>().join("\n"))),
        trailer: Some(EXPORT.trim_start().into()),
        cpp_compat: true,
        no_includes: true,
        sys_includes: vec!["stdint.h".into()],
        line_length: 120,
        ..Config::default()
    };
    config.enumeration.prefix_with_name = true;
    config.enumeration.rename_variants = cbindgen::RenameRule::ScreamingSnakeCase;
    config.export.rename = NAMES.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    config.export.include = ["Law", "Kind", "Discipline"].map(str::to_owned).into();
    let bindings = Builder::new().with_src(&source).with_config(config).generate();
    let mut text = Vec::new();
    bindings.map_err(|error| format!("{}: {error}", source.display()))?.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    Ok(Page { path: tree::root().join(PATH), text })
}
