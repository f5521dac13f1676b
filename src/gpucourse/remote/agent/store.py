"""From the node's store of uploaded files (`~/.gpucourse/store/<key>`, one a content) to the work folder of a run."""

from __future__ import annotations

import os
import shutil

from gpucourse.remote.agent.job import JobRefused, home, mapping


def lay_out(wanted: object, folder: str) -> None:
    """Make the work folder anew: each file copied from the store under its own name."""
    files = [mapping(file) for file in wanted] if isinstance(wanted, list) else []
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.makedirs(folder, 0o700)
    lacking = [str(file["name"]) for file in files if not os.path.exists(_blob(str(file["key"])))]
    if lacking:
        raise JobRefused(f"{len(lacking)} files are not in the store, first {lacking[0]!r}", "missing")
    for file in files:
        name = str(file["name"])
        parts = name.split("/")
        if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise JobRefused(f"not a name for a file in the work folder: {name!r}")
        target = os.path.join(folder, *parts)
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        shutil.copyfile(_blob(str(file["key"])), target)
        os.chmod(target, 0o700 if file.get("executable") else 0o600)


def _blob(key: str) -> str:
    if not key or not all(char.isalnum() or char == "-" for char in key):
        raise JobRefused(f"not a key: {key!r}")
    return os.path.join(home(), "store", key)
