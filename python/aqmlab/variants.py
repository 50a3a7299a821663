"""What `compare` compares: variants of one scenario, disciplines in `tc`'s words, or several scenarios.

A comparison file is a scenario with `[[variant]]` tables. Each has a `name`, and changes to the scenario either as
tables laid over it (`[variant.link.qdisc]`; a table with a `kind` replaces the old one whole) or as
`set = { "tcp.ecn" = "on" }`. `uncongested = true` makes it the reference on the uncongested link; `baseline = true`
the one the others are measured against.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab import arguments, engine, links, scenario, shaping, toml_text
from aqmlab.engine import Tree
from aqmlab.errors import BadInput, doubt, shown
from aqmlab.laws import brought
from aqmlab.scenario import Source

OWN_KEYS = ("name", "set", "uncongested", "baseline")
UNCONGESTED_WORD = "uncongested"
QUEUES = ("qdisc", "reverse_qdisc")
"""Of `[link]`: the disciplines forward and in reverse."""


@dataclass(frozen=True)
class Variant:
    """One column of a comparison."""

    name: str
    source: Source
    uncongested: bool = False
    baseline: bool = False


def has_variants(source: Source) -> bool:
    """Whether a scenario file is a comparison file."""
    return "variant" in source.tree


def from_file(source: Source) -> list[Variant]:
    """The variants of a comparison file."""
    tables = source.tree.get("variant", [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables) or not tables:
        raise BadInput(f"{source.origin}: variant: expected one or more [[variant]] tables")
    base = without_variants(source)
    return _named([_variant(base, table, position) for position, table in enumerate(tables)])


def without_variants(source: Source) -> Source:
    """The scenario that the variants change, with its text where that can be told from theirs."""
    tree = {key: item for key, item in source.tree.items() if key != "variant"}
    if source.text is not None:
        text = scenario.text_without(source.text, "variant")
        base = replace(source, tree=tree, text=text)
        if base.is_said_by(text):
            return base
    return source.with_tree(tree)


def _variant(source: Source, table: Mapping[str, Any], position: int) -> Variant:
    base, origin = source.tree, source.origin
    where = f"{origin}: variant.{position}"
    name = table.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f'{where}.name: {shown(name)}expected what the variant is called, as in name = "PI, ECN"')
    settings = table.get("set", {})
    if not isinstance(settings, Mapping):
        raise BadInput(f'{where}.set: {settings!r}: expected a table, as in set = {{ "tcp.ecn" = "on" }}')
    for flag in ("uncongested", "baseline"):
        if not isinstance(table.get(flag, False), bool):
            raise BadInput(f"{where}.{flag}: {table[flag]!r}: expected true or false")
    change = scenario.in_tables({key: item for key, item in table.items() if key not in OWN_KEYS})
    for said, place in ((change, where), (settings, f"{where}.set")):
        if "seed" in said:
            raise BadInput(
                f"{place}.seed: {said['seed']!r}: all variants run under one seed; expected it before the variants, or "
                "--seed"
            )
    tree = laid_over(base, change)
    keys = scenario.changes_of(base, change)
    for link, own in links.of(tree).items():
        if keys is not None and "reverse_qdisc" in links.of(base).get(link, {}) and "reverse_qdisc" not in own:
            # A text cannot be told to lose a table, only to have the same in it: no good if that is changed again.
            reverse = f"{links.key(tree, link)}.reverse_qdisc"
            is_changed = any(key.startswith(f"{reverse}.") for key in settings)
            keys = None if is_changed else {**keys, reverse: own["qdisc"]}
    text, written = None if keys is None else source.text, source.settings
    if keys is not None and text is not None:
        written += tuple((key, toml_text.value(item)) for key, item in {**keys, "name": name}.items())
    called = f"{origin} [{scenario.slug(name)}]"
    changed = Source({**tree, "name": name}, called, text, () if text is None else written, origin)
    return Variant(name, changed.with_changes(settings), table.get("uncongested", False), table.get("baseline", False))


def laid_over(base: Tree, change: Mapping[str, Any]) -> Tree:
    """A scenario with a variant's tables laid over it; what these say of the queue they say of both directions."""
    change = scenario.in_tables(change)
    tree = scenario.merged(base, change)
    for name, link in _links_of(change).items():
        if isinstance(link, Mapping) and "qdisc" in link and "reverse_qdisc" not in link:
            links.of(tree).get(name, {}).pop("reverse_qdisc", None)
    return tree


def _links_of(change: Mapping[str, Any]) -> dict[str, Any]:
    """The links that a change speaks of, whatever stands there."""
    found = change.get(links.MANY, {links.ONE: change.get(links.ONE)})
    return dict(found) if isinstance(found, Mapping) else {}


def written_out(source: Source, specs: Sequence[str]) -> Source:
    """The comparison file that says the same as a scenario and disciplines in words, or `uncongested`."""
    if has_variants(source):
        raise BadInput(f"{source.origin}: variant: a file with [[variant]] tables takes no disciplines beside it")
    brought.bring_all(specs)
    resolved = source.resolve().scenario
    rows = [_table_of(brought.spelled(spec), resolved, source) for spec in specs]
    return replace(source, tree={**source.tree, "variant": rows})


