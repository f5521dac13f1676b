"""Run CUDA programs in the emulator: `python -m benchmarks emulator` runs the programs of verdicts.py, with and without planted
faults. `python -m benchmarks emulator FOLDER` runs public programs instead (with `--sample 80`, eighty at random).

public_programs.json lists these programs, each a single file, with their repositories, commits and licences. The programs of
course_programs.json (`--list`) are from courses and books. None is part of this project, and nothing is fetched: each program
is expected at FOLDER/OWNER+NAME/PATH. It runs as you, in its own folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Row, seconds, table
from benchmarks.verdicts import import_emulator, measure_verdicts

LIST = Path(__file__).with_name("public_programs.json")
STATES = ("ran", "failed", "late", "needs input", "not compiled", "several units", "not there")
LIMIT_S = 60.0  # of processor time, which does not depend on what else the computer does
ELAPSED_LIMIT_S = 3600.0  # for a program that waits
MAX_CAUSES = 20
SGEMM, LARGE = (Path(__file__).with_name(name) for name in ("sgemm.cu", "large_launches.cu"))
_MACRO = re.compile(r"(?<=\s)-D(?P<name>\w+)(?:=(?P<value>[^\s$]+))?(?=\s)")
_USAGE = re.compile(r"^.*\busage\b.{0,99}", re.IGNORECASE | re.MULTILINE)
_NO_FILE = re.compile(
    r"^.*(?:\b(?:cannot|can't|can not|could not|couldn't|unable to|failed to|error)\s+(?:open|read|load|find)"
    r"|no such file).{0,99}",
    re.IGNORECASE | re.MULTILINE,
)
_MAIN = re.compile(r"\bmain\s*\([^,()]*,[^,()]*?(?P<name>\w+)\s*(?:\[\s*\]\s*)*[,)]")
_WAIVED = re.compile(r"^.*\b(?:waiving|invalid device ordinal)\b.{0,99}", re.IGNORECASE | re.MULTILINE)  # without a second GPU
_CUDA_ERROR = re.compile(r"\bcuda.{0,40}error|\berror.{0,40}cuda", re.IGNORECASE)
_BAD = r"(?:fail(?:s|ed|ures?|ing)?|mis-?match\w*|unmatched|incorrect(?:ly)?|wrong|errors)"
_WRONG = re.compile(  # how programs report that their own check failed
    rf"\b(?!errors)(?:{_BAD}|unequal|(?:do|does|did|is|are)? ?n(?:o|')t (?:match\w*|equal|correct|identical|agree|the same))\b"
    r"|\b(?:correct|passed|verified|match(?:es|ed)?)\s*[:=?]+\s*(?:no|false)\b|[❌✗✘]"
    r"|\berror ?!|\berrors? (?:at|in) (?:index|element|position|row|\W?\d)"
    r"|\b[1-9]\d* errors\b|\berrors\s*[:=]\s*[1-9]\d*(?![\d.e])",
    re.IGNORECASE,
)
_NOT_WRONG = re.compile(  # and that it found nothing
    rf"(?<!test )(?<!case )\b(?:0|no|zero|without|never)\s+(?:\w+\s+){{0,2}}{_BAD}\b"
    rf"|\b{_BAD}(?:\s+(?!at\b|index\b)\w+){{0,6}}\s*[:=]\s*(?:0+(?:\.0*)?|none|no|false)\s*(?:[^\w\s.]|\Z)"
    r"|.*\bas expected\b.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Verdict:
    """The outcome of one program: its repository, one of STATES, the cause if it did not run to its end, and the faults of its
    kernels.
    """

    repository: str
    state: str
    cause: str = ""
    faults: tuple[str, ...] = ()


def prove(arguments: list[str]) -> int:
    """Run the project's own programs, or the public ones below a folder, and print the tables. Return 1 if a promise does not
    hold.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks emulator")
    parser.add_argument("folder", type=Path, nargs="?", help="public programs, each repository as OWNER+NAME")
    parser.add_argument(
        "--list", type=Path, default=LIST, metavar="FILE", help="which programs (default: public_programs.json)"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="only N public programs, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="another seed chooses other programs (default: 1)")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="run N public programs at a time (default: 1)")
    options = parser.parse_args(arguments)
    if options.folder is None:
        rows, lines = list(measure_verdicts()), []
    else:
        programs = [(entry["repository"], path) for entry in json.loads(options.list.read_text()) for path in entry["paths"]]
        if options.sample is not None:
            programs = random.Random(options.seed).sample(programs, min(options.sample, len(programs)))
        verdicts = []
        for (repository, path), verdict in measure_programs(options.folder.resolve(), programs, options.processes):
            print(f"{verdict.state:15}  {repository}/{path}  {verdict.cause}", file=sys.stderr, flush=True)
            for fault in verdict.faults:
                print(f"    fault: {fault}", file=sys.stderr, flush=True)
            verdicts.append(verdict)
        rows = make_rows(verdicts)
        faulty = f"{sum(bool(verdict.faults) for verdict in verdicts)} programs have faults: read each in the lines above"
        lines = [*list_repositories(verdicts), "", *list_causes(verdicts), "", faulty, ""]
    print("\n".join([*lines, table(rows), "", *([] if options.folder else measure_speed())]))
    return int(not all(row.held for row in rows))


def measure_programs(
    folder: Path, programs: Sequence[tuple[str, str]], processes: int = 1
) -> Iterator[tuple[tuple[str, str], Verdict]]:
    """Yield each program, as its repository and its path there, with its verdict."""
    roots = [folder / repository.replace("/", "+") for repository, _ in programs]
    sources = [root / path for root, (_, path) in zip(roots, programs, strict=True)]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place, ProcessPoolExecutor(processes) as pool:
        outcomes = pool.map(_try_program, roots, sources, itertools.repeat(Path(place)))
        for program, outcome in zip(programs, outcomes, strict=True):
            yield program, Verdict(program[0], *outcome)


def _try_program(root: Path, source: Path, work: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return the state of a program, the cause if it did not run to its end, and the faults of its kernels."""
    emulator = import_emulator()
    if not source.is_file():
        return "not there", "no such file", ()
    near = (source.parent, source.parent.parent, root, root / "cpp")
    folders = [folder / name for folder in near for name in (".", "include", "common", "Common")]
    try:
        existing = [folder for folder in folders if folder.is_dir()]
        program = emulator.build([source], folder=work, includes=existing, defines=_read_macros(source.parent / "Makefile"))
    except emulator.CompileError as error:
        return "several units" if _is_defined_elsewhere(error.message, source) else "not compiled", error.message, ()
    before = Path.cwd()
    os.chdir(source.parent)  # many read or write files there
    try:
        result = program.run(limit_s=ELAPSED_LIMIT_S, processor_limit_s=LIMIT_S)
    except emulator.Endless as error:
        return "late", str(error), ()
    except emulator.TooMuchOutput as error:
        return "failed", str(error), ()
    finally:
        os.chdir(before)
    faults = tuple(f"{name}: {fault.text}" for name, kernel in result.kernels.items() for fault in kernel.faults)
    if result.crash or result.code:
        cause = result.crash or f"exit code {result.code}"
        if lack := _USAGE.search(result.output) or _NO_FILE.search(result.output) or _WAIVED.search(result.output):
            return "needs input", lack[0].strip(), faults
        is_early = not result.kernels and not _CUDA_ERROR.search(result.output)
        return "needs input" if is_early and reads_arguments(source.read_text(errors="replace")) else "failed", cause, faults
    if wrong := find_wrong(result.output):
        return "failed", wrong, faults
    return "ran", "", faults


def reads_arguments(text: str) -> bool:
    """Return whether a program reads its arguments: by getopt, or as elements of the second parameter of `main`."""
    parameter = _MAIN.search(text)
    name = parameter["name"] if parameter else "argv"
    return re.search(rf"\b{name}\s*\[\s*[1-9]|\bgetopt", text) is not None


def find_wrong(output: str) -> str | None:
    """Return the first line in which a program says that its own check failed, or None."""
    lines = (line.strip() for line in output.splitlines())
    return next((line for line in lines if _WRONG.search(_NOT_WRONG.sub("", line))), None)


def _is_defined_elsewhere(message: str, source: Path) -> bool:
    """Return whether the linker misses a function that another source file in the folder of the program names."""
    match = re.match(r"undefined reference to `(?:\w+::)*(?P<name>\w+)", message)
    others = (path for path in source.parent.rglob("*") if path.suffix in {".c", ".cc", ".cpp", ".cu"} and path != source)
    return match is not None and any(re.search(rf"\b{match['name']}\b", path.read_text(errors="replace")) for path in others)


def _read_macros(makefile: Path) -> dict[str, str]:
    """Return the macros that a Makefile defines, up to its first condition. An empty value means 1."""
    text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    unconditional = re.split(r"^\s*if", text, maxsplit=1, flags=re.MULTILINE)[0]
    return {match["name"]: match["value"] or "1" for match in _MACRO.finditer(unconditional)}


def make_rows(verdicts: list[Verdict]) -> list[Row]:
    """Return the row of each of the two promises: how many programs compile, and how many of these run to their end.

    A program that is missing or has several translation units does not count. A program is left out of the second row if it
    ends with an error and asks for arguments, a file or a second GPU, or if it fails before its first kernel without a CUDA
    error and its source reads arguments.
    """
    states = Counter(verdict.state for verdict in verdicts)
    count = len(verdicts) - states["not there"] - states["several units"]
    runs = count - states["needs input"]
    if not count:
        return [Row(what="public programs", ours=None, failure="none of the programs is below this folder")]
    percent = 100 - 100 * states["not compiled"] / count
    rows = [Row(what=f"of {count} public programs compile", ours=percent, unit="%", limit=90, is_minimum=True)]
    if runs:
        what = f"of {runs} that need no arguments, files or second GPU run to their end in {LIMIT_S:g} s of processor time"
        rows += [Row(what=what, ours=100 * states["ran"] / runs, unit="%", limit=75, is_minimum=True)]
    return rows


def list_repositories(verdicts: list[Verdict]) -> list[str]:
    """Return the lines of a table: each repository, and how many of its programs are in each state."""
    counts = Counter((verdict.repository, verdict.state) for verdict in verdicts)
    repositories = dict.fromkeys(verdict.repository for verdict in verdicts)
    lines = [(name, *(counts[name, state] for state in STATES)) for name in repositories]
    return [f"{name:48}" + "".join(f"{cell:>17}" for cell in cells) for name, *cells in [("repository", *STATES), *lines]]


def list_causes(verdicts: list[Verdict]) -> list[str]:
    """Return the most frequent causes with their counts. The line numbers of the programs are removed from the causes."""
    causes = Counter((verdict.state, re.sub(r"^\S+:\d+: ", "", verdict.cause)) for verdict in verdicts if verdict.cause)
    return [f"{count:5}  {state:15}  {cause}" for (state, cause), count in causes.most_common(MAX_CAUSES)]


def measure_speed() -> Iterator[str]:
    """Yield how long a plain product of 256 x 256 matrices takes: with every access watched, with sampling, and in host code.
    Then yield the times of three larger launches with sampling.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        product, large = (import_emulator().build([source], folder=Path(place)) for source in (SGEMM, LARGE))
        subprocess.run(["g++", "-O1", "-x", "c++", str(SGEMM), "-o", f"{place}/bare"], check=True)
        bare = [f"{place}/bare", "host"]
        limits = {"limit_s": ELAPSED_LIMIT_S, "processor_limit_s": LIMIT_S}
        works = {
            "SGEMM of 256, every access watched": lambda: product.run(every=True, **limits),
            "... sampled": lambda: product.run(**limits),
            "... in the host's code of the same program": lambda: product.run("host", **limits),
            "... the same loops by g++ -O1": lambda: subprocess.run(bare, check=True),
            "product of 768 by tiles": lambda: large.run("tiles", **limits),
            "forces of 16,384 bodies": lambda: large.run("bodies", **limits),
            "20 steps of a stencil of 128 x 128 x 128": lambda: large.run("stencil", **limits),
        }
        for what, work in works.items():
            yield f"{what}: {_describe_times(work)}"


def _describe_times(work: Callable[[], object]) -> str:
    """Return the times of a call that starts processes: elapsed, and of the processor."""
    before = os.times()
    elapsed_s = seconds(work)
    after = os.times()
    used_s = after.children_user + after.children_system - before.children_user - before.children_system
    return f"{elapsed_s:.2f} s, of which {used_s:.2f} s of processor time"
