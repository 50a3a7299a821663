"""Names that are nearly right: what was meant, as it stands in a complaint."""

import difflib
from collections.abc import Iterable

_DROP_TAIL = "expected droptail, as it is called here"
_SHAPER = "a shaper of Linux, which is no discipline here: expected link.rate, or bandwidth of cake"
_RIO = "nearest is rio, with thresholds for each of two classes; see docs/disciplines/rio.md"

ELSEWHERE = {
    "wred": f"the Weighted RED of routers, which Linux has as gred, is not here: {_RIO}",
    "gred": f"Linux's RED with thresholds by class, the WRED of routers, is not here: {_RIO}",
    "sqm": "OpenWrt's scripts, which are no discipline: expected cake or fq_codel, which they set",
    "l4s": "an architecture (RFC 9330), which is no discipline: expected dualpi2, and prague as cc of the hosts",
    "htb": _SHAPER,
    "tbf": _SHAPER,
    "taildrop": _DROP_TAIL,
    "droptail": _DROP_TAIL,
}
"""What the field knows by a name that is none of a discipline here, whose spelling may be near that of another."""


def elsewhere(given: object) -> str:
    """What is known by this name, and what comes nearest; nothing of other names."""
    return ELSEWHERE.get(str(given).lower().replace("-", "").replace("_", ""), "")


def meant(given: object, known: Iterable[str]) -> str:
    """`did you mean web?`, of the known name that is nearest; nothing where none is near."""
    found = difflib.get_close_matches(str(given).lower(), list(known), n=1)
    return f"did you mean {found[0]}?" if found else ""


def expected(given: object, known: Iterable[str]) -> str:
    """The same, or else `expected one of` all of them."""
    names = list(known)
    return meant(given, names) or f"expected one of {', '.join(names)}"
