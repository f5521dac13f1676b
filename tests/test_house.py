"""The architecture, as promises: imports go down only, a library has one home, files stay small, `--help` stays light."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.models import CommandInfo

from gpucourse.cli.app import tree
from gpucourse.workspace.paths import WorkspacePaths
from tests.over_files import last_word, nodes_of, over_files
from tests.waiting import STUCK_S

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gpucourse"

FLOORS = {
    "errors": 0, "units": 0, "hardware": 0, "parallel": 0, "storage": 0, "outside": 0, "model": 0, "ports": 0, "__init__": 0,
    "course": 1, "workspace": 1, "launch": 1, "grading": 1, "figures": 1, "report": 1, "coach": 1, "judge": 1,
    "provision": 2, "remote": 2, "local": 2, "aws": 2,
    "context": 3,
    "runs": 4,
    "labs": 5, "learning": 5,
    "cli": 6, "ui": 6, "__main__": 6,
}  # fmt: skip
GROUND = ["errors", "units", "hardware", "parallel", "storage", "outside", "model", "ports"]  # the order matters here
HEAVY = ["boto3", "botocore", "paramiko", "python_terraform", "matplotlib", "asyncssh", "pydantic", "torch", "rich"]
HEAVY += ["gpucourse.labs.results"]  # `status` is promised within 0.10 s; this takes 5 ms, and pulls in more
TOO_HEAVY_FOR_STATUS = ["gpucourse.hardware", "gpucourse.model.event", "gpucourse.model.plan", "hashlib"]  # 9 ms together
LAB = {"version": 1, "stack": "03-local", "uid": "w-1", "module": "3", "target": "local", "template": "local"}
LAB |= {"phase": "ready", "created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z", "nodes_wanted": 1}
MAX_LINES = 350
MAX_BODY_LINES = 40  # of a function in cli, without its parameters and its docstring
READERS = {  # who may take JSON, YAML, a tar or a zip apart beside the gate (outside), and why nobody else's text comes there
    "remote/agent/": "runs on a node; it reads what this program sent, and what Slurm's own commands print",
    "remote/push.py": "writes a tar, and reads none",
    "learning/bundle.py": "writes a zip; unpacking one is the gate's",
    "workspace/files.py": "writes records; what it reads comes through the gate first",
    "ui/console.py": "reads what it wrote in the line before",
    "aws/tables.py": "reads tables of this package",
    "hardware.py": "reads the table of GPUs that ships with the program",
    "aws/pricing.py": "reads what boto3 has of AWS, over TLS",
    "learning/review/commands.py": "reads what a command of this very program printed",
    "judge/": "a pipe between two processes of this program",
    "figures/plot_process.py": "a pipe between two processes of this program",
    "figures/plot_worker.py": "a pipe between two processes of this program",
    "local/": "the hosts of simulated nodes: processes and files of the same program and user",
    "provision/binary.py": "a cache; whatever does not look like an entry is dropped",
    "provision/state.py": "Terraform's state of a stack of this workspace",
    "provision/transcript.py": "what the Terraform that this program started prints",
}
READING = {
    "json": {"loads", "load"},
    "msgspec": {"convert", "decode"},
    "yaml": {"safe_load", "load", "parse", "compose", "scan"},
}
CALLS = set().union(*READING.values())
ARCHIVES = {"tarfile", "zipfile"}
TOUCHING = {  # in `remote`, where nodes talk: who may open, write or remove a file of this computer
    "unpack.py": "outputs: names that the gate passed, below the run's folder",
    "logfile.py": "a log of a run, never through a link",
    "keys.py": "the workspace's own key",
    "push.py": "reads what the learner sends",
    "jobs.py": "reads the agent's own source",
}
TOUCHES = {
    "open",
    "unlink",
    "remove",
    "rename",
    "rmtree",
    "write_text",
    "write_bytes",
    "writing",
    "mkdir",
    "symlink_to",
}

FILES = sorted(SOURCE.rglob("*.py"))


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    """Every module that a file imports, wherever in the file, as a full dotted name."""
    names: list[str] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            names += [f"{module}.{alias.name}" for alias in node.names] if module == "gpucourse" else [module]
    return names


@over_files(FILES)
def test_imports_go_down_only(path: Path) -> None:
    here = package(path)
    assert here in FLOORS, f"{here} stands on no floor"
    for name in imports(path):
        if not name.startswith("gpucourse."):
            continue
        there = name.split(".")[1]
        if there in {here, "__version__"}:
            continue
        assert FLOORS[there] <= FLOORS[here], f"{path.name} (floor {FLOORS[here]}) imports {there} (floor {FLOORS[there]})"
        if FLOORS[here] == FLOORS[there] == 0:
            assert GROUND.index(there) < GROUND.index(here), f"{here} imports {there}"
        elif FLOORS[here] == FLOORS[there]:
            assert here in {"cli", "__main__"}, f"{here} imports its neighbour {there}"


def test_locks_have_one_home() -> None:
    """The agent has its own: it runs on a node, where nothing of this program is."""
    homes = {str(path.relative_to(SOURCE)) for path in FILES if "fcntl.flock(" in path.read_text(encoding="utf-8")}
    assert homes == {"workspace/lock.py", "remote/agent/job.py"}


def test_no_circles_between_modules() -> None:
    known = {
        ".".join(("gpucourse", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__") for path in FILES
    }
    arrows: dict[str, set[str]] = {}
    for path in FILES:
        name = ".".join(("gpucourse", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        arrows[name] = {imported_name for imported_name in imports(path) if imported_name in known} - {name}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name in done:
            return
        for there in sorted(arrows[name]):
            visit(there, (*trail, name))
        done.add(name)

    for name in sorted(arrows):
        visit(name, ())


@over_files([*FILES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "exercises").rglob("*.py"))])
def test_files_stay_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{path.relative_to(ROOT)} has {lines} lines"


@over_files(FILES)
def test_nothing_below_the_face_prints(path: Path) -> None:
    if FLOORS[package(path)] == FLOORS["cli"]:
        return
    for node in nodes_of(path):
        assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"), (
            f"{path.name}:{node.lineno} prints"
        )


@pytest.mark.parametrize("command", tree().registered_commands, ids=lambda command: command.name)
def test_a_command_has_a_file_of_its_name(command: CommandInfo) -> None:
    assert command.callback is not None
    file = Path(inspect.getfile(command.callback))
    assert file.parent == SOURCE / "cli"
    assert [file.stem.rstrip("_").replace("_", "-"), file.stem] == [command.name, command.callback.__name__]


@over_files(sorted((SOURCE / "cli").glob("*.py")))
def test_a_function_of_the_command_line_is_short(path: Path) -> None:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
            assert lines <= MAX_BODY_LINES, f"{path.name}:{node.lineno} {node.name} has {lines} lines below its parameters"


@pytest.mark.parametrize(
    ("arguments", "heavy"), [(["--help"], HEAVY), (["run", "--help"], HEAVY), (["status"], HEAVY + TOO_HEAVY_FOR_STATUS)]
)
def test_light_commands_stay_light(arguments: list[str], heavy: list[str], tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path / "workspace")
    paths.deployments.mkdir(parents=True)
    paths.identity.write_text('{"version": 1, "id": "w"}', encoding="utf-8")
    paths.deployment("03-local").write_text(json.dumps(LAB), encoding="utf-8")
    probe = (
        "import sys; from gpucourse.__main__ import run_command\n"
        f"code = run_command({arguments!r})\n"
        f"print(code, sorted(set({heavy!r}) & set(sys.modules)), file=sys.stderr)"
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GPUCOURSE_WORKSPACE": str(tmp_path / "workspace")}
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env=environment, check=True, timeout=STUCK_S
    )
    assert done.stderr.splitlines()[-1] == "0 []"


TARGETS = {"local", "aws", "hosts", "here"}
FOLDER_OF_A_TARGET = re.compile(rf"gpucourse\.labs\.({'|'.join(TARGETS)})\b")
ABOUT_ONE_TARGET = {  # who may import a target's folder beside the registry, and why
    "cli/leaks.py": "it is about what an AWS account holds, whether or not a lab is on record",
    "cli/cost.py": "it reads the ledger of what AWS bills",
    "cli/open_.py": "it shows that ledger on a page",
    "cli/dev_live.py": "it measures what only an AWS account can show",
}


NO_QUESTIONS = {  # where the same words are no question
    "model/deployment.py": "the classes of the records, by the target that each holds",
    "hardware.py": "a key of the table of GPUs",
}


def home_of_a_target(path: Path) -> bool:
    name = path.relative_to(SOURCE).as_posix()
    return name == "labs/target.py" or any(name.startswith(f"labs/{target}/") for target in TARGETS)


def names_a_target(node: ast.AST) -> bool:
    """Whether it is the name of a target as a text, or a literal collection with such a name in it."""
    if isinstance(node, ast.Constant):
        return node.value in TARGETS
    return isinstance(node, ast.Set | ast.Tuple | ast.List) and any(map(names_a_target, node.elts))


@over_files(path for path in FILES if not home_of_a_target(path))
def test_nobody_asks_which_target_it_is(path: Path) -> None:
    if path.relative_to(SOURCE).as_posix() in NO_QUESTIONS:
        return
    for node in nodes_of(path):
        asked: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Dict) and all(key and names_a_target(key) for key in node.keys):  # looked up by the name
            asked = [*node.keys]
        lines = [key.lineno for key in asked if isinstance(key, ast.expr) and names_a_target(key)]
        assert lines == [], f"{path.name} asks for a target by its name: ask it for what you want to know"


@over_files(path for path in FILES if not home_of_a_target(path))
def test_nobody_imports_the_folder_of_a_target(path: Path) -> None:
    blocks = [node for node in nodes_of(path) if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"]
    unused = {id(node) for block in blocks for statement in block.body for node in ast.walk(statement)}
    used = {
        node.module
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and FOLDER_OF_A_TARGET.match(node.module or "") and id(node) not in unused
    }
    reason = ABOUT_ONE_TARGET.get(path.relative_to(SOURCE).as_posix())
    assert bool(used) == bool(reason), (
        f"{path.name} imports {used}: ask the target for it" if used else f"{path.name} needs no leave"
    )


def test_one_place_makes_what_connects_to_nodes() -> None:
    makers = [
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and last_word(node.func) == "SshTransport"
    ]
    assert makers == ["context.py"], "take context.transport, so that a test can hand over another"


def reads(path: Path) -> list[str]:
    """Where a file takes JSON or YAML apart, or imports a library that takes an archive apart."""
    paths: list[str] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and node.attr in CALLS and isinstance(node.value, (ast.Name, ast.Attribute)):
            library = node.value.id if isinstance(node.value, ast.Name) else ast.unparse(node.value).split(".")[0]
            if node.attr in READING.get(library, ()):
                paths.append(f"{path.name}:{node.lineno} calls {library}.{node.attr}")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            wanted = ARCHIVES | (set(READING) if isinstance(node, ast.ImportFrom) else set())
            paths += [f"{path.name}:{node.lineno} imports {name}" for name in names if name.split(".")[0] in wanted]
    return paths


@over_files(FILES)
def test_what_others_send_is_read_at_the_gate_alone(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    if name.startswith("outside/") or any(name.startswith(home) for home in READERS):
        return
    assert reads(path) == [], "use gpucourse.outside, which bounds it first"


def test_every_reader_beside_the_gate_still_reads() -> None:
    for home in READERS:
        inside = [path for path in FILES if path.relative_to(SOURCE).as_posix().startswith(home)]
        assert any(reads(path) or "msgspec" in imports(path) for path in inside), f"{home} reads nothing any more: take it out"


@over_files(sorted((SOURCE / "remote").glob("*.py")))
def test_where_nodes_talk_few_files_touch_the_disk(path: Path) -> None:
    if path.name in TOUCHING:
        return
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in TOUCHES, f"{path.name}:{node.lineno} calls {called}"


def test_every_marker_is_declared() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    declared = {line.partition(":")[0] for line in settings["markers"]} | {
        "parametrize",
        "skipif",
        "timeout",
        "usefixtures",
        "xfail",
    }
    for path in sorted((ROOT / "tests").rglob("*.py")):
        used = set(re.findall(r"pytest\.mark\.(\w+)", path.read_text(encoding="utf-8")))
        assert used <= declared, f"{path.relative_to(ROOT)} has a marker that pyproject.toml does not declare"