def _table_of(spec: str, tree: Tree, source: Source) -> Tree:
    """The variant that words stand for: one discipline in both directions, or `forward / reverse`.

    `tree` is the scenario with all that its author, `source`, left to defaults.
    """
    name, origin = " ".join(spec.split()), source.origin
    if name == UNCONGESTED_WORD:
        return {"name": UNCONGESTED_WORD, "uncongested": True}
    if links.are_several(tree):
        known = ", ".join(f"[variant.links.{link}.qdisc]" for link in links.of(tree))
        raise BadInput(f"{origin}: {name!r}: a discipline of which link? expected [[variant]] tables with {known}")
    from aqmlab.tc import words  # Linux's words take long to load, which a run of one scenario is spared

    forward, *others = [words.parse(part) for part in _directions(name)]
    link, at = links.first(tree), next(iter(links.of(tree)))
    for key, qdisc in zip(QUEUES, (forward, *(others or [forward])), strict=True):
        if (excess := shaping.excess({**link, key: qdisc}, key, links.key(tree, at))) is not None:
            hint = "" if others else ', or one discipline for each direction, as "forward / reverse"'
            raise BadInput(f"{name!r}: {excess}; expected no more{hint}")
    changed = dict(zip(QUEUES, (forward, *others), strict=False))
    table: Tree = {"name": name, **({links.MANY: {at: changed}} if links.MANY in tree else {links.ONE: changed})}
    marks = any(qdisc.get("ecn") is True for qdisc in (forward, *others))
    if not marks or tree["tcp"].get("ecn", OFF) != OFF:
        return table
    if "ecn" not in source.tree.get("tcp", {}):
        return {**table, "tcp": {"ecn": "on"}}
    if not any(_is_capable(block, tree["tcp"]) for block in tree["traffic"]):
        doubt(f'{origin}: {name!r}: marks nothing, since tcp.ecn = "{OFF}" and no packet is ECN-capable')
    return table


OFF = "off"
"""Of `tcp.ecn`: hosts without ECN."""


def _is_capable(block: Mapping[str, Any], tcp: Mapping[str, Any]) -> bool:
    """Whether packets of a resolved block of traffic can be marked: of TCP with ECN, of others by their `ect`."""
    if engine.speaks_tcp(block):
        return str(block.get("ecn", tcp.get("ecn", OFF))) != OFF
    return str(block.get("ect", NOT_ECT)) != NOT_ECT


NOT_ECT = "not-ect"
"""Of `ect`: packets that must not be marked."""


def _directions(name: str) -> list[str]:
    parts = [part.strip() for part in name.split("/")]
    if len(parts) > 2 or not all(parts):
        raise BadInput(f'{name!r}: expected one discipline, or two in the form "forward / reverse"')
    for part in parts[: len(parts) if len(parts) > 1 else 0]:
        if part == UNCONGESTED_WORD:
            raise BadInput(f"{name!r}: {part}: is the reference in both directions; expected it alone")
    return parts


def from_files(sources: Sequence[Source]) -> list[Variant]:
    """Several scenarios side by side, each under its own name."""
    for source in sources:
        if has_variants(source):
            raise BadInput(f"{source.origin}: variant: a file with [[variant]] tables is compared on its own")
    return _named([Variant(str(source.tree.get("name", source.origin)), source) for source in sources])


def _named(variants: Sequence[Variant]) -> list[Variant]:
    """Names must tell variants apart, on paper and as folders; at most one is the baseline."""
    seen: dict[str, str] = {}
    for variant in variants:
        folder = scenario.slug(variant.name)
        if len(folder) > scenario.LONGEST_NAME:
            raise BadInput(
                f"{variant.source.origin}: name: {variant.name!r}: makes the name of a folder with {len(folder)} "
                f"characters; expected at most {scenario.LONGEST_NAME}"
            )
        if folder in seen:
            which = "is there twice" if variant.name == seen[folder] else f"makes the same folder as {seen[folder]!r}"
            raise BadInput(f"{variant.source.origin}: name: {variant.name!r}: {which}; expected names that differ")
        seen[folder] = variant.name
    if sum(variant.baseline for variant in variants) > 1:
        raise BadInput(f"{variants[0].source.origin}: baseline: expected true in at most one variant")
    return list(variants)


def choose_baseline(variants: Sequence[tuple[str, bool, bool, str]], wanted: str | None) -> str:
    """The one the others are measured against, of (name, uncongested, marked as baseline, kind of discipline).

    The one asked for; else the one marked; else the first drop-tail queue; else the first that is congested.
    """
    names = [name for name, *_ in variants]
    if wanted is not None:
        if wanted not in names:
            raise BadInput(f"{arguments.named('baseline', wanted)}: expected one of {', '.join(names)}")
        return wanted
    marked = [name for name, _, is_baseline, _ in variants if is_baseline]
    congested = [(name, kind) for name, is_reference, _, kind in variants if not is_reference]
    drop_tail = [name for name, kind in congested if kind in ("pfifo", "bfifo")]
    return (marked + drop_tail + [name for name, _ in congested] + names)[0]


def with_seed(variants: Sequence[Variant], seed: int) -> list[Variant]:
    """All under one seed, so that the same users make the same demands."""
    return [replace(variant, source=variant.source.with_changes({"seed": seed})) for variant in variants]
