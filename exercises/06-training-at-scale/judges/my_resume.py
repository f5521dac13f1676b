"""Judges my_resume.py of 6.5: the checkpoint that it chooses from a folder, and how often it saves."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "half-written": Way(
        "latest returns {given}, which has no .metadata: its save was cut short, and every load of it fails. The next life "
        "would end there, too, and the one after it, until no restart is left",
        (' and (path / ".metadata").is_file()', ""),
    ),
    "renamed-late": Way(
        "latest returns {given}, where .metadata still has its first name: the checkpoint is whole only after the rename",
        ('(path / ".metadata").is_file()', 'any(path.glob(".metadata*"))'),
    ),
    "any-file": Way(
        "latest returns {given}, which has the shard of one rank but not of the others: one file does not make it whole",
        ('(path / ".metadata").is_file()', "any(path.iterdir())"),
    ),
    "by-name": Way(
        "latest returns {given}, but {right} is later: as text, 9 comes after 1. Compare the steps as numbers",
        ("whole[max(whole)] if whole", "max(whole.values(), key=lambda path: path.name) if whole"),
        seen="latest returns {given}, but {right} is of a later step",
    ),
    "by-time": Way(
        "latest returns {given}, but {right} is of a later step: the folder was copied, so its time is new. The step "
        "is in the name",
        ("whole[max(whole)] if whole", "max(whole.values(), key=lambda path: path.stat().st_mtime) if whole"),
        seen="latest returns {given}, but {right} is of a later step. In this folder the later step has the older time",
    ),
    "oldest": Way(
        "latest returns {given}, the earliest: everything after it would be repeated. {right} is the latest that is whole",
        ("whole[max(whole)] if whole", "whole[min(whole)] if whole"),
    ),
    "other-folder": Way(
        "latest returns {given}, which is not a checkpoint: its name is not step_ and a number",
        ('re.fullmatch(r"step_(\\d+)", path.name)', 're.search(r"(\\d+)", path.name)'),
    ),
    "none-at-first": Way(
        "with {where} latest {what}: a new training has no checkpoint to continue from, so return None",
        ("folder.iterdir() if folder.is_dir() else ()", "folder.iterdir()"),
    ),
    "each-step": Way(
        "you save after every step, whatever a save costs: at {cost_s:g} s a save and {step_s:g} s a step the saves take "
        "{percent:.0f}% of the time. Young: sqrt(2 x cost x MTBF) seconds",
        ("max(1, round(interval_s / step_s))", "1"),
    ),
    "no-two": Way(
        "your interval is sqrt(cost x MTBF), 0.71 of the best one: a crash loses half an interval on average, not a whole one, "
        "and that half leads to the 2 in sqrt(2 x cost x MTBF)",
        ("math.sqrt(2 * cost_s * mtbf_s)", "math.sqrt(cost_s * mtbf_s)"),
    ),
    "no-root": Way(
        "your interval is 2 x cost x MTBF, which is the square of the best one: seconds times seconds are not seconds",
        ("math.sqrt(2 * cost_s * mtbf_s)", "2 * cost_s * mtbf_s"),
    ),
    "in-seconds": Way(
        "you returned the interval in seconds ({seconds:.3g}), not in steps: divide by the seconds of a step",
        ("round(interval_s / step_s)", "round(interval_s)"),
    ),
    "once-a-failure": Way(
        "you save once per mean time between failures: a crash then loses about half of all work",
        ("interval_s = math.sqrt(2 * cost_s * mtbf_s)", "interval_s = mtbf_s"),
    ),
    "fixed": Way(
        "you return {given} steps in all {count} cases, whatever a save costs and however often something fails. Young's are "
        "{least:,.0f} to {largest:,.0f}: sqrt(2 x cost x MTBF) seconds",
        ("max(1, round(interval_s / step_s))", "1000"),
    ),
    "never": Way(
        "with a save that takes {cost_s:g} s and a step of {step_s:g} s you returned {given} steps: it must be at least 1",
        ("max(1, round(interval_s / step_s))", "int(interval_s / step_s)"),
    ),
    "no-whole-number": Way(
        "save_every returned {given!r}: steps are a whole number (int)",
        ("max(1, round(interval_s / step_s))", "max(1.0, interval_s / step_s)"),
    ),
}  # fmt: skip

CASES = [(2.0, 0.5, 14400.0), (0.1, 0.05, 1.25), (30.0, 1.0, 3600.0), (5.0, 0.02, 86400.0), (0.4, 8.0, 20000.0)]
"""Seconds of a save, of a step, and between failures: Young's interval is far above one step in each case."""
_NEAR = 0.12
"""The largest difference from Young's or Daly's interval, as a share."""


