"""The interface for judge files: the learner's part, its functions, and comparisons that say which known mistake was made.

A judge file has a dictionary `WAYS` of the mistakes that it recognises, and a function `judge(part)`. The function returns if
the part is right. Otherwise it raises `Verdict`, usually through `Part.wrong`, `Part.compare` or `Part.call`.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from gpucourse.judge.cases import Case, Knobs, brief, describe, describe_passing, find_simplest, same
from gpucourse.judge.counterfactual import sample
from gpucourse.judge.ranks import StartRanks, run_ranks
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.yaml_reader import Document, read_document

MAX_LINES, MAX_LINE = 12, 1000  # the limits for a traceback
_CPP_PLACE = re.compile(r"\[(?:enforce fail at )?/\S+:\d+\]\s*")  # the place in C++ before a message of torch or gloo
_CPP_STACK = "\nException raised from "  # follows such a message


@dataclass(frozen=True)
class Way:
    """A wrong way: the message for the learner, and the change to the solution that produces it, as old and new text.

    `says` and `seen` may contain names in braces, which `Part.wrong` fills in. `change` proves that the judge recognises this
    way.

    A way needs `seen` if `says` names a cause but another error could have the same effect. The learner then sees `seen`,
    unless the solution with this change has the same output as the part. Leave `seen` out if `says` only reports what was
    observed.
    """

    says: str
    change: tuple[str, str] = ("", "")
    seen: str = ""


def plant_ways(ways: Mapping[str, Way], judge_file: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield the name of each way, and the course's solution with the change of this way, as a module.

    `judge_file`: the `__file__` of the judge. Yield nothing if there is no solution, as on a learner's computer.
    """
    path = Path(judge_file).resolve()
    solution = path.parent.parent / "solutions" / path.name
    text = solution.read_text(encoding="utf-8") if solution.is_file() else ""
    for name, way in ways.items() if text else ():
        module = ModuleType(name)
        exec(compile(text.replace(*way.change), name, "exec"), module.__dict__)  # noqa: S102  # the course's own text
        yield name, module


