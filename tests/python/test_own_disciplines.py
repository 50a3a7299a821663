"""Disciplines of one's own, which hold packets: what users write does what the same built in does, and one that loses,
repeats or hides a packet is named, with the story. Needs the compiled engine."""

import os
import re
import shlex
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli, engine, sweep
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.laws import brought
from aqmlab.live import kernel
from aqmlab.progress import Silent
from aqmlab.runs import apart, law_check
from conftest import ROOT
from own_laws import KERNEL, command, library, of_a_sweep, run
from test_law_check import checked

pytestmark = pytest.mark.usefixtures("nothing_allowed")

SOURCE = '''
import heapq
import os
from collections import deque

import aqmlab

N = 0
KEPT = deque()


@aqmlab.discipline{how}
class Mine:
    """Does what the test wants."""

    share = aqmlab.parameter(0.1, "What the test needs.", low=0.0, high=1.0)

    def __init__(self):
        self.waiting = deque()
        self.sent = None

    def offer(self, packet, queue):
        {offer}
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
        else:
            self.waiting.append(packet)

    def take(self, queue):
        {take}
        self.sent = self.waiting.popleft() if self.waiting else None
        return self.sent
'''


def own(tmp_path: Path, offer: str = "pass", take: str = "pass", how: str = "") -> Path:
    (tmp_path / "mine.py").write_text(SOURCE.format(offer=offer, take=take, how=how))
    return tmp_path / "mine.py"


# So many queues that no two of 24 flows share one.
BUILT_IN = {"fifo": {"kind": "pfifo"}, "drr": {"kind": "drr", "flows": 65536}}


