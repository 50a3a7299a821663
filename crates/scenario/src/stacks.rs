//! A scenario may have stack profiles of its own: `[stacks.NAME]`, each a base and what differs from it.
//!
//! `stack = "mine.toml"` names a file with the same keys. It is copied in as `[stacks.mine]` before anything is read,
//! so that the resolved scenario needs no file.

use crate::bounds::MOST_STACKS;
use crate::document::{self, Data, Node, Place};
use crate::error::Error;
use crate::hosts::{self, Hosts, STACK};
use crate::section::{Context, Entry, Section};
use crate::written::{Fields, Written};
use std::collections::BTreeMap;

/// The table of profiles in a scenario.
pub(crate) const STACKS: &str = "stacks";
/// The key of a profile that names what it starts from; its other keys are those of `[tcp]` but for `stack`.
const BASE: &str = "base";
const ENDING: &str = ".toml";

/// The profiles of a scenario, checked.
pub(crate) struct Stacks<'a>(Vec<Stack<'a>>);

struct Stack<'a> {
    name: &'a str,
    /// Its own keys.
    section: Section<'a>,
    /// The profile that it names.
    base: &'a str,
}

impl<'a> Stacks<'a> {
    /// Reads `[stacks]`.
    pub fn read(section: &Section<'a>) -> Result<Self, Error> {
        let mut stacks = vec![];
        if let Some(name) = section.names().nth(MOST_STACKS) {
            let entry = section.get(name).expect("names are those that are given");
            return Err(entry.error(format!("expected at most {MOST_STACKS} profiles")));
        }
        for name in section.names() {
            let entry = section.get(name).expect("names are those that are given");
            if tcp::profile(name).is_some() {
                return Err(entry.expected(format!("another name: {name} is built in")));
            }
            if !is_bare(name) {
                return Err(entry.expected("a name of letters, digits, - and _"));
            }
            let section = entry.section("a table with a base")?;
            let known = own_keys();
            hosts::refuse_former(&section)?;
            section.only(&[&known])?;
            let expected = format!("one of {}", built_in().join(", "));
            let base = section.require(BASE, &expected, |entry| match entry.data() {
                Data::Text(text) => Ok(text.as_str()),
                _ => Err(entry.expected(&expected)),
            })?;
            stacks.push(Stack { name, section, base });
        }
        let stacks = Self(stacks);
        for stack in &stacks.0 {
            stacks.complete(stack, &[])?;
        }
        Ok(stacks)
    }

    /// The hosts of the profile that `entry` names, changed by what the sections say. An earlier section wins over a
    /// later one.
    pub fn hosts(&self, entry: &Entry<'_>, given: &[&Section<'_>]) -> Result<Hosts, Error> {
        let name = self.known(entry)?;
        match self.0.iter().find(|stack| stack.name == name) {
            Some(stack) => self.complete(stack, given),
            None => hosts::complete(name, hosts::profile(name).expect("the name is known"), given),
        }
    }

    /// Every profile with its base and every key; `None` where there is no profile.
    pub fn write(&self) -> Result<Option<Written>, Error> {
        let write = |stack: &Stack<'_>| -> Result<(String, Fields), Error> {
            let base = (BASE, Written::Text(stack.base.to_owned()));
            let config = self.complete(stack, &[])?.config;
            Ok((stack.name.to_owned(), std::iter::once(base).chain(hosts::write_config(&config)).collect()))
        };
        let named = self.0.iter().map(write).collect::<Result<Vec<_>, Error>>()?;
        Ok((!named.is_empty()).then_some(Written::Named(named)))
    }

    /// The hosts of a profile, with `given` and the profile itself above all its bases.
    fn complete(&self, stack: &Stack<'a>, given: &[&Section<'_>]) -> Result<Hosts, Error> {
        let mut layers = given.to_vec();
        let mut last = stack;
        loop {
            layers.push(&last.section);
            if let Some(config) = hosts::profile(last.base) {
                return hosts::complete(stack.name, config, &layers);
            }
            let entry = last.section.get(BASE).expect("a profile has a base");
            let base = self.known(&entry)?;
            last = self.0.iter().find(|other| other.name == base).expect("it is not built in");
            // If there are more bases than profiles, they go round.
            if layers.len() - given.len() > self.0.len() {
                return Err(entry.expected(format!("a base that leads to one of {}", built_in().join(", "))));
            }
        }
    }

    /// The name of a profile, built in or of the scenario.
    fn known<'e>(&self, entry: &Entry<'e>) -> Result<&'e str, Error> {
        let word = if let Data::Text(text) = entry.data() { text.as_str() } else { "" };
        let names: Vec<&str> = built_in().into_iter().chain(self.0.iter().map(|stack| stack.name)).collect();
        if names.contains(&word) { Ok(word) } else { Err(entry.unknown_word(word, &names, std::iter::empty())) }
    }
}