def _list_imports(text: str) -> list[tuple[str, int]]:
    """Return the top-level modules that a file imports, each with its line. A file that is not Python has none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # reported when the part is loaded
        return []
    modules: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [(alias.name.partition(".")[0], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.append(((node.module or "").partition(".")[0], node.lineno))
    return modules


@dataclass
class Part:
    """The learner's part: its `file`, and the wrong ways that its judge recognises. `notes` are facts for the screen.

    `metrics` contains the measurements of a run, and is empty if the part is judged without a run.
    """

    file: Path
    metrics: Mapping[str, Any] = field(default_factory=dict)
    ways: Mapping[str, Way] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    start_ranks: StartRanks = run_ranks
    deadline: float = math.inf  # when judging must end, by the monotonic clock
    times: float = 1.0  # multiplies the time limit of ranks that import torch one by one
    _module: ModuleType | None = None
    _passed: list[Knobs] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the file's text, with "\\n" as line ends. Raises Verdict if it is not text."""
        try:
            return self.file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise Verdict("failed", "not-text", f"{self.file.name} is not text in UTF-8: save it again as UTF-8") from None

    @property
    def document(self) -> Document:
        """Return the learner's file as YAML: its data, and the line of each key. Raises Verdict with the line if it is not
        YAML."""
        document = read_document(self.text.encode())
        for complaint in document.complaints:
            line = f":{complaint.line}" if complaint.line else ""
            key = ".".join(map(str, complaint.path))
            raise Verdict("failed", "not-yaml", f"{self.file.name}{line}: {key} {complaint.reason}".replace("  ", " "))
        return document

    @property
    def module(self) -> ModuleType:
        """Return the learner's file as a Python module, imported once. Raises Verdict if it cannot be imported."""
        if self._module is None:
            self._module = self.call(self._load)
        return self._module

    def _load(self) -> ModuleType:
        if "\0" in self.text:
            raise Verdict("failed", "not-text", f"{self.file.name} is not text: save it again as UTF-8")
        spec = importlib.util.spec_from_file_location(self.file.stem, self.file)
        if spec is None or spec.loader is None:
            raise Verdict("failed", "not-python", f"{self.file.name} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.file.stem] = module
        spec.loader.exec_module(module)
        return module

    def refuse_other_course_files(self, delivered: Path) -> None:
        """Raise Verdict if the part imports a file of the course that the delivered version does not import.

        Such a file may compute the result that the run compares the part with. A part that calls it would only copy that
        result.
        """
        if self.file.suffix != ".py" or not delivered.is_file():
            return
        allowed = {name for name, _ in _list_imports(delivered.read_text(encoding="utf-8"))}
        folders = delivered.parent, delivered.parent.parent / "shared"
        for name, line in _list_imports(self.text):
            if name not in allowed and any((folder / f"{name}.py").is_file() for folder in folders):
                text = f"{self.file.name}:{line} imports {name}, a file of the course that a part may not use"
                raise Verdict("failed", "course-file", f"{text}: write it yourself")

    def function(self, name: str) -> Callable[..., Any]:
        """Return the learner's function (or class) of that name. Raises Verdict if the file has no such function."""
        found_value = getattr(self.module, name, None)
        if callable(found_value):
            return found_value  # type: ignore[no-any-return]
        functions = [key for key, value in vars(self.module).items() if callable(value) and not key.startswith("_")]
        own_functions = [key for key in functions if getattr(vars(self.module)[key], "__module__", "") == self.file.stem]
        list_of_functions = f"; it has {', '.join(own_functions[:5])}" if own_functions else ""
        raise Verdict(
            "failed",
            "no-function",
            f"{self.file.name} has no function {name}, which is called{list_of_functions}: keep its name",
        )

    def function_alone(self, name: str, **names: Any) -> Callable[..., Any]:
        """Return a function of a script that cannot be imported. Only its code is executed, without decorators. Its globals are
        `names`.

        Raises Verdict if the file has no such function.
        """
        tree = self.call(ast.parse, self.text, self.file.name)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        if not nodes:
            raise Verdict("failed", "no-function", f"{self.file.name} has no function {name}: keep its name")
        nodes[0].decorator_list = []
        exec(compile(ast.Module([nodes[0]], []), str(self.file), "exec"), names)  # noqa: S102  # the judge has to run it
        return names[name]  # type: ignore[no-any-return]

    def call(self, function: Callable[..., Any], *arguments: Any, case: str = "", **keywords: Any) -> Any:
        """Return the result of the learner's function. Any exception becomes a verdict with the line of the learner's file.

        NotImplementedError means that the part is still open.
        """
        try:
            return function(*arguments, **keywords)
        except Verdict:
            raise
        except BaseException as error:  # noqa: BLE001  # the learner's code may raise anything, and the error is shown
            raise self.make_verdict(error, case) from None

    def make_verdict(self, error: BaseException, case: str = "") -> Verdict:
        """Return the verdict on an error from the learner's code, and print the traceback, beginning at the learner's first
        line.
        """
        if isinstance(error, NotImplementedError) and self._is_raised_here(error):
            return Verdict("open", sentence=_describe(error) or "not written yet")
        place = self._find_place(error)
        if isinstance(error, SystemExit):
            return Verdict("failed", "exit", f"{place}it ended the program (exit {error.code}): return instead")
        if isinstance(error, SyntaxError) and error.filename in {str(self.file), self.file.name}:
            line = f":{error.lineno}" if error.lineno else ""
            return Verdict("failed", "not-python", f"{self.file.name}{line}: {error.msg}")
        if isinstance(error, MemoryError) or "can't allocate memory" in _describe(error):
            return Verdict("failed", "memory", f"{place}it asked for more memory than a part may have", case)
        if isinstance(error, ModuleNotFoundError):
            complaint = f"{place}it imports {error.name}, which is missing: a part may import torch and the exercise's packages"
            return Verdict("failed", "no-library", complaint, case)
        self._show(error)
        if isinstance(error, EOFError) and "input" in self._line(error):
            return Verdict("failed", "reads-input", f"{place}it waits for input: use the arguments instead", case)
        return Verdict("failed", "error", f"{place}{type(error).__name__}: {_describe(error)}", case)

    def is_own_fault(self, error: BaseException) -> bool:
        """Return whether an error came from the learner's file, even through another function."""
        return bool(self._frames(error))

    def _is_raised_here(self, error: BaseException) -> bool:
        """Return whether the learner's file itself raised the error, not a library that it called."""
        frames = traceback.extract_tb(error.__traceback__)
        return bool(frames) and Path(frames[-1].filename) == self.file

    def _frames(self, error: BaseException) -> list[traceback.FrameSummary]:
        return [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == self.file]

    def _line(self, error: BaseException) -> str:
        frames = self._frames(error)
        return (frames[-1].line or "") if frames else ""

    def _find_place(self, error: BaseException) -> str:
        """Return `my_ring.py:14: `, the learner's last line in the traceback, or an empty string if there is no such
        line."""
        frames = self._frames(error)
        return f"{self.file.name}:{frames[-1].lineno}: " if frames else ""

    def _show(self, error: BaseException) -> None:
        """Print the traceback, beginning at the learner's first line. The frames above it belong to the judge."""
        trace: Any = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename) != self.file:
            trace = trace.tb_next
        with suppress(Exception):  # the exception cannot be printed, or the part has closed the output
            lines = traceback.format_exception(type(error), error, trace, limit=MAX_LINES)
            sys.stdout.write("".join(line[:MAX_LINE] for line in lines))

    def wrong(self, way: str, case: str = "", *, output: Any = None, **values: object) -> Verdict:
        """Return the verdict on a wrong way that the judge has recognised: `raise part.wrong("doubled", ranks=2)`.

        A way with `seen` needs the `output` that showed it, as numbers, texts, lists, dictionaries or tensors.
        """
        description = self.ways[way]
        verdict = Verdict("failed", way, _space_percent(description.says.format(**values)), case)
        if description.seen:
            verdict.suspicion = {
                "change": description.change,
                "seen": _space_percent(description.seen.format(**values)),
                "output": sample(output),
            }
        return verdict

    def compare(self, cases: Sequence[Case], *, tolerance: float = 1e-9) -> None:
        """Check that every case is right. The difference of two numbers, even in nested sequences and tensors, may be at most
        `tolerance` times the larger one.

        If a case is wrong, raise Verdict with the wrong way that produces the learner's value in every case. If no way does,
        the verdict shows the simplest wrong case and the nearest right case.
        """
        wrong_cases = [case for case in cases if not same(case.given, case.right, tolerance)]
        if not wrong_cases:
            return
        wrong_case = wrong_cases[0]
        for way in wrong_case.ways:
            if all(same(case.given, case.ways.get(way, case.right), tolerance) for case in cases):
                name = way if isinstance(way, str) else way[0]
                raise self.wrong(
                    name,
                    wrong_case.name,
                    **{"given": brief(wrong_case.given), "right": brief(wrong_case.right), **wrong_case.values},
                )
        wrong_case = wrong_cases[find_simplest([case.knobs for case in wrong_cases])]
        if all(case.given is None for case in cases):
            raise Verdict("failed", "no-answer", "it returned None: is the return missing?", wrong_case.name)
        passing_words = describe_passing(wrong_case.knobs, [case.knobs for case in cases if case not in wrong_cases])
        raise Verdict(
            "failed", "other", describe(wrong_case.given, wrong_case.right, tolerance) + passing_words, wrong_case.name
        )

    @contextmanager
    def trying(self, knobs: Knobs) -> Iterator[None]:
        """Judge one of several inputs in this block. Try the inputs one after the other, simplest first.

        If the verdict names no known way, it says which change to the input makes the part pass, according to the inputs tried
        before.
        """
        try:
            yield
        except Verdict as verdict:
            passing_words = describe_passing(knobs, self._passed) if verdict.word == "failed" else ""
            if verdict.suspicion:
                verdict.suspicion["seen"] += passing_words
            elif verdict.way not in self.ways:
                verdict.says += passing_words
            raise
        self._passed.append(knobs)

    def note(self, text: str) -> None:
        """Add a fact for the screen, such as a count or the number of tries."""
        self.notes.append(_space_percent(text))

    def on_ranks(self, size: int, body: Callable[[int, int], Any], *, limit_s: float = 15.0) -> list[Any]:
        """Return the result of `body(rank, size)` on each of `size` ranks, which share a gloo process group on this computer.

        Raises Verdict if a rank fails, or if the ranks wait for each other longer than `limit_s` seconds.
        """
        limit_s *= self.times
        left_s = self.deadline - time.monotonic() - 1.0  # so that the ranks can report where they are
        return self.start_ranks(self.call, size, body, min(limit_s, left_s), self.file.name)


def _space_percent(text: str) -> str:
    """Return the text with a space before each percent sign after a number. Python's format `.0%` has none."""
    return re.sub(r"(?<=\d)%(?!\w)", " %", text)


def _describe(error: BaseException) -> str:
    """Return the text of an error, cut to a limit and without locations in C++ code. Return an empty string if the learner's
    exception class cannot produce its text."""
    try:
        return _CPP_PLACE.sub("", str(error).partition(_CPP_STACK)[0])[:1000]
    except Exception:  # noqa: BLE001
        return ""