def judge(part: Part) -> None:
    """Judge the checkpoints of ten folders, then the interval at several costs."""
    latest, save_every = part.function("latest"), part.function("save_every")
    with tempfile.TemporaryDirectory() as folder:
        count = _check_latest(part, latest, Path(folder))
    _check_interval(part, save_every)
    part.note(f"right for {count} folders of checkpoints, and for {len(CASES) + 2} costs of a save")


def _make(folder: Path, name: str, *files: str, at: float = 0.0) -> Path:
    """Create a checkpoint's folder with these files, last changed at the time `at`, and return it."""
    path = folder / name
    path.mkdir(parents=True)
    for file in files:
        (path / file).write_text("x")
    os.utime(path, (1e9 + at, 1e9 + at))
    return path


_ALL = ("__0_0.distcp", "__1_0.distcp", ".metadata")


def _check_latest(part: Part, latest: Callable[..., Any], top: Path) -> int:
    (top / "empty").mkdir()
    _make(top / "only-half", "step_000005")
    for name in ("gone", "empty", "only-half"):
        _check_nothing(part, latest, top / name, name)
    cases = {
        "two whole ones": ("oldest", [("step_000005", _ALL, 0), ("step_000010", _ALL, 1)], 1),
        "the newest cut short": ("half-written", [("step_000010", _ALL, 0), ("step_000900", (), 1)], 0),
        "the newest two cut short": (
            "half-written", [("step_000010", _ALL, 0), ("step_000900", (), 1), ("step_001000", (), 2)], 0),
        "shards of one rank only": ("any-file", [("step_000010", _ALL, 0), ("step_000015", ("__0_0.distcp",), 1)], 0),
        "a .metadata that is not renamed yet": (
            "renamed-late", [("step_000010", _ALL, 0), ("step_000015", (*_ALL[:2], ".metadata.tmp"), 1)], 0),
        "a million steps": ("by-name", [("step_999999", _ALL, 0), ("step_1000000", _ALL, 1)], 1),
        "one of a million steps": ("by-name", [("step_1000000", _ALL, 0)], 0),
        "an earlier step that was copied": ("by-time", [("step_000010", _ALL, 9), ("step_000015", _ALL, 1)], 1),
        "other folders beside": (
            "other-folder", [("step_000010", _ALL, 0), ("step_000020.old", _ALL, 1), ("export_30", _ALL, 2)], 0),
    }  # fmt: skip
    choices: list[tuple[Any, Path]] = []
    for number, (case, (_, contents, right)) in enumerate(cases.items()):
        folder = top / f"case-{number}"
        paths = [_make(folder, name, *files, at=at) for name, files, at in contents]
        (folder / "losses.jsonl").write_text("{}\n")
        choices.append((part.call(latest, folder, case=case), paths[right]))
    names = [getattr(answer, "name", str(answer)) for answer, _ in choices]
    for (case, (way, _, _)), (answer, path) in zip(cases.items(), choices, strict=True):
        _check_choice(part, way, case, answer, path, names)
    return len(cases) + 3


def _check_nothing(part: Part, latest: Callable[..., Any], folder: Path, name: str) -> None:
    case = {"gone": "a folder that does not exist", "empty": "an empty folder", "only-half": "one checkpoint cut short"}[name]
    try:
        answer = latest(folder)
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way, and is told how
        if name == "only-half" or not isinstance(error, (OSError, IndexError, ValueError)):
            raise part.make_verdict(error, case) from None
        raise part.wrong("none-at-first", case, where=case, what=f"raises {type(error).__name__}") from None
    if answer is not None and name == "only-half":
        raise part.wrong("half-written", case, given=getattr(answer, "name", answer))
    if answer is not None:
        raise part.wrong("none-at-first", case, where=case, what=f"gives {answer}")