/// Copies the profiles that are named by their files into `[stacks]`, and puts their names in the place of the files'.
pub(crate) fn copy_in(document: &mut Node, context: Context<'_>) -> Result<(), Error> {
    let root = Section::root(document, context);
    let taken = root.section(STACKS)?;
    let mut copied: BTreeMap<String, (String, Node)> = BTreeMap::new();
    for entry in named_by_file(&root) {
        let file = entry.text()?;
        let name = file.rsplit(['/', '\\']).next().and_then(|last| last.strip_suffix(ENDING)).unwrap_or_default();
        match copied.get(name) {
            Some((other, _)) if other == file => continue,
            Some((other, _)) => return Err(entry.expected(format!("another name: {other} is called {name} too"))),
            None if taken.get(name).is_some() => {
                return Err(entry.expected(format!("another name: there is a [stacks.{name}] too")));
            }
            None if tcp::profile(name).is_some() => {
                return Err(entry.expected(format!("another name: {name} is built in")));
            }
            None if !is_bare(name) => return Err(entry.expected("a file named with letters, digits, - and _")),
            None => {}
        }
        let text =
            (context.files)(file).map_err(|reason| entry.expected(format!("a file that can be read: {reason}")))?;
        let mut stack = document::parse(&text, file)?;
        check(&Section::root(&stack, Context { origin: file, ..context }))?;
        // The lines of its values belong to another file.
        forget_lines(&mut stack);
        copied.insert(name.to_owned(), (file.to_owned(), stack));
    }
    if copied.is_empty() {
        return Ok(());
    }
    let Data::Table(table) = &mut document.data else { unreachable!("a document is a table") };
    for node in stack_nodes(table) {
        if let Data::Text(text) = &mut node.data
            && let Some((name, _)) = copied.iter().find(|(_, (file, _))| file == text)
        {
            text.clone_from(name);
        }
    }
    let empty = || Node { data: Data::Table(BTreeMap::new()), place: Place::File };
    let Data::Table(stacks) = &mut table.entry(STACKS.to_owned()).or_insert_with(empty).data else {
        unreachable!("it was read as a table")
    };
    stacks.extend(copied.into_iter().map(|(name, (_, stack))| (name, stack)));
    Ok(())
}

/// Checks a profile in a file of its own, where its lines are known.
fn check(stack: &Section<'_>) -> Result<(), Error> {
    let known = own_keys();
    hosts::refuse_former(stack)?;
    stack.only(&[&known])?;
    let built_in = built_in();
    let names: Vec<_> = built_in.iter().map(|name| (*name, *name)).collect();
    let base = stack.require(BASE, &format!("one of {}", built_in.join(", ")), |entry| entry.word(&names))?;
    hosts::complete("", hosts::profile(base).expect("it is built in"), &[stack])?;
    Ok(())
}

/// What `[tcp]` and the blocks give as `stack` and is a file's name.
fn named_by_file<'a>(root: &Section<'a>) -> Vec<Entry<'a>> {
    let blocks = root.get("traffic").and_then(|traffic| traffic.list("").ok()).unwrap_or_default();
    let sections = root.get("tcp").into_iter().chain(blocks).filter_map(|entry| entry.section("").ok());
    sections
        .filter_map(|section| section.get(STACK))
        .filter(|entry| entry.text().is_ok_and(|text| text.ends_with(ENDING)))
        .collect()
}

/// The values of `stack` in `[tcp]` and the blocks.
fn stack_nodes(root: &mut BTreeMap<String, Node>) -> impl Iterator<Item = &mut Node> {
    let sections = root.iter_mut().flat_map(|(key, node)| match (key.as_str(), &mut node.data) {
        ("tcp", Data::Table(table)) => vec![table],
        ("traffic", Data::List(list)) => list
            .iter_mut()
            .filter_map(|node| if let Data::Table(table) = &mut node.data { Some(table) } else { None })
            .collect(),
        _ => vec![],
    });
    sections.filter_map(|table| table.get_mut(STACK))
}

fn forget_lines(node: &mut Node) {
    node.place = Place::File;
    match &mut node.data {
        Data::List(list) => list.iter_mut().for_each(forget_lines),
        Data::Table(table) => table.values_mut().for_each(forget_lines),
        _ => {}
    }
}

/// The keys of a profile.
fn own_keys() -> Vec<&'static str> {
    std::iter::once(BASE).chain(hosts::KEYS.iter().copied().filter(|key| *key != STACK)).collect()
}

fn built_in() -> Vec<&'static str> {
    tcp::profiles().iter().map(|profile| profile.name).collect()
}

/// Whether TOML takes the name without quotes.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
