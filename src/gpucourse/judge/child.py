"""The process in which parts are judged: `python -m gpucourse.judge.child`. It imports torch once, and forks for each part.

It reads requests as lines of JSON and writes an answer for each: {"word", "way", "says", "case", "notes", "output", "seconds"}.
Whatever a part does (no end, a crash, exit, 200 MB of prints) happens in a fork in a session of its own, which is ended with
everything that it started.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from gpucourse.judge.part import Part
from gpucourse.judge.verdict import Verdict

OUTPUT_LIMIT = 1 << 20  # bytes that a part may print before it is ended
OUTPUT_SHOWN = 8 << 10  # bytes of it that the answer has
MEMORY_LIMIT = 4 << 30  # bytes of data that a part may hold; torch itself takes less than a tenth


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("torch"):
            import torch  # noqa: F401  # once, for all forks
        sys.stdout.write(json.dumps(judge_apart(request)) + "\n")
        sys.stdout.flush()


def judge_apart(request: dict[str, Any]) -> dict[str, Any]:
    """Judge one part in a fork, within `limit_s` seconds."""
    began = time.monotonic()
    output_reader, output_writer = os.pipe()
    answer_reader, answer_writer = os.pipe()
    with tempfile.TemporaryDirectory(prefix="gpucourse-part-") as folder:
        stacks = Path(folder) / "stacks"
        child = os.fork()
        if child == 0:
            os.close(output_reader)
            os.close(answer_reader)
            _be_child(request, folder, stacks, output_writer, answer_writer)
        os.close(output_writer)
        os.close(answer_writer)
        pipes, place = _Pipes(output_reader, answer_reader), None
        try:
            if not pipes.read_until(began + request["limit_s"]):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGUSR1)  # it writes where it is
                pipes.read_until(time.monotonic() + 0.5)
                place = _line_of_stack(stacks, Path(request["file"]).name)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            os.close(output_reader)
            os.close(answer_reader)
    document = _document(request, pipes, place, os.waitstatus_to_exitcode(status))
    return {**document, "output": pipes.text.decode(errors="replace"), "seconds": round(time.monotonic() - began, 3)}


def _document(request: dict[str, Any], pipes: _Pipes, place: str | None, code: int) -> dict[str, Any]:
    """The answer of the child, or why it gave none; `place` is where it was when its time was over."""
    if pipes.printed > OUTPUT_LIMIT:
        return _make_failure("too-much-output", f"it printed more than {OUTPUT_LIMIT >> 20} MB and was ended: print less")
    if pipes.verdict.endswith(b"\n"):
        return json.loads(pipes.verdict)  # type: ignore[no-any-return]
    if place is not None:
        return _make_failure("endless", f"{place}it did not end within {request['limit_s']:g} s")
    if code < 0:
        return _make_failure("crash", f"it crashed: {signal.Signals(-code).name}")
    return _make_failure("exit", f"it ended its process with code {code}: return instead")


def _make_failure(way: str, says: str) -> dict[str, Any]:
    return {"word": "failed", "way": way, "says": says, "case": "", "notes": []}


class _Pipes:
    """What comes from the child: its prints, bounded, and its answer, which ends with a line end."""

    def __init__(self, output: int, answer: int) -> None:
        self.output, self.answer = output, answer
        self.text = self.verdict = b""
        self.printed = 0
        self._open = {output, answer}

    def read_until(self, deadline: float) -> bool:
        """Read until the answer is whole, the child has ended, or it printed too much: True. At the deadline: False."""
        while not self._is_over():
            ready, _, _ = select.select(sorted(self._open), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            self._take(ready)
        while ready := select.select(sorted(self._open & {self.output}), [], [], 0)[0]:  # what it printed last
            self._take(ready)
        return True

    def _is_over(self) -> bool:
        return self.answer not in self._open or self.verdict.endswith(b"\n") or self.printed > OUTPUT_LIMIT

    def _take(self, ready: list[int]) -> None:
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            if not data:
                self._open.discard(pipe)
            elif pipe == self.answer:
                self.verdict += data
            else:
                self.printed += len(data)
                self.text += data[: max(0, OUTPUT_SHOWN - len(self.text))]
        if self.printed > OUTPUT_LIMIT:
            self._open.discard(self.output)


def _line_of_stack(stacks: Path, name: str) -> str:
    """`my_ring.py:14: `, from what faulthandler wrote: the innermost line of the learner's file."""
    text = stacks.read_text(encoding="utf-8", errors="replace") if stacks.exists() else ""
    match = re.search(rf'File ".*{re.escape(name)}", line (\d+)', text)
    return f"{name}:{match[1]}: " if match else ""


def _be_child(request: dict[str, Any], folder: str, stacks: Path, output: int, answer: int) -> NoReturn:
    """The fork: judge, write the answer, end. Nothing returns from here."""
    code = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        sys.stderr = sys.stdout
        with stacks.open("w") as file:
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
            os.chdir(folder)
            if sys.platform == "linux":
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
            data = json.dumps(_judge(request)).encode() + b"\n"
            sys.stdout.flush()
            while data:
                data = data[os.write(answer, data) :]
        code = 0
    finally:
        os._exit(code)


def _judge(request: dict[str, Any]) -> dict[str, Any]:
    sys.path[:0] = [str(Path(request["file"]).parent), str(Path(request["judge"]).parent), *request.get("path", ())]
    sys.dont_write_bytecode = True
    part = Part(Path(request["file"]), request.get("metrics") or {})
    try:
        judge_file = load_judge(Path(request["judge"]))
        part.ways = judge_file.WAYS
        judge_file.judge(part)
        verdict = Verdict("passed")
    except Verdict as raised:
        verdict = raised
    except Exception as error:  # noqa: BLE001  # a fault of the course, which must not be taken for the learner's
        traceback.print_exc(file=sys.stdout)
        verdict = Verdict("error", "judge", f"the course's judge itself failed: {type(error).__name__}: {error}")
    return {"word": verdict.word, "way": verdict.way, "says": verdict.says, "case": verdict.case, "notes": part.notes}


def load_judge(path: Path) -> Any:
    """A judge file of the course, as a module with `WAYS` and `judge`."""
    spec = importlib.util.spec_from_file_location(f"judge_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the types of their fields
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    serve()
