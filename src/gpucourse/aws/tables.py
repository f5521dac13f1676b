"""The dated tables that ship with the package: instance types and prices."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> Any:
    """Return the JSON document `data/<name>.json` of this package. The object is shared: never change it."""
    return json.loads(text(f"{name}.json"))


def text(name: str) -> str:
    """Return the text of a file in the package's `data` folder."""
    return files("gpucourse.aws").joinpath(f"data/{name}").read_text(encoding="utf-8")
