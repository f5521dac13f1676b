"""Judging a part in this very process: `apart` calls it in the process that it started."""

from __future__ import annotations

import importlib.util
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from gpucourse.judge.part import Part
from gpucourse.judge.ranks import StartRanks, run_ranks
from gpucourse.judge.verdict import Verdict

LONGEST_SENTENCE, LONGEST_CASE, MOST_NOTES = 2000, 500, 20


def judge_here(request: dict[str, Any], start_ranks: StartRanks = run_ranks) -> dict[str, Any]:
    """Return the verdict as an answer: {"word", "way", "says", "case", "notes"}, each of a bounded length."""
    sys.path[:0] = [*request.get("path", ()), str(Path(request["judge"]).parent)]
    sys.dont_write_bytecode = True
    part = Part(
        Path(request["file"]),
        request.get("metrics") or {},
        deadline=time.monotonic() + request["limit_s"],
        times=request.get("times", 1),
        start_ranks=start_ranks,
    )
    verdict = _judge(part, Path(request["judge"]))
    answer: dict[str, Any] = {
        "word": verdict.word,
        "way": verdict.way,
        "says": _shorten(verdict.says, LONGEST_SENTENCE),
        "case": _shorten(verdict.case, LONGEST_CASE),
        "notes": [_shorten(note, LONGEST_CASE) for note in part.notes[:MOST_NOTES]],
    }
    if verdict.suspicion:
        answer["suspicion"] = verdict.suspicion
    return answer


def _judge(part: Part, judge_path: Path) -> Verdict:
    try:
        judge_file = load_judge(judge_path)
        part.ways = judge_file.WAYS
        judge_file.judge(part)
    except Verdict as verdict:
        return verdict
    except BaseException as error:  # noqa: BLE001  # the place of the error shows whose fault it is
        if part.is_own_fault(error):
            return part.make_verdict(error)
        traceback.print_exc(file=sys.stdout)
        return Verdict("error", "judge", f"the course's judge itself failed: {type(error).__name__}: {error}")
    return Verdict("passed")


def load_judge(path: Path, more: tuple[Path, ...] = ()) -> Any:
    """Return a judge file of the course as a module with `WAYS` and `judge`. It may import files beside it and in `more`
    folders."""
    sys.path += [folder for folder in map(str, (path.parent, *more)) if folder not in sys.path]
    spec = importlib.util.spec_from_file_location(f"judge_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the types of their fields
    spec.loader.exec_module(module)
    return module


def _shorten(text: str, longest: int) -> str:
    """Return a text that UTF-8 can encode, cut to at most `longest` characters."""
    safe = text.encode("utf-8", "replace").decode()
    return safe if len(safe) <= longest else f"{safe[: longest - 4]} ..."