@pytest.mark.parametrize("limit", ["60p", "90000b"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_disciplines_as_users_write_them_make_the_same_runs_as_those_built_in(link, name, limit):
    theirs = run(link, {**BUILT_IN[name], "limit": limit})
    assert theirs.summary["forward"]["dropped_packets"] > 500
    ours = run(link, {"kind": str(ROOT / f"examples/laws/my_{name}.py"), "limit": limit})
    assert ours.digest == theirs.digest
    (said,) = ours.manifest["laws"]
    assert (said["name"], said["how"]) == (f"my_{name}", "interpreted")
    assert said["cost"]["calls"] > 50_000 and "ran in the interpreter" in ours.manifest["findings"][0]


@pytest.mark.parametrize("name", BUILT_IN)
def test_disciplines_as_users_write_them_decide_as_those_built_in_on_random_traces(name):
    mine = brought.of_file(ROOT / f"examples/laws/my_{name}.py")
    named = {"kind": mine.name, "law": {"file": "x.py", "sha256": mine.sha256}}
    for limit in ("60p", "20000b"):
        theirs, ours = (law_check.before_a_link({**kind, "limit": limit}) for kind in (BUILT_IN[name], named))
        for seed in range(10):
            first, second = (engine.drive(each, seed, 2000) for each in (theirs, ours))
            assert {**first, "ns": 0} == {**second, "ns": 0}, f"seed {seed}"
            assert first["refused"] > 0


def test_a_discipline_in_c_makes_the_same_runs_as_the_one_built_in(link, tmp_path, capsys):
    made = library("my_fifo", tmp_path)
    ours, theirs = (run(link, {"kind": kind, "limit": "60p"}) for kind in (str(made), "pfifo"))
    assert ours.digest == theirs.digest and ours.manifest["laws"][0]["how"] == "library"
    code, found = checked(made, capsys)
    assert (code, found["problem"], found["kind"]) == (0, "", "discipline")


def test_a_discipline_whose_library_breaks_while_it_is_loaded_is_refused(link, tmp_path):
    code = tmp_path / "breaks.c"
    code.write_text(
        '#include "aqmlab_law.h"\nconst struct aqmlab_discipline *aqmlab_discipline_table(void)\n'
        "{ return *(const struct aqmlab_discipline *volatile *)0; }\n"
    )
    made = library("breaks", tmp_path, source=code)
    with pytest.raises(BadInput, match="was ended by SIGSEGV while it was loaded"):
        run(link, str(made))


FAULTS = [
    ("pass", "if queue.now_ns > 10**8 and self.sent: return self.sent", "sends packet ", "it was sent before (in take"),
    ("pass", "if len(self.waiting) > 9: queue.drop(self.waiting[0])", "sends packet ", "it was lost before (in take"),
    ("pass", "if self.sent: queue.drop(self.sent)", "loses packet ", "it was sent before (in take"),
    ("pass", "return None", "says that nothing waits, but holds ", "(in take, at 0."),
    ("pass", "for one in self.waiting: queue.mark(one)", "marks packet ", "which may not be marked: ecn is not set"),
    ("pass", "if self.waiting: return aqmlab.later(0)", "wants to be asked again in 0 ns: expected at least 1", ""),
    ("pass", "if self.sent: return 7", "failed", "TypeError: take returned 7; expected a packet, None or aqmlab.later"),
    ("pass", "if self.sent: return 7", "failed", "expected a packet, None or aqmlab.later(ns) (/"),
    ("pass", "if self.sent: queue.drop(7)", "failed", "TypeError: expected a packet, not 7 (/"),
    ("pass", "if self.sent: self.sent.nothing", "failed", "'Packet' object has no attribute 'nothing' (/"),
    ("pass", "queue.chance(2.0)", "drew with probability 2: expected one from 0 to 1 (in take", ""),
    (
        "self.waiting.append(packet); return",
        "pass",
        "accepts packet ",
        "and then holds 61 packets, and its limit is 60",
    ),
    ("queue.drop(packet, 5)", "pass", "loses packet 1 for 5, which is no cause (in offer, at 0.", "mine.py:23)"),
]


@pytest.mark.parametrize(("offer", "take", "did", "how"), FAULTS)
def test_a_discipline_that_breaks_a_promise_is_named_and_loses_no_finished_run(link, tmp_path, offer, take, did, how):
    out, path = tmp_path / "out", own(tmp_path, offer, take)
    with pytest.raises(Misbehaved) as failed:
        aqmlab.compare(link, "pfifo", f"{path} limit 60p", set={"duration": "3s"}, out=out, jobs=1)
    said = str(failed.value)
    assert f"the discipline mine {did}" in said and how in said and "\n" not in said
    assert (out / "pfifo/manifest.json").exists()


@pytest.mark.parametrize(("offer", "take", "did", "how"), FAULTS)
def test_the_check_tells_the_story_of_the_packet(tmp_path, capsys, offer, take, did, how):
    code, found = checked(own(tmp_path, offer, take), capsys)
    assert code == 1 and f"the discipline mine {did}" in found["problem"]
    assert (how.replace("61", "").replace("60", "")[:12] in found["problem"]) and found["story"]
    for number in re.findall(r"packet (\d+), which|accepts packet (\d+)|, packet (\d+) the", found["problem"]):
        named = "".join(number)
        assert any(f"packet {named} of " in line and "arrives" in line for line in found["story"]), found


@pytest.mark.parametrize(
    ("offer", "take", "how", "problem"),
    [
        ("pass", "if self.waiting: return aqmlab.later(10**6)", "", r"keeps packet \d+ back: nothing else arrives"),
        ("pass", "return aqmlab.later(10**6)", "", r"keeps packet \d+ back: nothing else arrives"),
        ("pass", "[queue.mark(one) for one in self.waiting]", "", r"marks packet \d+, which (is not ECN|may not be)"),
        ("global N; N += 1; self.waiting.rotate(N % 2)", "pass", "", "gave other answers to the same calls"),
        ("while len(self.waiting) > 5: pass", "pass", "", r"gave no answer for 2 s in offer \(.*mine.py:\d+\)"),
        ("os._exit(3) if self.waiting else None", "pass", "", "ended its process with exit code 3"),
        ("pass", "self.share = 3; self.other()", "", "AttributeError: 'Mine' object has no attribute 'other'"),
    ],
)
def test_the_check_says_what_is_wrong_with_a_discipline(tmp_path, monkeypatch, capsys, offer, take, how, problem):
    monkeypatch.setattr(law_check, "PATIENCE_S", 2.0)
    code, found = checked(own(tmp_path, offer, take, how), capsys)
    assert code == 1 and re.search(f"the discipline mine .*{problem}", found["problem"]), found


def test_the_check_remarks_that_a_discipline_reorders_packets_of_a_flow(tmp_path, capsys):
    path = own(tmp_path, how="(marks=False)")
    path.write_text(path.read_text().replace("popleft", "pop"))
    code, found = checked(path, capsys)
    assert (code, found["problem"]) == (0, "")
    (said,) = found["remarks"]
    told = re.fullmatch(
        r"it reordered packets of one flow, ([\d,]+) in all: packet (\d+) left before packet (\d+) of its flow, "
        r"with a link of 10mbit and limit 60p and seed 1",
        said,
    )
    assert told is not None and int(told[2]) > int(told[3]) and int(told[1].replace(",", "")) > 1000, said


def test_a_packet_that_is_not_ecn_capable_may_not_be_marked(link, tmp_path):
    path = own(tmp_path, take="[queue.mark(one) for one in self.waiting]")
    with pytest.raises(Misbehaved, match=r"the discipline mine marks packet \d+, which is (not ECN-capable|marked)"):
        run(link, {"kind": str(path), "ecn": True})


@pytest.mark.parametrize("name", ["my_fifo", "my_drr", "my_priority"])
def test_disciplines_that_keep_their_promises_pass_the_check(name, capsys):
    code, found = checked(ROOT / f"examples/laws/{name}.py", capsys)
    assert (code, found["problem"], found["how"], found["kind"]) == (0, "", "interpreted", "discipline")
    assert "every packet was sent once, lost once or held" in found["kept"][0] and not found["remarks"]


def test_a_discipline_that_never_ends_is_named(link, tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "SILENCE_S", 1.5)
    path = own(tmp_path, "while queue.now_ns > 10**9: pass")
    with pytest.raises(Misbehaved, match=r"gave no sign of life for 1.5 s after .* it ran the code of mine \("):
        aqmlab.compare(link, "pfifo", str(path), set={"duration": "3s"}, out=tmp_path / "out", jobs=1)
    assert (tmp_path / "out/pfifo/manifest.json").exists()


def test_runs_that_draw_can_be_repeated(link, tmp_path):
    path = own(tmp_path, "if queue.chance(self.share): return queue.drop(packet)")
    few, again, many = (run(link, {"kind": str(path), "share": share}) for share in (0.02, 0.02, 0.2))
    assert few.digest == again.digest != many.digest
    early = [one.summary["forward"]["dropped_by_cause"]["early"] for one in (few, many)]
    offered = [one.summary["forward"]["offered_packets"] for one in (few, many)]
    # Four standard deviations of a binomial count.
    for count, of, share in zip(early, offered, (0.02, 0.2), strict=True):
        assert abs(count - of * share) < 4 * (of * share * (1 - share)) ** 0.5


def test_it_is_told_what_the_guide_says(link, tmp_path):
    asks = (
        "assert packet.source >= 0 != packet.destination and packet.arrived_ns == queue.now_ns; "
        "assert packet.number > 0 and packet.size > 0 and packet.flow > 0 and queue.rate_bps == 20e6; "
        "assert queue.backlog_packets == len(self.waiting) and queue.limit_packets == 60; "
        "assert queue.limit_bytes > 10**18 and packet.dscp == 46; "
        "assert queue.is_full == (len(self.waiting) == 60) and (not self.waiting or self.waiting[-1] < packet); "
        "assert 0.0 <= queue.uniform() < 1.0; packet.mine = 1"
    )
    path = own(tmp_path, asks, how="(hosts=True, marks=False)")
    traffic = [{"kind": "bulk", "flows": 8, "dscp": 46}]
    keys = {"traffic": traffic, "duration": "4s", "link.reverse_qdisc": "pfifo"}
    found = run(link, {"kind": str(path), "limit": "60p"}, **keys)
    assert found.summary["forward"]["offered_packets"] > 1000
    asks = "assert packet.may_mark == (packet.ecn in (1, 2)); queue.mark(packet) if packet.may_mark else None"
    marks = run(link, {"kind": str(own(tmp_path, asks)), "ecn": True}, duration="4s").summary["forward"]
    assert marks["marked_packets"] > 1000


def test_a_shaper_and_ticks_and_gauges(link, tmp_path):
    code = '''
from collections import deque

import aqmlab


@aqmlab.discipline(tick="every", gauges={"backlog": "Packets at the last tick."}, marks=False)
class Half:
    """Sends at half of the link's rate."""

    every = aqmlab.parameter("10ms", "How often it looks.")
    backlog = 0

    def __init__(self):
        self.waiting, self.ready_ns = deque(), 0

    def offer(self, packet, queue):
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
        else:
            self.waiting.append(packet)

    def take(self, queue):
        if not self.waiting:
            return None
        if queue.now_ns < self.ready_ns:
            return aqmlab.later(self.ready_ns - queue.now_ns)
        self.ready_ns = queue.now_ns + self.waiting[0].size * 16e9 / queue.rate_bps
        return self.waiting.popleft()

    def tick(self, queue):
        self.backlog = queue.backlog_packets
'''
    (tmp_path / "half.py").write_text(code)
    found = run(link, {"kind": str(tmp_path / "half.py")})
    assert found.summary["forward"]["utilisation"] == pytest.approx(0.5, abs=0.001)
    assert found.queue["control"].max() > 50
    loses = code.replace("self.backlog = queue.backlog_packets", "[queue.drop(one) for one in self.waiting]")
    (tmp_path / "half.py").write_text(loses)
    with pytest.raises(Misbehaved, match=r"the discipline half loses packet \d+: expected that in offer or take alone"):
        run(link, {"kind": str(tmp_path / "half.py")})


def test_two_queues_of_a_discipline_do_not_share_packets(link, tmp_path):
    path = own(tmp_path, "self.waiting = KEPT", "self.waiting = KEPT")
    with pytest.raises(Misbehaved, match="of another queue; expected each queue to keep its own"):
        aqmlab.run(link, set={"link.qdisc": str(path), "link.reverse_qdisc": str(path)})


def test_a_discipline_may_make_its_own_objects(link, tmp_path):
    path = own(tmp_path, "assert self.ready")
    made = "    def __new__(cls):\n        one = object.__new__(cls)\n        one.ready = 1\n        return one\n\n"
    path.write_text(path.read_text().replace("    def __init__", f"{made}    def __init__"))
    assert run(link, str(path)).summary["forward"]["offered_packets"] > 1000


def test_a_result_keeps_its_discipline_and_runs_again_from_it(link, tmp_path):
    path = own(tmp_path)
    first = aqmlab.run(link, set={"link.qdisc.kind": str(path), "duration": "3s"}, out=tmp_path / "out")
    path.unlink()
    scenario = str(tmp_path / "out/scenario.toml")
    assert "not run unasked" in command("run", scenario)
    assert command("run", scenario, "--allow-code", "-o", str(tmp_path / "again")) == ""
    assert aqmlab.load(tmp_path / "again").digest == first.digest


def test_a_sweep_and_explain_take_a_discipline(link, tmp_path, capsys):
    (point,) = sweep.InProcess().each(of_a_sweep(link, own(tmp_path)), Silent())
    assert point is not None
    assert cli.invoke(["explain", str(tmp_path / "mine.py")]) == 0
    said = capsys.readouterr().out
    assert "mine" in said and "share" in said and "limit" in said


@pytest.mark.skipif(not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)")
def test_a_discipline_holds_packets_between_real_stacks_in_virtual_time(link, tmp_path, monkeypatch):
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)
    path = own(tmp_path, "if packet.number % 50 == 0: return queue.drop(packet)")
    traffic = [{"kind": "cbr", "rate": "10mbit", "packet": "1000b"}]
    keys = {"duration": "3s", "warmup": "0s", "tcp.ecn": "off", "traffic": traffic, "link.qdisc.kind": str(path)}
    found = aqmlab.live(link, set=keys, virtual=True)
    forward = found.summary["forward"]
    assert found.manifest["laws"][0]["how"] == "interpreted" and forward["offered_packets"] > 3000
    assert forward["dropped_by_cause"]["early"] == forward["dropped_packets"] == forward["offered_packets"] // 50


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("def take", "def tike", "Mine: expected a method take; a discipline has offer and take"),
        (
            "    share",
            "    kept = []\n    share",
            r"Mine.kept: a list in the class is shared by all queues; expected it in",
        ),
        (
            "discipline{how}",
            'discipline(tick="5ms")',
            "expected a method tick and how often it is called, as in @aqmlab.di",
        ),
        (
            "@aqmlab.discipline{how}\nclass Mine:",
            "class Base:\n    kept = [1]\n\n\n@aqmlab.discipline{how}\nclass Mine(Base):",
            r"Mine.kept: a list in the class is shared by all queues; expected it in __init__",
        ),
        ("__init__(self)", "__init__(self, share)", r":18: Mine.__init__\(self, share\): expected \(self\), and"),
        ("discipline{how}", 'discipline(name="pi")', "the discipline is called pi, as one that is built in"),
        ("discipline{how}", 'discipline(gauges={{"waits": "x"}})', "gauges: waits: expected one of share"),
        ("share = ", "limit = ", "mine: the parameter limit is the queue's own: expected another name"),
    ],
)
def test_what_is_no_discipline_is_refused(link, tmp_path, before, after, said):
    source = SOURCE.replace(before, after).format(offer="pass", take="pass", how="")
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(BadInput, match=said):
        run(link, str(tmp_path / "mine.py"))


def test_what_fails_in_init_is_said_to_be_there(link, tmp_path):
    source = SOURCE.replace("self.sent = None", "self.sent = self.nothing").format(offer="pass", take="pass", how="")
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(Misbehaved, match=r"AttributeError: .*'nothing' \(in __init__, .*mine\.py:20\)$"):
        run(link, str(tmp_path / "mine.py"))


def test_the_guide_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/guide/own-disciplines.md").read_text()
    (written,) = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    Path("two_bands.py").write_text(written)
    shown = [
        shlex.split(line)[1:]
        for block in re.findall(r"^```sh\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert [words[0] for words in shown] == ["check", "new", "compare"]
    keys = ("duration=6s", "warmup=1s", "link.rate=5mbit", 'traffic=[{ kind = "bulk", flows = 8 }]')
    short = [word for key in keys for word in ("--set", key)]
    for words in shown:
        assert cli.invoke([*words, *(short if words[0] == "compare" else [])]) == 0, words
