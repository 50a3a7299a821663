"""Published studies as data: what they ran, what they claimed, and whether it holds here."""

from aqmlab.study.commands import read
from aqmlab.study.definition import Study, known
from aqmlab.study.runs import Finished, run

__all__ = ["Finished", "Study", "known", "read", "run"]
