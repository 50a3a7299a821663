"""What a claim can be asked of: a point of a study with its runs, or a column of a comparison."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from aqmlab import links
from aqmlab.json_files import Json
from aqmlab.results.window import Window


class Subject(Protocol):
    """Runs of one scenario under several seeds, condensed."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def label(self) -> str:
        """What people read."""
        ...

    @property
    def windows(self) -> list[Window]:
        """The measured window of each run, in the order of the seeds."""
        ...

    @property
    def summaries(self) -> list[Json]:
        """The summary of each run, in the same order."""
        ...

    def of_parts(self, run: int) -> Mapping[str, float | None]:
        """What one of its runs, counted from 0, has of parts of the traffic: of blocks, probes and applications."""
        ...

    @property
    def scenario(self) -> Json:
        """The resolved scenario of the first run."""
        ...

    @property
    def demand(self) -> tuple[str | None, tuple[int, ...]]:
        """What was demanded, and the seeds: two subjects with the same are compared seed by seed."""
        ...


@dataclass(frozen=True)
class Seen:
    """One run, as a measure sees it."""

    window: Window
    summary: Json
    scenario: Json
    of_parts: Callable[[], Mapping[str, float | None]] = dict
    """What it has of parts of the traffic, by names such as `applications.calls.mos_mean`."""

    def at(self, link: str) -> "Seen | None":
        """The same run with the figures of a link in place of the first one's; none where there is no such link."""
        there = links.of(self.scenario)
        if not link or [link] == list(there):
            return self
        if link not in self.window.links:
            return None
        summary = {**self.summary, **links.figures(self.summary, link)}
        scenario = {**self.scenario, links.MANY: {link: there[link]}}
        return replace(self, window=self.window.at(link), summary=summary, scenario=scenario)


def runs_of(subject: Subject) -> list[Seen]:
    """Each of its runs."""
    pairs = enumerate(zip(subject.windows, subject.summaries, strict=True))
    return [Seen(one, summary, subject.scenario, partial(subject.of_parts, k)) for k, (one, summary) in pairs]
