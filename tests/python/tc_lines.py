"""Lines of `tc` that tests write and read, and where those are that a kernel made (testdata/tc)."""

from aqmlab import engine, scenario
from aqmlab.tc.read import read
from aqmlab.tc.write import write
from conftest import ROOT

DATA = ROOT / "testdata" / "tc"

BASE = {
    "link": {"rate": "10mbit", "qdisc": {"kind": "pfifo"}},
    "path": {"rtt": "40ms"},
    "tcp": {"stack": "freebsd4"},
    "traffic": [{"kind": "bulk"}],
}


def written(qdisc=None, **tables):
    """The lines for a discipline, or other tables, in place of those of `BASE`."""
    tree = {**BASE, **tables}
    tree["link"] = {**tree["link"], **({"qdisc": qdisc} if qdisc else {})}
    return write(scenario.read(tree).resolve(), "eth0", "eth1")


def link_of(text, **options):
    """The link that lines are read as, and all that was found in them."""
    found = read(text, "dump", options.get("dev"), options.get("reverse_dev"), options.get("rate"))
    engine.resolve(found.text, "dump")
    return found.tree["link"], found
