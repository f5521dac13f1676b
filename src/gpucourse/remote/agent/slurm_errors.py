"""Adding the error file that a job's batch file names to the job's log, where users look for errors."""

from __future__ import annotations

import glob
import os
import re
import stat

from gpucourse.remote.agent.job import Job, mapping

MOST_BYTES = 1 << 20
"""The number of bytes from the end of an error file that are added; the file itself is collected as it is."""

_WORD = re.compile(r"%(\d*)([%a-zA-Z])")


def add_to_logs(job: Job, rows: list[dict[str, object]]) -> None:
    """Add the error file of every job to that job's log, once. If it is not there, or no regular file, add a line about
    that."""
    asked = mapping(mapping(job.read("slurm.json") or {}).get("slurm") or {})
    files = asked.get("files")
    wishes = (
        {str(mapping(file)["name"]): str(mapping(file).get("error") or "") for file in files} if isinstance(files, list) else {}
    )
    if not any(wishes.values()):
        return
    first_logs = {name.partition("-")[0]: name for name in sorted(os.listdir(job.path("logs")), reverse=True)}
    for row in rows:
        number, wish = str(row["job"]), wishes.get(str(row["file"]), "")
        if not wish or number not in first_logs or job.has(f"errors-{number}"):
            continue
        job.write(f"errors-{number}", {})
        log = job.path("logs", first_logs[number])
        paths = sorted(glob.glob(os.path.join(glob.escape(job.path("work")), pattern(wish, number))))
        if not paths:
            _append(log, f"its errors went to {wish}, which is not on this node")
        for path in paths:
            _add(path, log)


def pattern(wish: str, number: str) -> str:
    """Return a glob pattern for the names that sbatch's pattern may mean: the job's number is known (12, or 12_3 for a task of
    an array); `*` replaces the rest."""
    array, _, task = number.partition("_")
    known = {"A": array, "a": task} if task else {"A": array, "j": array}
    result, place = "", 0
    for word in _WORD.finditer(wish):
        result += glob.escape(wish[place : word.start()])
        width, letter = word.groups()
        result += "%" if letter == "%" else known[letter].zfill(int(width or 0)) if letter in known else "*"
        place = word.end()
    return result + glob.escape(wish[place:])


def make_folder(job: Job, wish: str) -> None:
    """Make the folder of an error file in the work folder: without it, Slurm ends the job at once."""
    parts = wish.split("/")[:-1]
    known = [part for place, part in enumerate(parts) if not any("%" in earlier for earlier in parts[: place + 1])]
    if known and not os.path.isabs(wish) and ".." not in parts:
        os.makedirs(job.path("work", *known), 0o700, exist_ok=True)


def _add(path: str, log: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        _append(log, f"its errors went to {path}, which cannot be read: {error.strerror}")
        return
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            _append(log, f"its errors went to {path}, which is not a regular file")
            return
        if not info.st_size or os.path.samestat(info, os.stat(log)):
            return
        text = os.pread(handle, MOST_BYTES, max(0, info.st_size - MOST_BYTES))
    finally:
        os.close(handle)
    _append(log, f"{os.path.basename(path)}, the job's error file:", text)


def _append(log: str, line: str, text: bytes = b"") -> None:
    """Add a line of ours to the log, and text below it. The log's own last line may have no end."""
    with open(log, "ab") as target:
        target.write(f"\n{line}\n".encode("utf-8", "surrogateescape"))
        target.write(text if not text or text.endswith(b"\n") else text + b"\n")
