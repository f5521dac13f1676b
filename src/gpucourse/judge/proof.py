"""Proof that a judge of the course is right: what is delivered is open, every solution passes, every wrong way gets its words.

A file that runs as it is delivered, with an error in it to repair, is failed by its judge instead: a learner who changes a
comment in it has repaired nothing.

python -m gpucourse.judge.proof exercises/03-parallel-computing/my_bandwidth.py    says what each version gets
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpucourse.judge.client import Judge, JudgeAnswer
from gpucourse.judge.inside import load_judge
from gpucourse.judge.part import Way

SOLUTIONS, OTHER, JUDGES = "solutions", "other", "judges"


@dataclass(frozen=True)
class Proof:
    """One version of a part as it was judged: its name, the verdict, and what is wrong with that; empty where nothing is."""

    version: str
    answer: JudgeAnswer
    complaint: str


def judge_of(file: Path) -> Path:
    """The judge of a learner's file."""
    return file.parent / JUDGES / f"{file.stem}.py"


def prove(judge: Judge, file: Path, *, torch: bool, limit_s: float, shared: Path, briefly: bool = False) -> Iterator[Proof]:
    """Judge every version of the learner's `file` in the course; `shared` is the folder that exercises share.

    `briefly`: as delivered, the solution and the first wrong way alone.
    """
    known: dict[str, Way] = load_judge(judge_of(file), (file.parent, shared)).WAYS
    ways = dict(list(known.items())[: 1 if briefly else None])
    solution = file.parent / SOLUTIONS / file.name
    texts = {"as delivered": file.read_text(encoding="utf-8"), "the solution": solution.read_text(encoding="utf-8")}
    if not briefly:
        texts["the other solution"] = (file.parent / SOLUTIONS / OTHER / file.name).read_text(encoding="utf-8")
    runs = file.suffix in {".py", ".cu"} and "NotImplementedError" not in texts["as delivered"]
    expected: dict[str, tuple[tuple[str, ...], str]] = dict.fromkeys(texts, (("passed",), ""))
    expected["as delivered"] = (("open", "failed") if runs else ("open",), "")
    for name, way in ways.items():
        texts[f"way {name}"] = texts["the solution"].replace(*way.change)
        expected[f"way {name}"] = (("failed",), name)
    with tempfile.TemporaryDirectory(prefix="gpucourse-proof-") as folder:
        copy = Path(folder) / file.name
        for version, text in texts.items():
            copy.write_text(text, encoding="utf-8")
            answer = judge.judge(judge_of(file), copy, torch=torch, limit_s=limit_s, path=(file.parent, shared))
            words, way_name = expected[version]
            right = answer.word in words and (answer.way == way_name or not way_name)
            right_answer = f"{' or '.join(words)} {way_name}".strip()
            complaint = f"is {answer.word} {answer.way}: {answer.says}, and should be {right_answer}"
            yield Proof(version, answer, "" if right else complaint)


def main(words: list[str]) -> int:
    """Print what each version of these files gets; 1 where something is wrong."""
    bad = 0
    with Judge() as judge:
        for word in words:
            file = Path(word).resolve()
            for proof in prove(judge, file, torch=True, limit_s=20.0, shared=file.parent.parent / "shared"):
                answer = proof.answer
                sys.stdout.write(f"{proof.version:24} {answer.word:7} {answer.seconds:6.2f} s  {answer.way:20} {answer.says}\n")
                sys.stdout.write(f"    {answer.case} {'; '.join(answer.notes)} {proof.complaint}\n{answer.output}")
                bad = bad or int(bool(proof.complaint))
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
