"""Run a CUDA program on the emulator, print its output, and report each kernel's counts and faults.

    python -m emulator my.cu [-I DIR] [-D NAME=VALUE] [--order N|all] [--limit S] [--every] [--devices N] [--report FILE]
        [-- ARGS]

With `--report`, the findings and the output go to that file as JSON, and nothing is printed. Exit codes: 0 if all is well,
2 for wrong arguments, 3 if this computer cannot run the emulator, 4 if the program does not compile or fails, 5 for a fault.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emulator import CompileError, Endless, Kernel, Request, Result, TooMuchOutput, Unsupported, build
from emulator.kernels import HOST_CODE

ORDERS = (0, 1, 2, 3)
ACCESSES = ("global_load", "global_store", "shared_load", "shared_store")
KINDS = {  # of faults, in words
    "refused_launches": "refused launch",
    "illegal_address": "illegal address",
    "used_after_free": "use after free",
    "out_of_bounds": "out of bounds",
    "barrier_divergence": "barrier",
    "races": "race",
    "stream_hazards": "hazard between streams",
    "unwritten_reads": "unwritten read",
}
MAX_SOURCE_BYTES = 4 << 20
DONE, MISSING, FAILED, FAULT = 0, 3, 4, 5
REFUSED_HEADERS = {
    "OpenGL": (
        r"(?:GL|GLES\d?|EGL|GLFW|freeglut|glad)/[\w./]+|helper_gl\.h|cuda_gl_interop\.h",
        "write the picture into a file instead",
    ),
    "MPI": (r"mpi\.h", "run one rank, without MPI, or run it on a cluster: gpucourse run --script FILE --launcher slurm"),
    "OpenCV": (r"opencv2?/[\w./]+", "make the image in the program, or read a .ppm file"),
    "NCCL": (r"nccl\.h", "the emulator has one device: call the kernel without NCCL"),
    "cuDNN": (r"cudnn\w*\.h", "call a kernel of your own instead"),
}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?P<name>[^>"]+)[>"]', re.MULTILINE)
_STANDARD_INPUT = re.compile(
    r"\bcin\s*>>|\bgetline\s*\(\s*(?:std::)?cin\b|\bscanf\s*\(|\bgetchar\s*\(|\bfgets\s*\([^;]*\bstdin\b"
)
_UNDEFINED = re.compile(r"undefined reference to `(?P<name>[^']+)'")


class Refused(Exception):
    """The program cannot be built. The text gives the reason and the remedy."""


def main(words: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _read_options(words)
    try:
        report = _run_program(options)
    except Unsupported as error:
        report = {"state": "unsupported", "message": str(error)}
    except (CompileError, Refused) as error:
        report = {"state": "not compiled", "message": str(error)}
    except (Endless, TooMuchOutput) as error:
        report = {"state": "ended by the emulator", "message": str(error)}
    report = {"message": "", "notes": [], "code": 0, "output": "", "orders": [], "faults": [], "kernels": []} | report
    if options.report is None:
        _print(report)
    else:
        options.report.write_text(json.dumps(report), encoding="utf-8")
    return _find_exit_code(report)


def _read_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulator", allow_abbrev=False)
    parser.add_argument("source", type=Path, help="a CUDA program in one file")
    parser.add_argument("-I", dest="includes", type=Path, action="append", default=[], help="a folder with headers")
    parser.add_argument("-D", dest="defines", action="append", default=[], help="a macro: NAME or NAME=VALUE")
    parser.add_argument("--order", choices=[*map(str, ORDERS), "all"], default="0", help="the order of the threads")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds until the program is ended")
    parser.add_argument("--every", action="store_true", help="watch every block, not a sample")
    parser.add_argument("--devices", type=int, default=1, help="how many GPUs the program finds")
    parser.add_argument("--requests", type=int, default=0, help="how many requests of each kernel to record")
    parser.add_argument("--report", type=Path, help="a file for the findings as JSON")
    end = list(words).index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.arguments = list(words[end + 1 :])
    return options


def _run_program(options: argparse.Namespace) -> dict[str, Any]:
    """Build the program, run it in each order, and return the report. Raises the errors of `build` and `run`, and Refused."""
    notes = _examine_source(options.source)
    defines = {name: value or "1" for name, _, value in (word.partition("=") for word in options.defines)}
    orders = ORDERS if options.order == "all" else (int(options.order),)
    with tempfile.TemporaryDirectory(prefix="emulator-") as folder:
        try:
            program = build([options.source], folder=Path(folder), defines=defines, includes=options.includes)
        except CompileError as error:
            raise _explain(error) from None
        results = {
            order: program.run(
                *options.arguments,
                order=order,
                limit_s=options.limit,
                trace=options.requests,
                every=options.every,
                devices=options.devices,
            )
            for order in orders
        }
    return _make_report(results, notes)


def _examine_source(source: Path) -> list[str]:
    """Return notes about the program. Raises Refused if the file cannot be read, or needs what the emulator does not have."""
    try:
        if source.stat().st_size > MAX_SOURCE_BYTES:
            raise Refused(f"{source} is larger than {MAX_SOURCE_BYTES >> 20} MB, so it is not a source file")
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Refused(f"{source} cannot be read: {error.strerror}") from None
    for match in _INCLUDE.finditer(text):
        for library, (pattern, remedy) in REFUSED_HEADERS.items():
            if re.fullmatch(pattern, match["name"]):
                line = text.count("\n", 0, match.start()) + 1
                words = f"{source.name}:{line}: the program needs {library} ({match['name']}), which the emulator does not have"
                raise Refused(f"{words}: {remedy}")
    notes = []
    if _STANDARD_INPUT.search(text):
        notes.append("the program reads its standard input, which is empty here: pass what it needs as arguments after --")
    if any(match["name"] == "omp.h" for match in _INCLUDE.finditer(text)):
        notes.append("the program uses OpenMP: its parallel regions run in one thread here")
    return notes


def _explain(error: CompileError) -> CompileError | Refused:
    """Return the error. If a function is missing, say how to build a program of several files."""
    match = _UNDEFINED.search(error.text)
    if match is None:
        return error
    if match["name"] == "main":
        return Refused("the program has no function main: add one that launches the kernel")
    return Refused(
        f"{match['name']} is used but not defined. If it is in another file, the program has several translation units, and "
        'the emulator builds one: add #include "that_file.cu" to it'
    )


def _make_report(results: dict[int, Result], notes: list[str]) -> dict[str, Any]:
    first_order, first = next(iter(results.items()))
    faults = list(_list_faults(results))
    differing = [order for order, result in results.items() if (result.code, result.output) != (first.code, first.output)]
    if differing and not any(result.crash for result in results.values()):
        words = f"the program prints something else when its threads run in order {differing[0]} than in order {first_order}"
        faults.append(_make_fault("", "depends on the order", 1, words, differing[0]))
    failed = next((result for result in results.values() if result.crash or result.code), first)
    return {
        "state": "failed" if failed.crash or failed.code else "ended",
        "message": failed.crash or "",
        "notes": [*notes, *_note_absences(first)],
        "code": failed.code,
        "output": failed.output,
        "orders": list(results),
        "faults": faults,
        "kernels": [_describe_kernel(kernel) for kernel in first.kernels.values() if kernel.name != HOST_CODE],
    }


def _note_absences(result: Result) -> Iterable[str]:
    """Yield a note if an allocation was refused for lack of memory, one for each kernel that was not watched, and one if
    no kernel was launched.
    """
    if result.refused_bytes:
        words = f"an allocation of {result.refused_bytes:,} bytes was refused: all together may have half of this computer's"
        yield f"{words} memory, but at least 2 and at most 8 GiB, so make the problem smaller"
    for kernel in result.kernels.values():
        if kernel.threads and not kernel.watched_threads:
            words = f"no thread of {kernel.name} was watched to its end, so the kernel may have faults that are not shown"
            yield f"{words}: type the command again with --every, or with --order all"
    if not any(kernel.name != HOST_CODE for kernel in result.kernels.values()):
        yield "a kernel, which is a function with __global__, is launched by kernel<<<blocks, threads>>>(arguments)"


def _list_faults(results: dict[int, Result]) -> Iterable[dict[str, Any]]:
    """Yield each fault once, with the first order of the threads that showed it."""
    earlier_places: set[tuple[str, str, str]] = set()
    for order, result in results.items():
        places: set[tuple[str, str, str]] = set()
        for kernel in result.kernels.values():
            for fault in kernel.faults:
                if (place := (kernel.name, fault.kind, fault.text.partition(": ")[0])) not in earlier_places:
                    places.add(place)
                    yield _make_fault(kernel.name, KINDS.get(fault.kind, fault.kind), fault.count, fault.text, order)
        earlier_places |= places


def _make_fault(kernel: str, kind: str, count: int, text: str, order: int) -> dict[str, Any]:
    file, _, line = text.partition(": ")[0].rpartition(":")
    has_place = bool(file) and line.isdecimal()
    place = {"file": file if has_place else "", "line": int(line) if has_place else 0}
    return {"kernel": kernel, "kind": kind, "count": count, "text": text, "order": order, **place}


def _describe_kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "launches": kernel.launches,
        "threads": kernel.threads,
        "watched_threads": kernel.watched_threads,
        "block": list(kernel.block),
        "shared_bytes": kernel.static_bytes + kernel.dynamic_bytes,
        "atomics": kernel.atomics,
        **{access: asdict(getattr(kernel, access)) for access in ACCESSES},
        "lines": [asdict(line) for line in kernel.lines],
        "requests": [_describe_request(request) for request in _choose_requests(kernel.trace)],
    }


def _choose_requests(requests: Iterable[Request]) -> list[Request]:
    """Return for each line, memory and direction the request with the most lanes."""
    fullest: dict[tuple[str, bool, bool], Request] = {}
    for request in requests:
        key = (request.line, request.shared, request.write)
        if key not in fullest or _count_lanes(request) > _count_lanes(fullest[key]):
            fullest[key] = request
    return list(fullest.values())


def _count_lanes(request: Request) -> int:
    return sum(address is not None for address in request.addresses)


def _describe_request(request: Request) -> dict[str, Any]:
    file, _, line = request.line.rpartition(":")
    access = f"{'shared' if request.shared else 'global'}_{'store' if request.write else 'load'}"
    place = {"file": file, "line": int(line) if line.isdecimal() else 0}
    return {**place, "access": access, "size": request.size, "addresses": list(request.addresses)}


def _find_exit_code(report: dict[str, Any]) -> int:
    if report["state"] == "unsupported":
        return MISSING
    if report["faults"]:
        return FAULT
    return DONE if report["state"] == "ended" else FAILED


def _print(report: dict[str, Any]) -> None:
    """Print the program's output, the counts of each kernel, and the faults."""
    sys.stdout.write(report["output"])
    for kernel in report["kernels"]:
        print(f"[emulator] {kernel['name']}: {kernel['launches']:,} launches, {kernel['threads']:,} threads")
        for access in ACCESSES:
            counts = kernel[access]
            if counts["requests"]:
                sectors = f", {counts['sectors'] / counts['requests']:.3g} sectors per request" if counts["sectors"] else ""
                conflicts = f", {counts['bank_conflicts']:,} bank conflicts" if access.startswith("shared") else ""
                name = access.replace("_", " ")
                print(f"[emulator]   {name}: {counts['requests']:,} requests{sectors}{conflicts}, {counts['bytes']:,} bytes")
    for note in report["notes"]:
        print(f"[emulator] {note}")
    if report["message"]:
        print(f"[emulator] {report['message']}")
    elif report["code"]:
        print(f"[emulator] the program ended with exit code {report['code']}")
    for fault in report["faults"]:
        print(f"[emulator] fault in {fault['kernel'] or 'the program'}: {fault['text']}")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
