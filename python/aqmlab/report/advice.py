"""The page of an advice, and what lies beside it: its numbers, its figure, two scenarios to go on with."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from aqmlab import engine, figures
from aqmlab.advice import assumptions, cells, gains, lines, more, scores, situation, words
from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.advice.verified import Verified
from aqmlab.figures import advice as drawing
from aqmlab.report.templates import environment
from aqmlab.results import store

SCENARIOS = ("today.toml", "recommended.toml")

VECTORS = "traffic.cvec"
"""What these ask for, where the traffic is that of a capture."""


def _again(found: Advice) -> str:
    """The command that runs the two scenarios; where today's queue is recommended, they are the same one."""
    today, _ = SCENARIOS
    verb = f"run {today}" if found.race.first == TODAY else f"compare {' '.join(SCENARIOS)}"
    return f"aqmlab {verb} --reps 5 --report"


def write(found: Advice, command: Sequence[str], folder: Path, verified: Verified | None = None) -> Path:
    """Writes `report.html`, `advice.json`, figure, the router's lines and the first round's scenarios into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = figures.pictures(drawing.candidates(found))
    written, of_router = lines.of(found.question, found.first), lines.file(found.question, found.first)
    page = (
        environment()
        .get_template("report/advice.html.j2")
        .render(
            link=words.link(found.question),
            verdict=[*words.verdict(found), *words.captured(found.question)],
            of_homes=found.question.homes is not None,
            has_films=found.question.mix.video[1] > 0,
            own_traffic=found.question.captured is not None,
            first=found.race.first,
            today=TODAY,
            today_said=words.today(found.question),
            wrong=assumptions.wrong(found),
            wrong_head=assumptions.wrong_head(found),
            notes=words.notes(found),
            worth=gains.rows(found),
            headings=[cells.title(one) for one in found.figures],
            rows=words.field(found),
            costs=words.cost(found),
            verified=[] if verified is None else words.verified(verified),
            witnesses=[] if verified is None else words.witnesses(verified),
            drawn=drawn,
            lines=written,
            of_router="" if of_router is None else of_router[0],
            checks=[*words.checks(found.question, written), _again(found)],
            unknown=assumptions.unknown(found.question),
            granted=assumptions.granted(found),
            score=scores.how(found.question),
            states=words.states(found),
            rounds=found.race.rounds,
            runs=found.runs,
            command=shlex.join(command),
            going_on=more.going_on(found, command),
            version=engine.version(),
        )
    )
    path = folder / "report.html"
    store.write_json(folder / "advice.json", words.as_dict(found, verified))
    drawn_by_seed = situation.draw(found.question, 0)
    if drawn_by_seed.piece is not None:
        shutil.copyfile(drawn_by_seed.piece.vectors, folder / VECTORS)
    for name, candidate in zip(SCENARIOS, (found.candidates[0], found.first), strict=True):
        made = situation.scenario(found.question, drawn_by_seed, candidate, None, str(folder / name), VECTORS)
        store.write_text(folder / name, made.toml)
    if of_router is not None:
        store.write_text(folder / of_router[0], of_router[1])
    store.write_text(path, page)
    figures.save([drawn], folder / "figures")
    return path
