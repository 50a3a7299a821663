"""Malformed, endless and enormous files: one line says what is wrong, at once, and nothing else happens."""

import json
import os
import time
from pathlib import Path

import pytest

from aqmlab import cli, engine, files, scenario, toml_text, units, variants
from aqmlab.errors import LONGEST, BadInput, CannotRun, one_line
from aqmlab.results import store
from aqmlab.runs import memory
from conftest import BASE, NATIVE
from readers import BULK, MALFORMED, READERS, complaint

# Of a sound form, with nothing in it, or nothing that this reader asks about.
READ = {
    ("capture", "head-alone.pcap"),
    ("capture", "odd-frame.pcap"),
    ("capture", "other-link.pcap"),
    ("capture", "section-alone.pcapng"),
}


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read by the compiled engine."""
    monkeypatch.setattr(engine, "native", NATIVE)


CASES = [(name, path) for name, reader in READERS.items() for path in sorted(reader.malformed.iterdir())]


@pytest.mark.parametrize(("name", "path"), CASES, ids=lambda item: item.name if isinstance(item, Path) else item)
def test_malformed_files(name, path, tmp_path):
    # Not beside the corpus: what is read may be told to write.
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    said = complaint(READERS[name], copy)
    assert (said is None) == ((name, path.name) in READ), said


@pytest.mark.parametrize("name", [name for name in READERS if name != "tc"])  # which needs a rate with some
def test_sound_files(name):
    reader = READERS[name]
    assert [complaint(reader, path) for path in reader.sound] == [None] * len(reader.sound)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "pipe", "folder"])
def test_files_without_end(name, device, tmp_path):
    reader = READERS[name]
    if name == "result":
        pytest.skip("a folder whose files are of the test's making")
    path = tmp_path / f"endless.{reader.ending}"
    match device:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(device)
    started = time.process_time()
    said = complaint(reader, path)
    assert said is not None
    assert "regular file" in said or "is a folder" in said, said
    assert time.process_time() - started < 1


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "scenario.toml", "exchanges.parquet"])
def test_a_pipe_in_a_result_folder(name, tmp_path, capsys):
    from aqmlab.results.run import Run

    manifest = {"kind": "run", "seed": 1, "digest": "", "scenario_digest": "", "version": "", "self_checks": []}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "summary.json").write_text('{"forward": {}, "reverse": {}, "exchanges": {}}')
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(BadInput, match="no regular file"):
        run = Run(tmp_path)
        _ = run.scenario if name == "scenario.toml" else run.exchanges


def test_files_that_are_too_large(tmp_path):
    for name, kind in [
        ("scenario", files.SCENARIO),
        ("table", files.TABLE),
        ("tc", files.TC),
        ("result", files.RESULT),
    ]:
        path = tmp_path / f"large.{READERS[name].ending}"
        with path.open("wb") as file:
            file.truncate(kind.most_bytes + 1)  # a hole, of no size on the disk
        with pytest.raises(BadInput, match="is larger than"):
            files.content(path, kind)


def test_the_engine_reads_scenarios_as_large_as_python_does():
    text = "#" * files.SCENARIO.most_bytes
    assert toml_text.loads(text, "s.toml") == {}
    with pytest.raises(BadInput, match="bytes long"):
        toml_text.loads(text + "#", "s.toml")


DEEP = {
    "lists": "a = " + "[" * 3000 + "]" * 3000,
    "inline tables": "a = " + "{ a = " * 3000 + "1" + " }" * 3000,
    "dotted keys": ".".join("a" * 3000) + " = 1",
    "headers": "[" + ".".join("a" * 3000) + "]",
    "an integer of 5,000 digits": "seed = " + "1" * 5000,
}


@pytest.mark.parametrize("what", DEEP)
@pytest.mark.parametrize("verb", ["run", "compare", "calibrate", "sweep", "tc"])
def test_deep_toml(what, verb, tmp_path, capsys):
    path = tmp_path / "deep.toml"
    path.write_text(DEEP[what] + BULK)
    code = cli.invoke([verb, str(path), *(["pfifo", "pi"] if verb == "compare" else [])])
    said = capsys.readouterr().err
    assert code == 2
    assert "deep.toml" in said and len(said.splitlines()) == 1 and len(said) < 300, said


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "1" * 5000, "{a=" * 3000 + "1" + "}" * 3000])
def test_deep_settings(value, base, capsys, tmp_path):
    code = cli.invoke(["run", str(base), "--set", f"seed={value}", "-o", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert code == 2
    assert "seed" in said and len(said.splitlines()) == 1 and len(said) < 300, said
    assert cli.invoke(["run", str(base), "--set", f"{'a.' * 3000}b=1", "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_a_message_does_not_repeat_what_is_long():
    word, words = "x" * 5000, "a rate " * 1000
    for said in (f"s.toml: name: {word!r}: expected another", f"s.toml: name: {words!r}: expected another", word):
        line = one_line(said)
        assert len(line) < 300
        assert line.startswith(said[:8]) and line.endswith(said[-8:]), "both ends are there"
    assert len(one_line("many words " * 1000)) <= LONGEST
    assert one_line("a\x1b[31mb\0c\u2028d\ud800e") == r"a\x1b[31mb\x00c d\ud800e", "nothing moves a cursor"
    between = f'was "{"a" * 64}": {"words " * 20}has other content: expected "{"b" * 64}", the scenario\'s own'
    assert one_line(between) == between, "what stands between quotes was not put in"
    keys = [f"key_{number}" for number in range(100)]
    few, many = (f"x: unknown key, expected one of {', '.join(some)}" for some in (keys[:60], keys))
    assert one_line(few) == few
    assert one_line(many) == f"x: unknown key, expected one of {', '.join(keys[:20])} and 80 more"
    short = "s.toml:3: link.rate = '24': expected a rate such as 100mbit"
    assert one_line(short) == short


def test_names_that_no_folder_can_have(base, tmp_path, capsys):
    long = "n" * 300
    out = tmp_path / "out"
    for arguments in (
        ["compare", str(base), "pfifo limit " + "1" * 300 + "p", "pi", "-o", str(out)],
        ["run", str(base), "-o", str(tmp_path / long)],
    ):
        assert cli.invoke(arguments) == 2
        said = capsys.readouterr().err
        assert f"at most {scenario.LONGEST_NAME}" in said and len(said.replace(str(tmp_path), "")) < 400, said
    text = BASE + f'[[variant]]\nname = "{long}"\n[[variant]]\nname = "b"\n'
    (tmp_path / "long.toml").write_text(text)
    assert cli.invoke(["compare", str(tmp_path / "long.toml"), "-o", str(out)]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.toml", "web.toml"], "nothing is left behind"
    with pytest.raises(BadInput, match="zero byte"):
        store.claim(tmp_path / "a\0b", resume=False)


def test_a_scenario_with_a_long_name_finds_a_folder(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import fake_native

    monkeypatch.setattr(engine, "native", fake_native)
    base.write_text(BASE.replace("web users", "web " * 200).replace('load = "98mbit"', "users = 10"))
    assert cli.invoke(["run", str(base), "--json"]) == 0
    (folder,) = (tmp_path / "results").iterdir()
    assert len(folder.name) <= 100


# ---- memory ----

LARGE = {
    "bulk flows": (BULK.replace('"bulk"', '"bulk"\nflows = 10000000'), "traffic.0"),
    "arrivals": (
        'duration = "60s"\n[[traffic]]\nkind = "poisson"\narrivals = "10000000hz"\nsize = "10kb"\n',
        "traffic.0",
    ),
    "users": ('duration = "60s"\n[[traffic]]\nkind = "web"\nusers = 100000000\n', "traffic.0"),
    "fq_afd": ('link.qdisc = { kind = "fq_afd", buffer = 1000000 }' + BULK, "link.qdisc (fq_afd)"),
    "fq_sred": ('link.qdisc = { kind = "fq_sred", zombies = 1000000 }' + BULK, "link.qdisc (fq_sred)"),
    "fq_dcn": ('link.qdisc = { kind = "fq_dcn", sb = 1000000 }' + BULK, "link.qdisc (fq_dcn)"),
    "queues": ('link.qdisc = { kind = "fq_dcn", queues = 65536 }' + BULK, "link.qdisc (fq_dcn)"),
    "unresponsive packets": (
        'duration = "1h"\nlink = { rate = "1mbit", qdisc = { kind = "pfifo", limit = "4000000000p" } }\n'
        '[[traffic]]\nkind = "cbr"\nflows = 100\nrate = "10gbit"\npacket = "100b"\n',
        "traffic.0",
    ),
}


@pytest.mark.parametrize("what", LARGE)
def test_a_run_beyond_the_memory_is_refused_before_it_begins(what, tmp_path, capsys, monkeypatch):
    text, key = LARGE[what]
    monkeypatch.setenv(memory.VARIABLE, "1gb")
    path = tmp_path / "large.toml"
    path.write_text(text)
    started = time.process_time()
    assert cli.invoke(["run", str(path), "-o", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and len(said) < 300
    assert "large.toml" in said and f"of which {key}" in said and "at most 1.0 GB (AQMLAB_MEMORY)" in said, said
    assert time.process_time() - started < 2
    assert not list((tmp_path / "out").glob("**/*")), "nothing is left behind"


def test_what_is_there_is_asked_of_the_machine(monkeypatch, tmp_path):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    (tmp_path / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.available_bytes() == 8_000_000 * 1024
    for name, text in {
        "memory.max": "4000000000\n",
        "memory.current": "3000000000\n",
        "memory.stat": "anon 1\ninactive_file 500000000\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert memory.available_bytes() == 1_500_000_000, "what the control group has left, and would give up"
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() == 8_000_000 * 1024
    monkeypatch.setenv(memory.VARIABLE, "much")
    with pytest.raises(BadInput, match="AQMLAB_MEMORY=much"):
        memory.limit()


def test_fewer_runs_at_a_time_where_not_all_fit(monkeypatch):
    resolved = engine.resolve('link.qdisc = { kind = "fq_dcn", queues = 8192 }' + BULK, "s.toml")
    need = memory.needed(resolved)
    room = need + memory.PROCESS_BYTES
    for times, expected in [(1.1, 1), (2.5, 2), (9, 4)]:
        monkeypatch.setenv(memory.VARIABLE, f"{times * room / 2**20:.0f}mb")
        assert memory.runs_at_once([resolved] * 10, 4) == expected
    monkeypatch.setenv(memory.VARIABLE, f"{0.9 * need / 2**20:.0f}mb")
    with pytest.raises(CannotRun, match="fq_dcn"):
        memory.runs_at_once([resolved], 1)


def test_a_load_that_no_user_offers(tmp_path, capsys):
    path = tmp_path / "little.toml"
    path.write_text(
        'duration = "2s"\nwarmup = "1s"\n[link]\nrate = "1mbit"\n[[traffic]]\nkind = "web"\nload = "1bit"\n'
    )
    assert cli.invoke(["calibrate", str(path)]) == 2
    said = capsys.readouterr().err
    assert "1bit" in said and len(said.splitlines()) == 1, said


def test_as_many_seeds_as_an_integer_holds(tmp_path, capsys):
    assert cli.invoke(["sweep", str(MALFORMED / "sweep/largest-seeds.toml"), "-o", str(tmp_path / "out")]) == 2
    assert "seeds: 9,223,372,036,854,775,807 runs; expected at most" in capsys.readouterr().err


def test_variants_keep_their_names_apart(tmp_path):
    """A name of brackets, dollars or underscores is a name."""
    text = BASE + "".join(f"[[variant]]\nname = '{name}x'\n" for name in ("$x_{$a", "[/]b", "_c"))
    path = tmp_path / "names.toml"
    path.write_text(text)
    assert [one.name for one in variants.from_file(scenario.read(path))] == ["$x_{$ax", "[/]bx", "_cx"]


CROWD = """
[link]
rate = "10mbit"
[[traffic]]
kind = "bulk"
flows = {flows}
"""


def test_who_starts_a_run_that_needs_much_is_told():
    small = engine.resolve(CROWD.format(flows=1000), "small.toml")
    large = engine.resolve(CROWD.format(flows=1_000_000), "large.toml")
    assert memory.foreseen(small) == []
    assert memory.foreseen(large) == [
        f"A run needs about {(said := units.say_memory(memory.needed(large)))} of memory, {said} of it for traffic.0"
    ]
