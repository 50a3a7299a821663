"""The comparison of a study that is also run between real TCP stacks, at the load that a machine carries."""

from pathlib import Path

from aqmlab import api, report
from aqmlab.agreement.agreements import Agreement, of_comparison
from aqmlab.errors import BadInput
from aqmlab.progress import Monitor, View
from aqmlab.study import compared
from aqmlab.study.definition import Study


def comparison_file(study: Study) -> Path:
    """Where it stands; a study need not have one."""
    if study.live is None:
        raise BadInput(
            f"{study.folder / 'study.toml'}: live: missing; expected a comparison file for --live, --virtual"
        )
    return study.live


def compare(
    study: Study, folder: Path, witness: str, *, jobs: int | None, monitor: Monitor, view: View | None
) -> list[Agreement]:
    """Runs it in `folder/live`, or in `folder/virtual` in virtual time, and says where simulator and test bed agree.

    What is finished there of the same comparison is not run again; another one's results are not thrown away.
    """
    facts, place = study.tree["live"], folder / witness
    found = api.compare(
        comparison_file(study),
        seed=facts.get("seed"),
        reps=int(facts.get("reps", 1)),
        out=place,
        live=witness == "live",
        virtual=witness == "virtual",
        jobs=jobs,
        resume=place.is_dir(),
        monitor=monitor,
        view=view,
    )
    report.write(found, compared.claims(found))
    return of_comparison(found)