def _check_choice(part: Part, way: str, case: str, answer: object, right: Path, names: list[Any]) -> None:
    if answer is None:
        raise Verdict("failed", "no-answer", f"latest returns None, but {right.name} is whole", case)
    if not isinstance(answer, Path):
        raise Verdict("failed", "no-path", f"latest returns {answer!r}, not the Path of the checkpoint's folder", case)
    if answer != right:
        if answer.parent != right.parent:
            raise Verdict("failed", "no-path", f"latest returns {answer}, not a folder inside the given one", case)
        raise part.wrong(way, case, output=names, given=answer.name, right=right.name)


def _check_interval(part: Part, save_every: Callable[..., Any]) -> None:
    answers = [part.call(save_every, *case, case=_name(case)) for case in CASES]
    for answer, case in zip(answers, CASES, strict=True):
        if isinstance(answer, bool) or not isinstance(answer, int):
            raise part.wrong("no-whole-number", _name(case), given=answer)
    best = [math.sqrt(2 * cost_s * mtbf_s) / step_s for cost_s, step_s, mtbf_s in CASES]
    ways = {
        "each-step": [1.0 for _ in CASES],
        "no-two": [steps / math.sqrt(2) for steps in best],
        "no-root": [2 * cost_s * mtbf_s / step_s for cost_s, step_s, mtbf_s in CASES],
        "in-seconds": [steps * step_s for steps, (_, step_s, _) in zip(best, CASES, strict=True)],
        "once-a-failure": [mtbf_s / step_s for _, step_s, mtbf_s in CASES],
    }
    bad = next((place for place, steps in enumerate(answers) if not _is_near(steps, CASES[place])), None)
    if bad is not None:
        cost_s, step_s, mtbf_s = CASES[bad]
        facts = {"cost_s": cost_s, "step_s": step_s, "percent": 100 * cost_s / (cost_s + step_s)}
        for way, steps in ways.items():
            if all(abs(steps_of_answer - its) <= 1 + 1e-6 * its for steps_of_answer, its in zip(answers, steps, strict=True)):
                raise part.wrong(way, _name(CASES[bad]), seconds=best[bad] * step_s, **facts)
        if len(set(answers)) == 1:
            raise part.wrong("fixed", given=answers[0], count=len(CASES), least=min(best), largest=max(best))
        near = [_name(case) for steps, case in zip(answers, CASES, strict=True) if _is_near(steps, case)]
        beside = f". It is right for {near[0]}" if near else ""
        says = (
            f"it returned {answers[bad]:,} steps, {answers[bad] * step_s:,.6g} s; Young's interval has {best[bad]:,.0f} steps"
        )
        raise Verdict("failed", "other", says + beside, _name(CASES[bad]))
    for cost_s, step_s, mtbf_s in ((0.001, 10.0, 60.0), (0.0, 1.0, 3600.0)):
        answer = part.call(save_every, cost_s, step_s, mtbf_s, case=_name((cost_s, step_s, mtbf_s)))
        if answer != 1:
            raise part.wrong("never", _name((cost_s, step_s, mtbf_s)), cost_s=cost_s, step_s=step_s, given=answer)


def _is_near(steps: int, case: tuple[float, float, float]) -> bool:
    """Return whether an interval is close to Young's or to Daly's. Daly's is shorter by up to the time of a save."""
    cost_s, step_s, mtbf_s = case
    young = math.sqrt(2 * cost_s * mtbf_s) / step_s
    return (1 - _NEAR) * (young - cost_s / step_s) - 1 <= steps <= (1 + _NEAR) * young + 1


def _name(case: tuple[float, float, float]) -> str:
    cost_s, step_s, mtbf_s = case
    return f"a save of {cost_s:g} s, steps of {step_s:g} s, a failure every {mtbf_s:g} s"
