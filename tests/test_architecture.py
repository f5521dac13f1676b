"""What docs/architecture.md states beside the floors (tests/test_house.py), held against the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gpucourse.cli.app import tree
from gpucourse.remote import patience
from gpucourse.remote.agent.slurm_words import AT_WORK, STATES
from tests.over_files import last_word, nodes_of, over_files

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gpucourse"
MAX_MODULES = 25  # of a package, at one level; cli has a file a command
PACKAGES = sorted({path.parent for path in SOURCE.rglob("*.py")} - {SOURCE / "cli"})
USERS_OF_PATHS = ["cli", "labs", "learning", "runs", "ui"]  # what is given a workspace, and asks it where a file is
TEMPORARY = dict.fromkeys(("learning/rehearse.py", "learning/review/rerun.py"), "a folder that is gone when the command ends")
VERBS = ["labs", "learning", "runs", "workspace"]
COMMAND_FILES = [Path(inspect.getfile(command.callback)) for command in tree().registered_commands if command.callback]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
IMPORTED_AS = {
    "kubernetes-validate": "kubernetes_validate",
    "python-terraform": "python_terraform",
    "fpdf2": "fpdf",
    "Jinja2": "jinja2",
    "markdown-it-py": "markdown_it",
    "PyYAML": "yaml",
    "Hypothesis": "hypothesis",
    "pytest-xdist": "xdist",
}
NOT_IMPORTED = [("pytest-timeout", "pyproject.toml", "\ntimeout = ")]
TABLE = dict(re.findall(r"^\| ([\w-]+)(?: \(tests\))? \| (`[^|]+`) \|", PAGE, re.MULTILINE))
ROWS = {library: homes for library, homes in TABLE.items() if library not in {row[0] for row in NOT_IMPORTED}}
# Each of these comes with one that is listed.
UNLISTED = {"botocore": "`aws`", "cryptography": "`remote/keys.py`", "markupsafe": "`ui/page`"}
SLURM_WORDS = {*STATES, *AT_WORK}
SLURM_TABLES = {
    "remote/agent/slurm_words.py": "the table",
    "remote/agent/slurm_watch.py": "the two ends of a job that left a note",
    "local/machines/reports.py": "starts the daemons of simulated machines, and never meets `remote`",
    "coach/jobs.py": "what a learner is told of a node that failed; pure, so below `remote`",
    "ui/views/slurm.py": "colours",
}
CLOCKS = {"time", "datetime", "os", "random", "secrets", "socket", "subprocess", "threading", "asyncio"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def modules_of(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (SOURCE / package).rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """The first word of every module that a file imports."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


NAMED_FILES = [
    (page, word)
    for page in ("docs/architecture.md", "CONTRIBUTING.md")
    for word in sorted(set(re.findall(r"`([\w./-]+\.py)`", (ROOT / page).read_text(encoding="utf-8"))))
]
NAMED_MODULES = sorted(
    set(re.findall(rf"`((?:{'|'.join(path.name for path in PACKAGES if path.parent == SOURCE)})(?:\.\w+)+)(?:\(\))?`", PAGE))
)


