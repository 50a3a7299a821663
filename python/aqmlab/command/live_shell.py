"""A prompt on one side of a link: the test bed with a shell inside, for any program the user likes to try.

The link stands for as long as the first prompt. A second one joins on the other side: it enters the network namespace
that the test bed holds, and is sent away when the link goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from aqmlab import api, checks, engine, links, scenario, scratch, shaping, toml_text
from aqmlab.command.verbs import print_json
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput, CannotRun
from aqmlab.json_files import Json, read_json
from aqmlab.laws import brought
from aqmlab.live import at_fault, machine, plan, preflight, process, registry
from aqmlab.results import store
from aqmlab.runs import calibration
from aqmlab.runs.bed import SIDES

PLACE = "bed.json"
"""Where the test bed says how its namespaces are entered."""

SIGHUP_WAIT_S = 2.0

SIGNALLED = 128
"""More than the number of the signal that ended a program is the exit code that stands for it: sh(1)."""

QUIET = {"kind": "bulk", "flows": 1}
"""Stands for a block of the scenario's traffic where that does not run, so that no load has to be calibrated."""

LASTS = {"duration": "1000000s", "warmup": "0s", "cooldown": "0s"}
"""The link stands for as long as somebody uses it; a prompt is nothing that is measured."""

WRITES = {"interval": "1000s", "exchanges": False}
"""As little as can be: nobody reads the tables of a prompt, which may be open for days."""

