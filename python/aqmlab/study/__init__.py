"""Published studies as data: what they ran, what they claimed, and whether it holds here."""

from typing import TYPE_CHECKING

from aqmlab import deferred

if TYPE_CHECKING:
    from aqmlab.study.chosen import read
    from aqmlab.study.definition import Study
    from aqmlab.study.folders import known
    from aqmlab.study.runs import Finished, run
else:
    __getattr__, __dir__ = deferred.names(
        __name__,
        {
            "Study": "aqmlab.study.definition",
            "known": "aqmlab.study.folders",
            "read": "aqmlab.study.chosen",
            **dict.fromkeys(("Finished", "run"), "aqmlab.study.runs"),
        },
    )

__all__ = ["Finished", "Study", "known", "read", "run"]
