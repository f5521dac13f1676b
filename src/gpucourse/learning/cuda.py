"""`cuda`: runs a CUDA program on the emulator, or Triton kernels in Triton's interpreter, on this computer.

Neither a lab nor a workspace is needed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucourse.course.locate import find_course
from gpucourse.errors import ExerciseFailed, GpucourseError, MissingError, UsageError
from gpucourse.launch.neighbours import find_included_files
from gpucourse.model.cuda import CudaReport
from gpucourse.model.fields import EXERCISE_ID
from gpucourse.model.launching import advise_install
from gpucourse.outside.documents import parse_typed
from gpucourse.outside.files import read_bounded, read_named
from gpucourse.outside.names import OutsideError, printable

SUFFIXES = (".cu", ".cuda", ".cpp", ".cc", ".py")
TRITON_SUFFIX = ".py"
TRITON_NEEDS = ("torch", "triton")
ORDERS = ("0", "1", "2", "3", "all")
DEFAULT_LIMIT_S = 60.0
MAX_LIMIT_S = 86_400.0
MAX_REPORT_BYTES = 64 << 20
MAX_REPORT_ITEMS = 2_000_000
MAX_ERROR_BYTES = 2000
MAX_SOURCE_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class CudaOptions:
    """The options with which a program is built and run.

    `includes`: folders with headers.
    `defines`: macros, as NAME or NAME=VALUE.
    `order`: one of ORDERS.
    `limit_s`: the time limit of the program in seconds.
    `requests`: how many memory requests of each kernel to record for pictures.
    `every`: whether every block is watched instead of a sample.
    `devices`: how many GPUs the program finds.
    `arguments`: the arguments of the program.
    """

    includes: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    order: str = "0"
    limit_s: float = DEFAULT_LIMIT_S
    requests: int = 0
    every: bool = False
    devices: int = 1
    arguments: tuple[str, ...] = ()


def run_cuda(source: Path, options: CudaOptions) -> CudaReport:
    """Build and run a program, and return the report on it.

    Raises UsageError if the file cannot be used, MissingError if this computer cannot run the emulator or the interpreter, and
    ExerciseFailed if the program does not compile or was ended.
    """
    _check(source, options)
    shared = find_course({}).exercises / "shared"
    with tempfile.TemporaryDirectory(prefix="gpucourse-cuda-") as folder:
        file = Path(folder) / "report.json"
        if source.suffix == TRITON_SUFFIX:
            words = [sys.executable, str(shared / "triton_report.py"), str(source.absolute())]
        else:
            words = [sys.executable, "-P", "-m", "emulator", str(source), "--order", options.order]
            words += [f"-I{include}" for include in options.includes]
            words += ["--every"] * options.every
            words += ["--devices", str(options.devices)]
            words += [f"-D{define}" for define in options.defines]
        words += ["--report", str(file), "--limit", f"{options.limit_s:g}", "--requests", str(options.requests)]
        process = subprocess.run(
            [*words, "--", *options.arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_make_environment(source, shared),
            check=False,
        )
        if not file.exists() and process.returncode < 0:
            end = f"{source.name} was ended by signal {-process.returncode}"
            raise ExerciseFailed(end, hint=f"change the program, then: gpucourse cuda {source}")
        report = _read(file, process.stderr)
    if (error := _find_error(source, options, report)) is not None:
        raise error
    return report


def _make_environment(source: Path, shared: Path) -> dict[str, str]:
    """Return the environment of the process: a CUDA program needs the emulator, a Python program its own modules."""
    paths = {} if source.suffix == TRITON_SUFFIX else {"PYTHONPATH": str(shared)}
    return {**os.environ, **paths}


def _check_triton(source: Path, options: CudaOptions) -> None:
    """Raise MissingError if Triton or torch is not installed, and UsageError for an option that is for CUDA programs."""
    flags = {"-I": options.includes, "-D": options.defines, "--order": options.order != "0"}
    flags |= {"--every": options.every, "--devices": options.devices != 1}
    if unfit := [flag for flag, value in flags.items() if value]:
        raise UsageError(f"{', '.join(unfit)}: for CUDA programs, not for Triton kernels", hint=f"gpucourse cuda {source}")
    if missing := [name for name in TRITON_NEEDS if importlib.util.find_spec(name) is None]:
        raise MissingError(
            f"a program with Triton kernels needs {' and '.join(missing)}, which this Python does not have",
            hint=advise_install(missing, sys.executable, on_this_computer=True),
        )


def _check(source: Path, options: CudaOptions) -> None:
    command = f"gpucourse cuda {source}"
    if not source.is_file():
        hint = (
            f"the kernels of exercise {source}: gpucourse try {source}"
            if re.match(EXERCISE_ID, str(source))
            else "ls *.cu *.py"
        )
        raise UsageError(f"{source}: {'it is not a file' if source.exists() else 'there is no such file'}", hint=hint)
    if source.suffix not in SUFFIXES:
        endings = " or ".join(SUFFIXES)
        raise UsageError(f"{source} has no CUDA or Triton kernels: its name must end in {endings}", hint="ls *.cu *.py")
    for folder in options.includes:
        if not folder.is_dir():
            raise UsageError(f"-I {folder}: there is no such folder", hint=f"{command} -I FOLDER")
    for define in options.defines:
        if not define.partition("=")[0].isidentifier() or "\n" in define:
            raise UsageError(f"-D {printable(define)}: not of the form NAME or NAME=VALUE", hint=f"{command} -D N=1024")
    if options.order not in ORDERS:
        raise UsageError(f"--order {options.order}: the orders are {', '.join(ORDERS)}", hint=f"{command} --order all")
    if not 0 < options.limit_s <= MAX_LIMIT_S:
        raise UsageError("--limit needs more than 0 seconds and at most a day", hint=f"{command} --limit 60s")
    if source.suffix == TRITON_SUFFIX:
        _check_triton(source, options)


def _read(file: Path, complaint: bytes) -> CudaReport:
    """Return the report in a file. Raises GpucourseError if the emulator wrote none, or a damaged one."""
    try:
        return parse_typed(
            read_bounded(file, MAX_REPORT_BYTES), CudaReport, max_bytes=MAX_REPORT_BYTES, max_items=MAX_REPORT_ITEMS
        )
    except (OSError, OutsideError) as error:
        last_line = complaint[-MAX_ERROR_BYTES:].decode(errors="replace").strip().rpartition("\n")[2]
        words = f": {printable(last_line)}" if last_line else ""
        raise GpucourseError(f"the emulator left no report ({error}){words}", hint="type the command again") from error


def _find_error(source: Path, options: CudaOptions, report: CudaReport) -> GpucourseError | None:
    """Return the error of a program that has no result, or None."""
    message, command = report.message, f"gpucourse cuda {source}"
    if report.state == "unsupported":
        reason, _, remedy = message.partition(": ")
        return MissingError(reason, hint=remedy)
    if report.state == "not compiled":
        return ExerciseFailed(message, hint=f"change the program, then: {command}")
    if report.state == "ended by the emulator":
        is_timeout = "did not end" in message
        return ExerciseFailed(
            message, hint=f"{command} --limit {options.limit_s * 5:g}s, or a smaller problem" if is_timeout else command
        )
    return None


def list_sources(paths: Sequence[Path], *, compare: bool) -> tuple[Path, ...]:
    """Return the programs to run. Raises UsageError for several programs without `compare`, or if `compare` gets more or
    fewer than two."""
    names = " ".join(map(str, paths))
    if compare and len(paths) != 2:
        raise UsageError(f"--compare needs two programs, not {len(paths)}", hint="gpucourse cuda before.cu after.cu --compare")
    if not compare and len(paths) > 1:
        raise UsageError(
            f"{len(paths)} programs were typed. A program is one file",
            hint=f"gpucourse cuda {names} --compare" if len(paths) == 2 else f"gpucourse cuda {paths[0]}",
        )
    return tuple(paths)


def read_source(path: Path) -> str:
    """Return the text of a program that ran. Raises UsageError if it can no longer be read."""
    try:
        return read_named(path, MAX_SOURCE_BYTES).decode(errors="replace")
    except (OSError, OutsideError) as error:
        raise UsageError(f"{path}: {error}", hint="type the command again") from error


def list_watched_files(source: Path) -> tuple[Path, ...]:
    """Return a program and the files of its folder that it includes. Raises UsageError if the program cannot be used."""
    _check(source, CudaOptions())
    return (source, *(upload.source for upload in find_included_files(source)))