@pytest.mark.parametrize(("page", "word"), NAMED_FILES)
def test_a_file_that_a_page_names_exists(page: str, word: str) -> None:
    paths = [
        path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.py"), *ROOT.glob("docs/*.py"), *imports_of_everything()]
    ]
    assert any(f"/{path}".endswith(f"/{word}") for path in paths), page


@pytest.mark.parametrize("name", NAMED_MODULES)
def test_a_module_that_the_page_names_exists(name: str) -> None:
    path = SOURCE.joinpath(*name.split("."))
    assert path.with_suffix(".py").is_file()


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_is_small_enough_to_look_through(package: Path) -> None:
    modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES, f"{name_of(package)} holds {len(modules)} modules at one level"


@over_files(modules_of(*USERS_OF_PATHS))
def test_where_a_file_is_only_the_paths_know(path: Path) -> None:
    for node in nodes_of(path):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            named = isinstance(node.right, ast.JoinedStr) or isinstance(getattr(node.right, "value", None), str)
            assert not named or name_of(path) in TEMPORARY, (
                f"{name_of(path)}:{node.lineno} names a file, {ast.unparse(node)}: workspace/paths.py does that"
            )


@over_files(modules_of("coach"))
def test_the_coach_has_no_clock_and_asks_nobody(path: Path) -> None:
    assert not imports_of(path) & CLOCKS


@cache
def names_of_verbs() -> set[str]:
    """Every module, and every function of a module, that carries a command out."""
    modules = modules_of(*VERBS)
    functions = {node.name for path in modules for node in nodes_of(path) if isinstance(node, ast.FunctionDef)}
    return {path.stem for path in modules} | functions


@pytest.mark.parametrize("command", [path.stem for path in COMMAND_FILES])
def test_what_a_command_does_is_found_under_its_name(command: str) -> None:
    assert command in names_of_verbs()


def places_of(homes: str) -> list[Path]:
    """The files and folders that a row of the table names."""
    return [SOURCE / home if (SOURCE / home).exists() else ROOT / home for home in re.findall(r"`([^`]+)`", homes)]


@cache
def imports_of_everything() -> dict[Path, set[str]]:
    return {
        path: imports_of(path)
        for folder in ("src", "exercises", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    }


@pytest.mark.parametrize(("library", "homes"), [*ROWS.items(), *UNLISTED.items()])
def test_a_library_is_used_where_the_table_says(library: str, homes: str) -> None:
    name, places = IMPORTED_AS.get(library, library), places_of(homes)
    scope = ROOT / places[0].relative_to(ROOT).parts[0]  # tests may look at a library of the program, and mostly do
    users = [path for path, names in imports_of_everything().items() if name in names and path.is_relative_to(scope)]
    for user in users:
        assert any(user.is_relative_to(place) for place in places), f"{user.relative_to(ROOT)} imports {library}: {homes}"
    for place in places:
        assert any(user.is_relative_to(place) for user in users), f"{place.relative_to(ROOT)} does not use {library} any more"


def test_rich_is_for_markdown_and_the_picture_of_a_run_alone() -> None:
    users = {name_of(path) for path in modules_of("ui") if "rich" in imports_of(path)}
    assert users == {"ui/prose.py", "ui/screen.py"}
    assert "Markdown (`prose.py`) and the picture of a run (`screen.py`)" in " ".join(PAGE.split())


@pytest.mark.parametrize(("library", "place", "words"), NOT_IMPORTED)
def test_what_pytest_loads_is_switched_on_where_the_table_says(library: str, place: str, words: str) -> None:
    assert PAGE.count(f"| {library} (tests) | `{place}` |") == 1
    assert words in (ROOT / place).read_text(encoding="utf-8")


def test_torch_runs_on_nodes_and_in_the_judge_and_typer_hides_click() -> None:
    users = [path for path, names in imports_of_everything().items() if names & {"torch", "click"}]
    assert {name_of(path) for path in users if path.is_relative_to(SOURCE)} == {"judge/no_compiler.py", "judge/ranks.py"}


def tables_of_slurms_words(path: Path) -> list[str]:
    """The collections in a file that hold two or more of Slurm's words for a state."""
    tables: list[str] = []
    for node in nodes_of(path):
        items = (
            node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.Set | ast.List | ast.Tuple) else []
        )
        words = [item for item in items if isinstance(item, ast.Constant) and item.value in SLURM_WORDS - {"planned"}]
        tables += [ast.unparse(node)] if len(words) > 1 else []
    return tables


@over_files(sorted(SOURCE.rglob("*.py")))
def test_slurms_words_are_in_one_table(path: Path) -> None:
    assert bool(tables_of_slurms_words(path)) == (name_of(path) in SLURM_TABLES)


def row_of(title: str) -> str:
    """The row of the table "One place each" that begins with this."""
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {title} |"))


def test_tasks_side_by_side_are_started_in_one_place() -> None:
    starters = {"Thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "Pool"}
    users = {
        name_of(path)
        for path in SOURCE.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call | ast.ClassDef)
        for used in ([node.func] if isinstance(node, ast.Call) else node.bases)
        if last_word(used) in starters
    }
    assert users == set(re.findall(r"`([\w/]+\.py)`", row_of("several tasks at once")))


def test_what_a_rate_comes_to_is_computed_in_one_place() -> None:
    rates = {"rate", "per_hour", "usd_per_hour", "hourly", "price"}
    places = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(node)}"
        for path in SOURCE.rglob("*.py")
        if name_of(path) != "model/money.py"
        for node in nodes_of(path)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
        if rates & {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}
    ]
    assert places == [], "model.money.usd_over does that"


SENTENCES = {"what", "hint", "message", "detail", "summary"}  # what an error says, as attributes of errors and diagnostics
READERS = {"search", "match", "fullmatch", "findall", "startswith", "endswith", "find", "index"}


def says_a_sentence(node: ast.AST) -> bool:
    """Whether the expression has the text of an error in it."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr in SENTENCES)
        or (isinstance(part, ast.Call) and ast.unparse(part) in {"str(error)", "str(caught)", "str(exception)", "repr(error)"})
        for part in ast.walk(node)
    )


def reads_a_sentence(node: ast.AST) -> bool:
    """Whether a comparison or a search decides something by the text of an error."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops):
            return any(says_a_sentence(side) for side in node.comparators)
        quoted = any(isinstance(side, ast.Constant) and isinstance(side.value, str) and side.value for side in sides)
        return quoted and any(says_a_sentence(side) for side in sides)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
        return any(says_a_sentence(part) for part in (node.func.value, *node.args))
    return False


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ('"assume" in error.message', True), ('str(error) == "Authentication timeout."', True),
        ('error.what.startswith("node0")', True), ('re.search("no room", error.detail)', True),
        ('error.kind == "role"', False), ('error.cloud_code in {"ConflictException"}', False), ('if_empty == ""', False),
    ],
)  # fmt: skip
def test_a_read_sentence_is_seen(code: str, *, reads: bool) -> None:
    assert any(reads_a_sentence(node) for node in ast.walk(ast.parse(code))) == reads


def test_no_code_reads_the_sentence_of_an_error() -> None:
    readers = {name_of(path) for path in SOURCE.rglob("*.py") for node in nodes_of(path) if reads_a_sentence(node)}
    allowed = {name for name in re.findall(r"`([\w/]+\.py)`", row_of("what an error means")) if name != "aws/failure_table.py"}
    assert readers == allowed, "a class, a code or a kind says what an error means"


def test_one_file_chooses_the_build_of_torch() -> None:
    indexes = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "Makefile", "*.toml", ".github/workflows/*", ".ci/*", "requirements.lock")
        for folder in (ROOT, SOURCE)
        for path in (folder.rglob(pattern) if folder == SOURCE else folder.glob(pattern))
        if "download.pytorch.org" in path.read_text(encoding="utf-8")
    ]
    assert indexes == ["install.py"]
    assert not re.search(r"^torch\b", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)


WAITS = {"timeout_s", "silence_s", "limit_s"}  # the words for a wait, as parameters and as keywords
WAITING_FOR_NODES = modules_of("remote", "runs", "labs")


def waits_of(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """Every line of a file with what it says of a wait: at a call, or as a parameter's default."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            yield from ((keyword.value.lineno, keyword.value) for keyword in node.keywords if keyword.arg in WAITS)
        elif isinstance(node, ast.arguments):
            plain = zip(reversed(node.args), reversed(node.defaults), strict=False)
            defaults = [*plain, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]
            yield from ((value.lineno, value) for word, value in defaults if word.arg in WAITS and value is not None)


@over_files(WAITING_FOR_NODES)
def test_nothing_waits_longer_for_an_answer_than_patience_says(path: Path) -> None:
    for line, value in waits_of(path):
        if isinstance(value, ast.Constant) and isinstance(value.value, float | int):
            assert value.value < patience.ANSWER_S, f"{name_of(path)}:{line}: remote/patience.py says how long at most"


@pytest.mark.parametrize("name", [name for name in vars(patience) if name.isupper()])
def test_a_limit_of_patience_limits_something(name: str) -> None:
    uses = sum(len(re.findall(rf"\b{name}\b", path.read_text(encoding="utf-8"))) for path in WAITING_FOR_NODES)
    assert uses > 1, f"nothing asks for {name}"


@over_files(sorted((ROOT / "tests" / "unit" / "cli").glob("test_*.py")))
def test_a_unit_test_of_the_command_line_is_named_as_its_file(path: Path) -> None:
    assert (SOURCE / "cli" / path.name.removeprefix("test_")).is_file()
