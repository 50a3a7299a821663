"""Files of JSON that aqmlab wrote: an object each, and what is wrong with one is said in a line."""

import json
from pathlib import Path
from typing import Any

from aqmlab import files
from aqmlab.errors import BadInput

Json = dict[str, Any]


def read_json(path: Path) -> Json:
    """Reads a JSON object; what is wrong with the file is said in one line."""
    try:
        value = json.loads(files.text(path, files.RESULT))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object")
    return value
