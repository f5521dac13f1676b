"""Run planted faults and right programs in the emulator, as a part of `python -m benchmarks emulator`.

Each program in cuda_programs/faults has one fault. Each line that may be reported ends with the possible kinds:
`// fault: race`. With MENDED defined, the program is right. The first line of a program in cuda_programs/right contains its
number of variants, all of which are right. The exit code of a right program says whether its result is right.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

PROGRAMS = Path(__file__).with_name("cuda_programs")
SHARED = Path(__file__).resolve().parents[1] / "exercises" / "shared"
LIMIT_S = 10.0
PROCESSES = 2
_MARK = re.compile(r"// fault: (?P<kinds>[\w, ]+)$")
_VARIANTS = re.compile(r"// variants: (?P<count>\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One program to run: its file, a macro that chooses a variant (or an empty text), and whether a fault is planted."""

    source: Path
    define: str
    planted: bool

    @property
    def name(self) -> str:
        """Return the name that a person sees."""
        return f"{self.source.stem} {self.define}".strip()


def list_cases() -> Iterator[Case]:
    """Yield the programs with a fault, then the right ones."""
    faulty = sorted((PROGRAMS / "faults").glob("*.cu"))
    for source in faulty:
        yield Case(source, "", planted=True)
    for source in faulty:
        yield Case(source, "MENDED", planted=False)
    for source in sorted((PROGRAMS / "right").glob("*.cu")):
        match = _VARIANTS.search(source.read_text())
        for variant in range(1, 1 + int(match["count"] if match else 0)):
            yield Case(source, f"VARIANT={variant}", planted=False)


def measure_verdicts(word: str = "") -> Iterator[Row]:
    """Run the programs whose names contain `word`, print each wrong verdict, and yield the two promises."""
    cases = [case for case in list_cases() if word in case.name]
    with ThreadPoolExecutor(PROCESSES) as pool:
        causes = list(pool.map(_judge, cases))
    for case, cause in zip(cases, causes, strict=True):
        if cause:
            print(f"{case.name}: {cause}", file=sys.stderr)
    results = [(case.planted, not cause) for case, cause in zip(cases, causes, strict=True)]
    for planted, what, limit in (
        (True, "planted faults found at their line", 95),
        (False, "right programs without a fault", 100),
    ):
        verdicts = [right for is_planted, right in results if is_planted is planted]
        if verdicts:
            share = 100 * sum(verdicts) / len(verdicts)
            yield Row(what=f"of {len(verdicts)} {what}", ours=share, unit="%", limit=limit, is_minimum=True)


def _judge(case: Case) -> str:
    """Return why the emulator's verdict on a program is wrong, or an empty text."""
    report = _run(case)
    if case.planted:
        marks = _read_marks(case.source)
        return "" if any(_is_marked(*place, marks) for place in _list_places(report)) else f"not found: {_describe(report)}"
    return "" if report["state"] == "ended" and not report["faults"] else _describe(report)


def import_emulator(module: str = "emulator") -> Any:
    """Return the emulator of the exercises, or one of its modules."""
    if str(SHARED) not in sys.path:
        sys.path.insert(0, str(SHARED))
    return importlib.import_module(module)


def _run(case: Case) -> dict[str, Any]:
    command = import_emulator("emulator.__main__")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        file = Path(folder) / "report.json"
        words = [
            str(case.source),
            *([f"-D{case.define}"] if case.define else []),
            "--limit",
            f"{LIMIT_S:g}",
            "--report",
            str(file),
        ]
        words += [] if case.planted else ["--order", "all"]
        command.main(words)
        report: dict[str, Any] = json.loads(file.read_text())
    return report


def _read_marks(source: Path) -> dict[int, list[str]]:
    """Return the kinds of fault of each marked line."""
    matches = ((number, _MARK.search(line)) for number, line in enumerate(source.read_text().splitlines(), 1))
    return {number: match["kinds"].split(", ") for number, match in matches if match}


def _list_places(report: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the kind and line of each fault, and of the end of a program that crashed or did not end."""
    for fault in report["faults"]:
        yield fault["kind"], fault["line"]
    if match := re.match(r"[\w.]+:(\d+): ", report["message"]):
        yield ("endless" if report["state"] == "ended by the emulator" else "crash"), int(match[1])


def _is_marked(kind: str, line: int, marks: dict[int, list[str]]) -> bool:
    return kind in marks.get(line, ())


def _describe(report: dict[str, Any]) -> str:
    faults = [f"{fault['kind']}: {fault['text']}" for fault in report["faults"]]
    return " | ".join([report["state"], f"exit code {report['code']}", *filter(None, [report["message"]]), *faults])
