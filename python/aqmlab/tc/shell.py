"""What a shell makes of the lines of a script, as far as lines of `tc` need it: variables, and functions that echo."""

import re
from collections.abc import Iterator
from itertools import takewhile

_ASSIGNED = re.compile(
    r"(?:(?:export|readonly|local)\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;\"'()]*)\s*;?\s*(?:#.*)?"
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-=])([^{}]*))?\}|([A-Za-z_]\w*))")
_FUNCTION = re.compile(r"^[ \t]*(\w+) ?\(\) *\{[^{}]{0,2000}?\becho ([^;{}\n]*)", re.MULTILINE)
_CALL = re.compile(r"\$\((\w+)(?: [^()]*)?\)")
_END = re.compile(r"[|;&]+|\d*>.*")

LONGEST_VALUE = 1000
"""Characters of a variable: more than any word of tc has."""


class Shell:
    """The variables of a script up to the line at hand, and what its functions print."""

    def __init__(self, text: str) -> None:
        self.is_script = text.lstrip("\ufeff \t\n").startswith("#!")
        """Whether the text says that it is one, so that it has lines that are nothing of tc's."""
        self._variables: dict[str, str] = {}
        self._printed = dict(_FUNCTION.findall(text))

    def read(self, line: str) -> str:
        """The line as the shell would run it; what nobody has set stands as it is written."""
        if (assigned := _ASSIGNED.fullmatch(line)) is not None:
            value = assigned[2] if assigned[2].startswith("'") else _VARIABLE.sub(self._value, assigned[2])
            self._variables[assigned[1]] = value.strip("\"'")[:LONGEST_VALUE]
            return ""
        if "$" not in line or line.startswith("#"):
            return line
        expanded = _CALL.sub(lambda call: self._printed.get(call[1], call[0]), _VARIABLE.sub(self._value, line))
        return "" if re.match(r":\s", line) else expanded

    def _value(self, found: re.Match[str]) -> str:
        name, sign, other = found[1] or found[4], found[2], found[3]
        value = self._variables.get(name)
        if sign is not None and (value is None or (not value and sign.startswith(":"))):
            value = other.strip("\"'")
            if sign.endswith("="):
                self._variables[name] = value[:LONGEST_VALUE]
        return found[0] if value is None else value


def words_of(command: str) -> Iterator[str]:
    """The words of one command without their quotes, up to what the shell does with its end or its output."""
    words = command.split(" #")[0].split()
    return (word.strip("\"'") for word in takewhile(lambda word: _END.fullmatch(word) is None, words))
