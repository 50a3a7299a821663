"""Runs that were made once and need not be made again: the cache of condensed runs.

A run is known by its resolved scenario (its seed is in it), the modules that its laws import, the compiled engine, and
the Python that checks and condenses what the engine leaves, so that what was built or written anew never answers with
what an older one found.
Folders appear whole or not at all, and two processes may write the same one at once.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from aqmlab import arguments
from aqmlab.errors import BadInput, Interrupted, doubt
from aqmlab.files import cache_folder
from aqmlab.scenario import digest
from aqmlab.sweep.condensed import FORMAT, Condensed
from aqmlab.sweep.maker import maker

STALE_S = 24 * 3600.0
"""Age at which something half-written is nobody's any more."""

UNUSED_S = 90 * 24 * 3600.0
"""Age at which a run that nobody asked for since is removed: mostly those of engines that are no more."""


def key_of(scenario_digest: str, modules: str = "") -> str:
    """What a run is known by; `modules` is a digest of what its laws import, if they do."""
    own = {"modules": modules} if modules else {}
    return digest({"scenario": scenario_digest, "made by": maker(), "format": FORMAT, **own})


ATTEMPTS = 5
"""How often a run is put in its place while others put the same one there."""


class Kept:
    """The cache; one that cannot be read or written costs time only.

    What it could not write it holds in memory, before anything older that lies under the same name.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else cache_folder() / "runs"
        self._held: dict[str, Condensed] = {}

    def check(self) -> None:
        """Says in a line that nothing can be kept, where that is so."""
        if (why := self.unusable()) is not None:
            doubt(
                f"{self.folder}: runs cannot be kept there ({why}), and are made again if this is stopped; expected a "
                "folder that can be written, as AQMLAB_CACHE names another"
            )

    def again(self, fresh: bool = False) -> str:
        """How what was stopped goes on; what was `fresh` takes what it did not come to from before."""
        if self._held or self.unusable() is not None:
            return f"runs cannot be kept in {self.folder}, and are made again"
        old = ", with runs from before where none was made anew yet" if fresh else ""
        return f"{arguments.again(fresh)} goes on{old}"

    @contextlib.contextmanager
    def interruptible(self, what: str, fresh: bool) -> Iterator[None]:
        """Says of Ctrl-C meanwhile `what` was done by then, and how it goes on."""
        try:
            yield
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise Interrupted(f"{what}; {self.again(fresh)}") from None

    def unusable(self) -> str | None:
        """Why nothing can be written, if so."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                return None
        except OSError as error:
            return error.strerror or str(error)

    def has(self, key: str) -> bool:
        """Whether a run is kept."""
        return key in self._held or (self.folder / key).is_dir()

    def load(self, key: str) -> Condensed:
        """A run that is kept."""
        found = self.get(key)
        if found is None:
            raise BadInput(f"{self.folder / key}: is gone or cannot be read; expected a run that was kept")
        return found

    def get(self, key: str) -> Condensed | None:
        """A run, if it is kept and can be read."""
        if key in self._held:
            return self._held[key]
        place = self.folder / key
        for _ in range(2):  # once more: somebody may have put it there anew in the middle of reading
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found = Condensed.load(place)
                with contextlib.suppress(OSError):  # a cache that is only read has nothing to be removed either
                    os.utime(place)
                return found if found.key == key else None
        return None

    def put(self, condensed: Condensed) -> bool:
        """Keeps a run in the place of an older one; whether that can be read by others."""
        is_written = self._write(condensed)
        if is_written:
            self._held.pop(condensed.key, None)
        else:
            self._held[condensed.key] = condensed
        return is_written

    def _write(self, condensed: Condensed) -> bool:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=f".{condensed.key[:12]}.", dir=self.folder))
        except OSError:
            return False
        try:
            condensed.save(partial)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            return False
        final = self.folder / condensed.key
        for attempt in range(ATTEMPTS):
            old = partial.with_name(f"{partial.name}.{attempt}")
            with contextlib.suppress(OSError):  # somebody else was faster
                if final.exists():  # made again on request, or what is there cannot be read
                    final.rename(old)
                partial.rename(final)
            shutil.rmtree(old, ignore_errors=True)
            if not partial.exists():
                return True
        shutil.rmtree(partial, ignore_errors=True)
        return False

    def size(self) -> tuple[int, int]:
        """How many runs are kept, and how many bytes they take."""
        runs = [entry for entry in self._entries() if not entry.name.startswith(".")]
        count, size = 0, 0
        for run in runs:
            with contextlib.suppress(OSError):  # no run, or one that somebody removes meanwhile
                size += sum(file.stat().st_size for file in os.scandir(run.path))
                count += 1
        return count, size

    def tidy(self) -> None:
        """Removes what nobody finished writing, and what nobody has asked for in a long time."""
        for entry in self._entries():
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > (STALE_S if entry.name.startswith(".") else UNUSED_S):
                    shutil.rmtree(entry.path, ignore_errors=True)

    def _entries(self) -> Iterator["os.DirEntry[str]"]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            yield from entries
