"""Check that the scripts of an exercise agree with its manifest: flags, uploaded imports, packages on the nodes, and keys of
the metrics. Nothing is executed.

Every word in a script that can be a key counts as written. So an error here means that no script can write the key. The
opposite is not proved: only a run (`dev check --run`) shows that a key is always written.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.course.catalog import Catalog
from gpucourse.course.rules import place_of
from gpucourse.course.written import did_you_mean
from gpucourse.model.fields import EXPRESSION, is_evidence
from gpucourse.model.launching import Parameter
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.report_plan import SUBJECTS, ReportChapter

IMPLIED_PACKAGES = {"torch": {"numpy"}}  # what importing the package also imports: torch needs numpy
BY_PROGRAM = {"slurm", "session", "mode"}  # added by gpucourse itself: the scheduler's record of a run, a recorded session


def check_scripts(catalog: Catalog, exercise: Exercise) -> Iterator[str]:
    """Yield the differences between the scripts of an exercise and its manifest, one line each."""
    manifest = catalog.manifest_label(exercise)
    sources = catalog.sources(exercise)
    script_places = [place for place in sources.values() if place.endswith(".py") or place == sources[exercise.script]]
    trees: dict[str, ast.Module] = {}
    for place in script_places:
        try:
            trees[place] = ast.parse((catalog.folders.exercises / place).read_text(encoding="utf-8"), filename=place)
        except (SyntaxError, ValueError) as error:
            yield f"{catalog.folders.exercises.name}/{place}: is not Python: {error}"
    if len(trees) < len(script_places):
        return
    words = words_of(catalog.folders.exercises / place for place in sources.values())
    yield from (f"{manifest}: {line}" for line in find_unwritten(exercise, words))
    missing = _find_missing_imports(exercise, sources, trees, catalog.folders.exercises, catalog.folder_name(exercise))
    yield from (f"{manifest}: {exercise.id}.{line}" for line in missing)
    place = sources[exercise.script]
    label, tree = f"{catalog.folders.exercises.name}/{place}", trees[place]
    if not ast.get_docstring(tree):
        yield f"{label}: has no docstring, which is the first thing that a learner reads"
    flags = _flags(tree)
    parameters = [parameter for parameter in exercise.parameters if parameter.name not in exercise.launch.for_launcher]
    for parameter in parameters:
        if parameter.flag not in flags:
            yield f"{label}: has no flag {parameter.flag}, a parameter of {exercise.id}"
        else:
            yield from _difference(label, parameter, flags[parameter.flag])
    parameter_flags = {parameter.flag for parameter in parameters}
    yield from (
        f"{label}: the flag {flag} is not a parameter of {exercise.id}" for flag in flags if flag not in parameter_flags
    )


def _difference(label: str, parameter: Parameter, options: dict[str, Any]) -> Iterator[str]:
    kind = "bool" if "action" in options else options.get("type", "str")
    if kind != parameter.type:
        yield f"{label}: {parameter.flag} is of type {kind}, but of type {parameter.type} in the manifest"
    default = options.get("default", False if kind == "bool" else None)
    if default != parameter.default or isinstance(default, bool) != isinstance(parameter.default, bool):
        yield f"{label}: {parameter.flag} has the default {default!r}, but {parameter.default!r} in the manifest"
    choices = options.get("choices", ())
    if not isinstance(choices, str) and not parameter.each and set(choices) != set(parameter.choices) and choices:
        manifest_choices = ", ".join(map(str, parameter.choices)) or "none"
        choices_text = ", ".join(map(str, choices))
        yield f"{label}: {parameter.flag} has the choices {choices_text}, but {manifest_choices} in the manifest"


def _flags(tree: ast.Module) -> dict[str, dict[str, Any]]:
    """Return the script's argparse options, each with its keywords: literals as values, names as words."""
    flags: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
            continue
        names = [name.value for name in node.args if isinstance(name, ast.Constant) and isinstance(name.value, str)]
        long = next((name for name in names if name.startswith("--")), None)
        if long:
            flags[long] = {keyword.arg: _plain(keyword.value) for keyword in node.keywords if keyword.arg}
    return flags


def _plain(value: ast.expr) -> object:
    try:
        return ast.literal_eval(value)
    except ValueError:
        return ast.unparse(value)


def _find_missing_imports(
    exercise: Exercise, sources: Mapping[str, str], trees: Mapping[str, ast.Module], exercises: Path, folder: str
) -> Iterator[str]:
    """Yield the imports that fail on a node, one line each: `place: reason`.

    `sources`: the uploaded files, from `Catalog.sources`.
    `trees`: the syntax trees of the Python files, by path.
    `folder`: the module's folder in `exercises`.

    A package is checked only if the script itself imports it at the start. Other imports may be optional, or in a function that
    is never called.
    """
    for name, place in sources.items():
        for module in sorted(_list_imports(_walk_start(trees[place])) if place in trees else ()):
            if f"{module}.py" in sources or any(file.startswith(f"{module}/") for file in sources):
                continue
            file = next((file for file in (f"{module}.py", module) if place_of(exercises, folder, file)), None)
            if file is not None and module not in sys.stdlib_module_names:
                yield f"files: {name} imports {module}, but {file} is not uploaded: add it to files"
    yield from _find_missing_packages(exercise, sources, trees[sources[exercise.script]], exercises)


