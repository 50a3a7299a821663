"""What an installed package has: every file that it reads, and what an index of packages shows of it."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from aqmlab.command import beginnings
from conftest import ROOT

MATURIN = shutil.which("maturin", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
PACKAGE = ROOT / "python/aqmlab"
DESCRIBED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def own_files():
    """What lies in the package itself, links to other folders aside."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".so"))
    return {path.relative_to(ROOT).as_posix() for path in found}


def linked_files():
    """What it reads of the folders that it links to: every study, what `aqmlab new` offers, the glossary."""
    every = [one.path for one in beginnings.examples()]
    every += [PACKAGE / "glossary.md"]
    every += [path for path in (PACKAGE / "studies").glob("*/*") if path.is_file()]
    return {path.relative_to(ROOT).as_posix() for path in every}


def included(kind):
    """Files that `include` names for an `sdist` or a `wheel`."""
    rows = DESCRIBED["tool"]["maturin"]["include"]
    paths = [
        row["path"] for row in rows if kind in ([row["format"]] if isinstance(row["format"], str) else row["format"])
    ]
    return {path.relative_to(ROOT).as_posix() for pattern in paths for path in ROOT.glob(pattern) if path.is_file()}


def test_a_wheel_has_every_file_that_is_read_through_a_link():
    assert len(linked_files()) > 30 and linked_files() - included("wheel") == set()


@pytest.mark.skipif(MATURIN is None or shutil.which("cargo") is None, reason="left out: maturin and cargo are not here")
def test_an_sdist_has_every_file_that_is_read_and_can_be_installed(tmp_path):
    made = subprocess.run([MATURIN, "sdist", "-o", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
        packed.extractall(tmp_path, filter="data")
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "python/aqmlab.data").rglob("*") if path.is_file()}
    assert data and (own_files() | linked_files() | data) - names == set()
    (place,) = (path for path in tmp_path.iterdir() if path.is_dir())
    asked = subprocess.run(
        [MATURIN, "pep517", "write-dist-info", "--metadata-directory", tmp_path / "info"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    (described,) = (tmp_path / "info").glob("*/METADATA")
    said = described.read_text(encoding="utf-8").splitlines()
    assert "License-Expression: Apache-2.0 OR MIT" in said and not any(line.startswith("License:") for line in said)
    assert any(line.startswith("Keywords: ") for line in said)
    assert "Classifier: Operating System :: POSIX :: Linux" in said


def test_an_example_is_read_when_it_is_asked_for(monkeypatch, tmp_path, capsys):
    """One that is missing is in nobody's way."""
    from aqmlab import cli

    monkeypatch.setattr(beginnings, "CODE", {"law": "missing.py"})
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", "web"]) == 0
    assert capsys.readouterr().out.startswith("web.toml\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="left out: make is not here")
@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "Rust is missing: install {} or later, https://rustup.rs"),
        ("1.63.0", "Rust 1.63.0 is too old: install {} or later (rustup update), https://rustup.rs"),
        ("1.9.0", "Rust 1.9.0 is too old: install {} or later (rustup update), https://rustup.rs"),
        ("1.90.0", None),
        ("1.100.1", None),
    ],
)
def test_make_says_which_rust_it_needs(version, said, tmp_path):
    """Before it installs anything: what would, in place of Python, does nothing here."""
    for name in ("Makefile", "Cargo.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("crates", "bin", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "requirements-dev.lock").touch()
    rust = "exit 127" if version is None else f"echo 'rustc {version} (0123456789 2026-01-01)'"
    for name, does in {"bin/rustc": rust, "bin/cargo": "true", ".venv/bin/pip": "true"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    made = subprocess.run(
        ["make", "PYTHON=true", ".venv/.installed"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    if said is None:
        assert made.returncode == 0, made.stderr
    else:
        assert made.returncode == 2 and made.stderr.splitlines()[0] == said.format(needed)
        assert "Installing" not in made.stdout
