"""Prove that a judge of the course is right: the delivered file is open, every solution passes, and every wrong way is
recognised.

A file that is delivered with an error to repair is not open: it runs and fails its judge. A learner who changes only a comment
has repaired nothing.

python -m gpucourse.judge.proof exercises/03-parallel-computing/my_line.py    prints the verdict on each version
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpucourse.judge.apart import load_judge
from gpucourse.judge.client import Judge, JudgeAnswer
from gpucourse.judge.part import Way

SOLUTIONS, OTHER, JUDGES = "solutions", "other", "judges"


@dataclass(frozen=True)
class Proof:
    """One version of a part: its name, the verdict on it, and what is wrong with that verdict (an empty string if the verdict
    is right)."""

    version: str
    answer: JudgeAnswer
    complaint: str


def judge_of(file: Path) -> Path:
    """Return the path of the judge for a learner's file."""
    return file.parent / JUDGES / f"{file.stem}.py"


def prove_fault(
    judge: Judge,
    judge_file: Path,
    file: str,
    change: tuple[str, str],
    *,
    torch: bool,
    limit_s: float,
    sources: Mapping[str, Path],
) -> Iterator[Proof]:
    """Judge several versions of an exercise's `file`, and yield the proof of each: with the fault, as the course delivers
    it, and after each repair that its judge lists in REPAIRS.

    `change`: the fault, as old and new text.
    `sources`: all files of the exercise.
    A judge that reads metrics has the metrics of a right and of a wrong run in RUNS.
    """
    loaded, complaint = _load(judge_file, tuple({source.parent: None for source in sources.values()}))
    if loaded is None:
        yield Proof("its judge", JudgeAnswer(word="error"), complaint)
        return
    runs = getattr(loaded, "RUNS", {"right": None, "wrong": None})
    original = sources[file].read_text(encoding="utf-8")
    broken_text = original.replace(*change, 1)
    versions = [("with the fault", broken_text), ("as the course has it", original)]
    versions += [
        (f"repair {number}", broken_text.replace(*repair)) for number, repair in enumerate(getattr(loaded, "REPAIRS", ()), 1)
    ]
    with tempfile.TemporaryDirectory(prefix="gpucourse-proof-") as folder:
        copy = Path(folder)
        for name, source in sources.items():  # with the files next to it that the copy may import
            (copy / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, copy / name)
        for version, text in versions:
            (copy / file).write_text(text, encoding="utf-8")
            is_broken = text == broken_text
            metrics = runs["wrong" if is_broken else "right"]
            answer = judge.judge(judge_file, copy / file, torch=torch, limit_s=limit_s, path=(copy,), metrics=metrics)
            yield _make_proof(version, answer, ("failed",) if is_broken else ("passed",), "still" if is_broken else "")


def _make_proof(version: str, answer: JudgeAnswer, words: Sequence[str], way: str) -> Proof:
    """Return the proof for a version whose verdict should be one of `words`, with this way if it is not empty."""
    is_right = answer.word in words and (answer.way == way or not way)
    expected = f"{' or '.join(words)} {way}".strip()
    return Proof(version, answer, "" if is_right else f"is {answer.word} {answer.way}: {answer.says}, but should be {expected}")


def _load(judge_file: Path, extra_paths: tuple[Path, ...]) -> tuple[Any, str]:
    """Return the judge file as a module, and an empty string. If it cannot be loaded, return None and the reason."""
    try:
        loaded = load_judge(judge_file, extra_paths)
    except Exception as error:  # noqa: BLE001  # an author's unfinished file may raise anything
        return None, f"cannot be loaded: {type(error).__name__}: {error}"
    return (loaded, "") if hasattr(loaded, "WAYS") else (None, "has no WAYS")


def prove(
    judge: Judge, file: Path, *, torch: bool, limit_s: float, shared: Path, extent: Literal["all", "brief", "rest"] = "all"
) -> Iterator[Proof]:
    """Judge every version of the learner's `file` in the course, and yield the proof of each.

    `shared` is the folder that all exercises use.

    `extent`: `brief` means the file as delivered and the solution; `rest` means the other solution and every wrong way.
    """
    loaded, fault = _load(judge_of(file), (file.parent, shared))
    if loaded is None:
        yield Proof("its judge", JudgeAnswer(word="error"), fault)
        return
    ways: dict[str, Way] = {} if extent == "brief" else loaded.WAYS
    delivered, solution = file.read_text(encoding="utf-8"), (file.parent / SOLUTIONS / file.name).read_text(encoding="utf-8")
    texts = {} if extent == "rest" else {"as delivered": delivered, "the solution": solution}
    if extent != "brief":
        texts["the other solution"] = (file.parent / SOLUTIONS / OTHER / file.name).read_text(encoding="utf-8")
    runs = file.suffix in {".py", ".cu"} and "NotImplementedError" not in delivered
    expected_answers: dict[str, tuple[tuple[str, ...], str]] = dict.fromkeys(texts, (("passed",), ""))
    expected_answers["as delivered"] = (("open", "failed") if runs else ("open",), "")
    for name, way in ways.items():
        texts[f"way {name}"] = solution.replace(*way.change)
        expected_answers[f"way {name}"] = (("failed",), name)
    with tempfile.TemporaryDirectory(prefix="gpucourse-proof-") as folder:
        copy = Path(folder) / file.name
        for version, text in texts.items():
            copy.write_text(text, encoding="utf-8")
            answer = judge.judge(judge_of(file), copy, torch=torch, limit_s=limit_s, path=(file.parent, shared))
            yield _make_proof(version, answer, *expected_answers[version])


def main(words: list[str]) -> int:
    """Print the verdict on each version of these files. Return 1 if any verdict is wrong."""
    exit_code = 0
    with Judge() as judge:
        for word in words:
            file = Path(word).resolve()
            for proof in prove(judge, file, torch=True, limit_s=20.0, shared=file.parent.parent / "shared"):
                answer = proof.answer
                sys.stdout.write(f"{proof.version:24} {answer.word:7} {answer.seconds:6.2f} s  {answer.way:20} {answer.says}\n")
                sys.stdout.write(f"    {answer.case} {'; '.join(answer.notes)} {proof.complaint}\n{answer.output}")
                exit_code = exit_code or int(bool(proof.complaint))
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
