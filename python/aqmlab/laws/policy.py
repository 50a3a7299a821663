"""Policies: networks in files of ONNX that say how the queue is to be seen and what the answer stands for.

A policy is a law. The engine counts what happens at the queue, a step after the other, and asks the network at the end
of each; onnxruntime reckons it, on one thread.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import engine
from aqmlab.errors import BadInput, CannotRun
from aqmlab.laws import interrupted
from aqmlab.laws.observed import MOST_WINDOWS, QUANTITIES, Eyes, Range, Seen, check_names, check_windows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ENDING = ".onnx"
EXTRA = 'pip install "aqmlab[gym]"'
"""What brings onnxruntime."""

KEY = "aqmlab"
"""Of the file's metadata, under which `About` stands as JSON."""
VERSION = 1
"""Of that."""
INPUT, OUTPUT = "observation", "action"

Ask = Callable[[tuple[Any, ...]], float]
"""What the engine calls at the end of a step with what was seen; the answer is a probability."""


@dataclass(frozen=True)
class About:
    """What a policy's file says of it."""

    name: str
    """What the law is called."""
    doc: str
    step_ns: int
    observe: tuple[str, ...]
    windows: int
    action: Range
    """The probabilities that its answers stand for."""

    def as_text(self) -> str:
        """For the file's metadata."""
        return json.dumps(
            {
                "version": VERSION,
                "name": self.name,
                "doc": self.doc,
                "step_ns": self.step_ns,
                "observe": list(self.observe),
                "windows": self.windows,
                "action": {"probability": self.action.as_dict()},
            }
        )

    @property
    def size(self) -> int:
        """Numbers of an observation."""
        return len(self.observe) * self.windows

    def check(self, where: str) -> None:
        """Raises `BadInput` if it makes no sense."""
        check_names(self.observe, list(QUANTITIES), f"{where}: observe")
        check_windows(self.windows, f"{where}: windows")
        self.action.check(f"{where}: action")
        if not 0.0 <= self.action.low < self.action.high <= 1.0:
            raise BadInput(f"{where}: action: expected probabilities from 0 to 1")
        if not 1_000 <= self.step_ns <= 10**12:
            raise BadInput(f"{where}: step_ns: {self.step_ns}: expected from 1000 to 10^12")


@lru_cache
def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise CannotRun(f"onnxruntime is not installed; expected {EXTRA}, for policies in files of ONNX") from None
    return onnxruntime


def built_with() -> str:
    """What reckons policies here, for the record."""
    return f"onnxruntime {_onnxruntime().__version__}"


def about(text: str | None, where: str) -> About:
    """What the metadata of a file says; raises `BadInput` where it is none of a policy's."""
    expected = "expected a policy that aqmlab.gym has saved"
    if text is None:
        raise BadInput(f"{where}: no metadata {KEY!r}; {expected}")
    try:
        said = json.loads(text)
        if said["version"] != VERSION:
            raise BadInput(f"{where}: version {said['version']!r} of a policy; expected {VERSION}")
        scale = said["action"]["probability"]
        found = About(
            str(said["name"]),
            str(said["doc"]),
            int(said["step_ns"]),
            tuple(str(name) for name in said["observe"]),
            said["windows"],
            Range(float(scale["low"]), float(scale["high"]), str(scale["scale"])),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{where}: its metadata {KEY!r} cannot be read; {expected}") from None
    found.check(where)
    assert found.windows <= MOST_WINDOWS
    return found


class Network:
    """The network of a file, ready to be asked."""

    def __init__(self, content: bytes, where: str) -> None:
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # each of its errors has a class of its own
            reason = " ".join(str(error).split())
            raise BadInput(f"{where}: {reason}; expected a network that onnxruntime reads") from None
        self.about = about(self._session.get_modelmeta().custom_metadata_map.get(KEY), where)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        shape = [1, self.about.size]
        if len(inputs) != 1 or inputs[0].type != "tensor(float)" or inputs[0].shape != shape or len(outputs) != 1:
            raise BadInput(f"{where}: expected one input of shape {shape}, floats, and one output")
        self._input, self._output = inputs[0].name, outputs[0].name
        self._answers_one = outputs[0].type == "tensor(float)" and outputs[0].shape == [1, 1]

    def answer(self, observation: Any) -> float:
        """The action for an observation, a vector of float32."""
        (found,) = self._session.run(None, {self._input: observation.reshape(1, -1)})
        return float(found.reshape(-1)[0])

    def asked(self) -> Ask:
        """What decides in one queue: it has eyes of its own."""
        found = self.about
        eyes = Eyes(found.step_ns * 1e-9, found.observe, found.windows)
        answer: Callable[[], float] | None = None

        def ask(counts: tuple[Any, ...]) -> float:
            nonlocal answer
            interrupted.end_here()
            eyes.look(Seen(*counts))
            if answer is None:  # of many queues most are never asked
                answer = self._bound(eyes.row)
            return found.action.value(answer())

        return ask

    def _bound(self, row: "npt.NDArray[np.float32]") -> Callable[[], float]:
        """What answers for the observation that stands in a row, as `answer` does, in half of the time."""
        import numpy as np  # commands begin without it

        if not self._answers_one:
            return lambda: self.answer(row)
        said, binding = np.zeros((1, 1), np.float32), self._session.io_binding()
        binding.bind_input(self._input, "cpu", 0, np.float32, row.shape, row.ctypes.data)
        binding.bind_output(self._output, "cpu", 0, np.float32, said.shape, said.ctypes.data)
        run = partial(self._session.run_with_iobinding, binding)

        def answer(seen: "npt.NDArray[np.float32]" = row) -> float:  # the network reads its memory
            run()
            return float(said.item())

        return answer


def bring(content: bytes, path: Path, sha256: str) -> dict[str, Any]:
    """Brings the policy of a file for scenarios that name it: its `disciplines`."""
    network = Network(content, str(path))
    said = network.about
    return engine.bring_policy(
        said.name, said.doc, f"a policy, {path.name}", said.step_ns, said.windows, network.asked, path, sha256
    )