FIRST = ["unshare", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", 'trap : INT; "$0" "$@"; exit $?']
"""What a joined prompt begins with: what it leaves in the background goes with it.

The shell is a child of the first process of its namespace, for the kernel keeps from that one every signal that it does
not handle: pid_namespaces(7). The first one outlives Ctrl-C; a trap is none of its children's.
"""


def open_prompt(
    scenario_file: str | None,
    side: str,
    join: int | None,
    has_traffic: bool,
    changes: dict[str, Any],
    command: Sequence[str] = (),
    *,
    as_json: bool = False,
) -> int:
    """Opens a prompt, or runs a `command` in its place, and waits for its end; the answer is its exit code.

    With `as_json` standard output is for what the link carried; what the prompt says goes to standard error.
    """
    if side not in SIDES:
        raise BadInput(f"side: {side}: expected one of {', '.join(SIDES)}")
    if (scenario_file is None) == (join is None):
        raise BadInput("shell: expected a scenario, or --join with the number of a shell that runs")
    if join is not None:
        if has_traffic or changes:
            raise BadInput("shell --join: expected no --traffic and no --set: the link stands already")
        return _join(join, side, as_json)
    assert scenario_file is not None
    return _open(scenario_file, side, has_traffic, changes, command, as_json)


def _open(
    scenario_file: str, side: str, has_traffic: bool, changes: dict[str, Any], command: Sequence[str], as_json: bool
) -> int:
    if command and shutil.which(command[0]) is None:
        raise BadInput(f"shell: {command[0]}: no such program; expected one to run inside, after --")
    resolved = _resolved(scenario_file, has_traffic, changes)
    plan.check(resolved, is_virtual=False, has_traffic=has_traffic)
    remarks = [*plan.remarks(resolved), *preflight.beside()]
    if plan.capture(resolved) != "off":
        remarks.append(f"live.capture = {plan.capture(resolved)}: a prompt has no result, and captures nothing")
    for remark in remarks:
        print(f"aqmlab: {remark}", file=sys.stderr)
    with scratch.folder("shell") as folder, registry.noted(folder) as marked:
        store.write_text(folder / "scenario.toml", resolved.toml)
        told = plan.of(
            resolved,
            resolved.origin,
            is_virtual=False,
            command=list(command) if command else _prompt(folder, side, os.getpid()),
            side=side,
            has_traffic=has_traffic,
            tells_progress=False,
        )
        store.write_json(folder / process.PLAN, told)
        # The test bed is to ignore it, too.
        with _ctrl_c_is_the_prompts(signal.SIG_IGN):
            # It keeps the terminal: standard input and the process group are this process's.
            code = subprocess.run(
                process.arguments(folder, is_virtual=False),
                env={**os.environ, **marked},
                stdout=sys.stderr.fileno() if as_json else None,
                check=False,
            ).returncode
        laws = brought.of(resolved.scenario)
        if (folder / process.ERROR).exists():
            raise at_fault.told(read_json(folder / process.ERROR), laws)
        if not (folder / process.OUTCOME).exists():
            raise at_fault.ended(f"the test bed {process.how(code)} before it had anything to say", laws, "shell")
        return _leave(read_json(folder / process.OUTCOME)["summary"], as_json)


def _resolved(scenario_file: str, has_traffic: bool, changes: dict[str, Any]) -> Resolved:
    """The scenario as it is run, populations in place of loads."""
    source = scenario.read(Path(scenario_file)).with_changes(changes)
    tree: Tree = {**source.tree, **LASTS, "record": WRITES}
    tree.pop("variant", None)
    if not has_traffic:
        tree["traffic"] = _quiet(tree)
    resolved = source.with_tree(tree).resolve()
    shaping.doubts(resolved)
    if resolved.loads:
        # Loads are numbered as the resolved blocks are, of which homes have several.
        tree = calibration.engine_tree(resolved)
        for found in api.calibrate(scenario_file, set=changes):
            tree = scenario.with_users(tree, found.traffic, found.users)
    return engine.resolve(toml_text.dumps(tree), resolved.origin)


def _quiet(tree: Tree) -> list[Tree]:
    """Blocks that do not run, with the routes of the scenario's own: each once, in their order."""
    blocks = [block for block in tree.get("traffic") or () if isinstance(block, Mapping)]
    quiet = [{**QUIET, **{key: block[key] for key in links.ROUTES.values() if key in block}} for block in blocks]
    # The delays of programs lie where those of the first block do, but for a clock that only simulated hosts have.
    if blocks and blocks[0].get("rtt_at", "clients") != "clients":
        quiet[0]["rtt_at"] = blocks[0]["rtt_at"]
    return [block for n, block in enumerate(quiet) if block not in quiet[:n]] or [dict(QUIET)]


def _prompt(folder: Path, side: str, number: int) -> list[str]:
    """The program that greets and is the prompt."""
    other = SIDES[1 - SIDES.index(side)]
    greeting = (
        f"You are on the {side} of the link, at ${_variable(side)}; the {other} is ${_variable(other)}.\n"
        f"On the other side, from another terminal:  aqmlab shell --join {number} --side {other}\n"
        "Ctrl-D ends the prompt, and with the first one the link."
    )
    words = shlex.join(_shell(folder, side))
    # What the shell prints must not wait for the greeting; variables are the test bed's.
    return ["/bin/sh", "-c", f"cat >&2 <<END\n{greeting}\nEND\nexec {words}"]


def _shell(folder: Path, side: str) -> list[str]:
    """The user's shell; bash says in its prompt where it is."""
    words = [os.environ.get("SHELL") or "/bin/sh"]
    if shutil.which(words[0]) is None:
        words = ["/bin/sh"]
    if Path(words[0]).name == "bash" and sys.stdin.isatty():
        started = folder / f"bashrc-{side}"
        started.write_text(f'[ -f ~/.bashrc ] && . ~/.bashrc\nPS1="[{side}] $PS1"\n', encoding="utf-8")
        words += ["--rcfile", str(started), "-i"]
    return words


def _variable(side: str) -> str:
    return f"AQMLAB_{side.upper()}"


def _join(number: int, side: str, as_json: bool) -> int:
    folder = registry.folder_of(number)
    if folder is None:
        raise BadInput(f"shell --join {number}: no shell of yours has this number")
    try:
        place: Json = read_json(folder / PLACE)
    except OSError:
        raise CannotRun(f"shell --join {number}: its link does not stand yet") from None
    bed = int(place["pid"])
    words = ["nsenter", f"--net={place['namespaces'][side]}"]
    try:
        is_of_this_user_namespace = Path(f"/proc/{bed}/ns/user").samefile("/proc/self/ns/user")
    except OSError:
        raise CannotRun(f"shell --join {number}: its link has gone") from None
    if not is_of_this_user_namespace:
        words += [f"--user=/proc/{bed}/ns/user", "--preserve-credentials"]
    addresses = {_variable(one): place["addresses"][one][0] for one in SIDES}
    greeting = f"You are on the {side} of the link, at {addresses[_variable(side)]}."
    print(greeting, file=sys.stderr, flush=True)
    environment = {**os.environ, **addresses, **registry.marks_of(number)}
    # Programs that are started meanwhile hear of it: a handler ends with exec(3), what is ignored stays so.
    with _ctrl_c_is_the_prompts(lambda *_: None):
        sink = sys.stderr.fileno() if as_json else None
        prompt = subprocess.Popen(
            [*words, *FIRST, *_shell(folder, side)],
            env=environment,
            stdout=sink,
            preexec_fn=partial(machine.die_with_parent, os.getpid()),
        )
        code = _joined(prompt, bed)
    if as_json:
        print(json.dumps({"side": side, "exit_code": code}))
    return code


def _joined(prompt: subprocess.Popen[bytes], bed: int) -> int:
    """Until the prompt ends, or the link does."""
    born = registry.started(bed)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            prompt.wait(0.2)
        if registry.started(bed) != born:
            print("\naqmlab: the link has gone", file=sys.stderr)
            return _send_away(prompt)
        if (code := prompt.returncode) is not None:
            # As shells have it of a program that a signal ended.
            return code if code >= 0 else SIGNALLED - code


def _send_away(prompt: subprocess.Popen[bytes]) -> int:
    """Tells the shell, and what has lost its parent beside it, that its terminal has gone."""
    for first in _children(prompt.pid):
        for number in _children(first):
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGHUP)
    limit = time.monotonic() + SIGHUP_WAIT_S
    while prompt.poll() is None and time.monotonic() < limit:
        time.sleep(0.05)
    prompt.kill()
    prompt.wait()
    return CannotRun.exit_code


