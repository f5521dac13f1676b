"""Running a program that was built with the emulator, within limits of time and output."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.kernels import Kernel, list_callers, make_kernel, name_thread

MOST_OUTPUT = 1 << 20  # bytes that a program may print
LAST_WORDS_S = 2.0  # for the report of a program whose time is over


class Endless(Exception):
    """The program did not end in time. Its text says where it was."""


class TooMuchOutput(Exception):
    """The program printed more than a learner can read, and was ended."""


@dataclass(frozen=True)
class Result:
    """How a program ended: its exit code, what it printed, what was counted and found of each kernel by the kernel's name.

    `crash` says in words where it crashed; None if it did not.
    """

    code: int
    output: str
    kernels: dict[str, Kernel]
    seconds: float
    crash: str | None = None

    def first_fault(self) -> str | None:
        """The first fault of any kernel in words, or how the program crashed; None if there is neither."""
        faults = ((kernel.name, kernel.first_fault()) for kernel in self.kernels.values())
        return next((f"{name}: {fault}" for name, fault in faults if fault), self.crash)


@dataclass(frozen=True)
class Program:
    """A program that was built: `path`, and the names of the learner's and the course's source files in it."""

    path: Path
    files: frozenset[str]

    def run(self, *arguments: str, order: int = 0, limit_s: float = 20.0, trace: int = 0) -> Result:
        """Run it with these arguments; `order` 0 to 3 is the order in which threads take turns, `trace` how many
        requests of each kernel are kept.

        Raises Endless after `limit_s` seconds, TooMuchOutput after a megabyte.
        """
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="emulator-") as folder:
            report = Path(folder) / "report.json"
            environment = {
                **os.environ,
                "EMULATOR_ORDER": str(order),
                "EMULATOR_REPORT": str(report),
                "EMULATOR_TRACE": str(trace),
            }
            process = subprocess.Popen(
                [str(self.path), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            try:
                output, end = _read_output(process, began + limit_s)
                if end == "late":
                    process.send_signal(signal.SIGALRM)
                    _read_output(process, time.monotonic() + LAST_WORDS_S)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            told = _read_report(report)
        return self._judge(told, process.returncode, output, end, limit_s, time.monotonic() - began)

    def _judge(self, told: Mapping[str, Any], code: int, output: bytes, end: str, limit_s: float, seconds: float) -> Result:
        callers = {address for kernel in told["kernels"].values() for address in list_callers(kernel)}
        lines = self._find_lines(callers | {told["spot"]["caller"]} - {0})

        def find(address: int) -> str:
            return lines.get(address, "?")

        if end == "too much":
            raise TooMuchOutput(f"{_say_place(told, find)}the program printed more than {MOST_OUTPUT >> 20} MB and was ended")
        if end == "late":
            raise Endless(f"{_say_place(told, find)}the program did not end within {limit_s:g} s")
        kernels = {name: make_kernel(name, kernel, find) for name, kernel in told["kernels"].items()}
        return Result(code, output.decode(errors="replace"), kernels, seconds, _describe_crash(told, code, find))

    def _find_lines(self, addresses: set[int]) -> dict[int, str]:
        """`file:line` of the source for each address behind a call, where addr2line knows it."""
        if not addresses:
            return {}
        words = ["addr2line", "-a", "-i", "-e", str(self.path), *(hex(address - 1) for address in addresses)]
        try:
            text = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            return {}
        lines: dict[int, str] = {}
        address = 0
        for row in text.splitlines():
            if row.startswith("0x"):
                address = int(row, 16) + 1
                continue
            name, _, number = row.split(" ")[0].rpartition(":")
            if Path(name).name in self.files and number.isdecimal():
                lines.setdefault(address, f"{Path(name).name}:{number}")
        return lines


def _read_output(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, str]:
    """What a process prints until it ends, and how reading ended: ended, late, too much."""
    output = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return output, "late"
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            process.wait()
            return output, "ended"
        output += data
        if len(output) > MOST_OUTPUT:
            return output, "too much"


def _read_report(path: Path) -> dict[str, Any]:
    """What the program reported; of one that wrote nothing, or not to the end, nothing."""
    try:
        return json.loads(path.read_text(errors="replace"))
    except (OSError, ValueError):
        return {
            "end": "",
            "signal": 0,
            "kernel": "",
            "kernels": {},
            "spot": {"caller": 0, "thread": [0, 0, 0], "block": [0, 0, 0]},
        }


def _say_place(told: Mapping[str, Any], find: Any) -> str:
    """`my.cu:14: in kernel spin, thread (0,0,0) of block (0,0,0): `, where the program was; empty if that is not known."""
    line = find(told["spot"]["caller"])
    place = f"in kernel {told['kernel']}, {name_thread(told['spot'])}" if told["kernel"] and told["end"] != "exit" else ""
    return "".join(f"{word}: " for word in (line if line != "?" else "", place) if word)


_SIGNALS = {
    signal.SIGFPE: "an integer was divided by zero (a GPU gives some number and goes on)",
    signal.SIGABRT: "the program was aborted (a failed assert, or an exception that nobody caught)",
}


def _describe_crash(told: Mapping[str, Any], code: int, find: Any) -> str | None:
    if told["end"] == "stack":
        return f"{_say_place(told, find)}stack overflow: too many local variables, or a function that calls itself without end"
    if not told["end"] and code == 0:
        return "the program ended without a report: it calls _exit, or the disk is full"
    number = told["signal"] or -code if told["end"] == "crash" or code < 0 else 0
    if not number:
        return None
    return f"{_say_place(told, find)}{_SIGNALS.get(number, f'the program crashed ({signal.Signals(number).name})')}"
