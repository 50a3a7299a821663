"""One page over several studies: how many of their claims hold, and every claim in a table that can be filtered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aqmlab.json_files import Json
from aqmlab.results import store
from aqmlab.study import verdicts
from aqmlab.study.templates import environment

PAGE = "index.html"
FEW = 3
"""Numbers of a claim that are shown at once: the report of its study has them all."""


def write_overview(found: Sequence[Json], folder: Path) -> Path:
    """Writes `index.html`; each of `found` is the content of a `study.json`, and `report` where its page is."""
    path = folder / PAGE
    store.write_text(path, html(found))
    return path


def html(found: Sequence[Json]) -> str:
    """The page as text."""
    every = [claim for one in found for claim in one["claims"]]
    profiles: dict[str, dict[str, list[str]]] = {}
    for one in found:
        if one.get("profile", {}).get("says"):
            of_profile = profiles.setdefault(one["profile"]["name"], {})
            of_profile.setdefault(one["profile"]["says"], []).append(one["id"])
    return (
        environment()
        .get_template("study/overview.html.j2")
        .render(
            studies=[_study(one, every) for one in found],
            ids=[one["id"] for one in found],
            counts=verdicts.counts(every),
            total=len(every),
            runs=sum(one.get("runs", 0) for one in found),
            profiles=[(name, [(", ".join(ids), says) for says, ids in of.items()]) for name, of in profiles.items()],
            claims=[
                {
                    "shown": verdicts.shown(claim, FEW),
                    "study": one["id"],
                    "report": _report(one),
                    "explained_at": verdicts.explained_at(one),
                }
                for one in found
                for claim in one["claims"]
            ],
            version=next((one["version"] for one in found if one.get("version")), ""),
        )
    )


def _study(one: Json, every: Sequence[Json]) -> dict[str, Any]:
    counts = verdicts.counts(one["claims"], every)
    return {
        "id": one["id"],
        "title": one["title"],
        "report": _report(one),
        "counts": counts,
        "said": verdicts.counted(one["claims"]),
        "runs": f"{one['runs']:,}" if "runs" in one else "–",
        "simulated_h": _number(one.get("simulated_h")),
        "cpu_h": _number(one.get("cpu_h")),
        "failed": len(one.get("self_checks", {}).get("failed", [])),
    }


def _report(one: Json) -> str:
    return str(one.get("report", f"{one['id']}/report.html"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