def _children(process: int) -> list[int]:
    """Those of its first thread, which a program without others has all of its children by."""
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]
    return []


@contextlib.contextmanager
def _ctrl_c_is_the_prompts(handler: signal.Handlers | Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C is meant for what runs at the prompt."""
    before = signal.signal(signal.SIGINT, handler)
    had_terminal = _has_terminal()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if had_terminal:
            _take_terminal()


def _has_terminal() -> bool:
    with contextlib.suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def _take_terminal() -> None:
    """A shell that kept the terminal to itself may not have been able to give it back."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.tcsetpgrp(sys.stdin.fileno(), os.getpgrp())
    signal.signal(signal.SIGTTOU, before)


def _leave(summary: Json, as_json: bool) -> int:
    """Says what the link carried; the answer is the prompt's exit code."""
    code = exit_code((summary.get("live") or {}).get("command_status"))
    if as_json:
        carried = {way: summary[way] for way in links.WAYS}
        print_json({"exit_code": code, **carried})
        return code
    for way in links.WAYS:
        counts = summary[way]
        print(
            f"{way}: {counts.get('offered_packets', 0)} packets, {counts.get('dropped_packets', 0)} dropped, "
            f"{counts.get('marked_packets', 0)} marked",
            file=sys.stderr,
        )
    return code


def exit_code(status: int | str | None) -> int:
    """The exit code that stands for how a program ended: its own, or that which shells give where a signal did it."""
    if status == checks.ENDED_WITH_THE_RUN:
        return SIGNALLED + signal.SIGKILL
    if isinstance(status, str):
        return SIGNALLED + int(status.removeprefix("signal "))
    return status or 0