def _find_missing_packages(exercise: Exercise, sources: Mapping[str, str], tree: ast.Module, exercises: Path) -> Iterator[str]:
    helpers = {Path(name).stem for name in sources} | {name.split("/")[0] for name in sources if "/" in name}
    implied_modules = {name for package in exercise.packages for name in IMPLIED_PACKAGES.get(package, ())}
    available = {*exercise.packages, *implied_modules, *helpers, *sys.stdlib_module_names}
    own_modules = {path.stem for path in (exercises / sources[exercise.script]).parent.glob("*.py")}
    own_modules |= {path.stem for path in (exercises / "shared").glob("*.py")}
    for module in sorted(_list_imports(tree.body)):
        if module not in available and module not in own_modules:  # missing helpers were reported above
            near = did_you_mean(module, {Path(name).stem for name in sources if name.endswith(".py")})
            yield f"packages: {exercise.script} imports {module}, but nodes are not checked for it: add it to packages{near}"


def _walk_start(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the syntax nodes that run when a file is imported; nodes inside functions do not."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _walk_start(node)


def _list_imports(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the first words of the module names that these statements import."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


@dataclass(frozen=True)
class _MetricWords:
    """The words in some sources, and patterns for words that the script builds when it runs."""

    exact: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def __contains__(self, key: str) -> bool:
        return key in self.exact or any(pattern.fullmatch(key) for pattern in self.patterns)


def words_of(sources: Iterable[Path]) -> _MetricWords:
    """Return every word in the sources that can be a key: texts, and the names of keyword arguments and fields. Only Python
    files are read."""
    exact: set[str] = set()
    patterns: set[str] = set()
    for path in sources:
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                exact.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg:
                exact.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                exact.add(node.target.id)
            elif isinstance(node, ast.JoinedStr) and (pattern := _pattern(node)):
                patterns.add(pattern)
    return _MetricWords(frozenset(exact), tuple(map(re.compile, sorted(patterns))))


def list_exercise_paths(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield every path into the metrics that the manifest reads, including keys of rows. Each comes with the place that reads
    it."""
    for check in exercise.checks:
        yield f"checks.{check.id}", check.value
        if isinstance(operand := check.comparison[1], str) and is_evidence(operand):
            yield f"checks.{check.id}", operand
    for question in exercise.questions:
        yield from ((f"questions.{question.id}", path) for path in question.reads)
    yield from (("predict", path) for path in (exercise.predict.reads if exercise.predict else ()))
    for table in exercise.tables:
        yield from ((f"tables.{table.title}", f"{table.rows}.{column.key}") for column in table.columns)
    for plot in exercise.plots:
        yield from ((f"plots.{plot.file}", path) for path in list_plot_paths(plot))


def list_chapter_paths(chapter: ReportChapter) -> Iterator[tuple[str, str]]:
    """Yield every path into the metrics that a chapter of the report reads. Each comes with the place that reads it."""
    yield from ((f"figures.{figure.id}", figure.value) for figure in chapter.figures)
    for plot in chapter.charts:
        yield from ((f"charts.{plot.file}", path) for path in list_plot_paths(plot) if not path.startswith(f"{SUBJECTS}."))


def list_plot_paths(plot: Plot) -> Iterator[str]:
    """Yield the path of every key that a plot shows."""
    keys = [plot.x, plot.by, plot.ideal_key, *(key for series in plot.series for key in (series.key, series.low, series.high))]
    yield from (f"{plot.rows}.{key}" for key in keys if key)


def find_unwritten(exercise: Exercise, words: _MetricWords, paths: Iterable[tuple[str, str]] | None = None) -> Iterator[str]:
    """Yield the paths that the manifest, or `paths` if given, reads from the metrics but no script writes, one line each."""
    reported: set[str] = set()
    names = {parameter.name for parameter in exercise.parameters}  # scripts write all of them, with the values of the run
    for place, expression in list_exercise_paths(exercise) if paths is None else paths:
        match = EXPRESSION.match(expression)
        steps = match["path"].split(".") if match else []
        if not steps or steps[0] != "metrics" or steps[1] in BY_PROGRAM:
            continue
        for step in steps[1:]:
            line = f"{exercise.id}.{place}: no script of {exercise.id} writes {step}, which {'.'.join(steps)} needs"
            if not (step.isdigit() or step in names or step in words or line in reported):
                reported.add(line)
                yield line


def _pattern(node: ast.JoinedStr) -> str:
    """Return a regular expression for a text with placeholders, or an empty string if no letter of the text is fixed."""
    parts = [
        re.escape(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else "[a-z0-9_]+"
        for part in node.values
    ]
    fixed = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return "".join(parts) if re.search("[a-z]", fixed) and " " not in fixed else ""
