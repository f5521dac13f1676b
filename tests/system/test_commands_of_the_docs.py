"""Type every `gpucourse ...` of README and docs as it is written, in a workspace with runs and answers but without a lab.

Nothing here can cost money or be built, because there are no AWS credentials and no Terraform. REFUSALS lists the messages with
which a command may then be refused, TYPED_ELSEWHERE the commands that other tests type, with the reason. docs/screens.py types
the screens of docs, and docs/any-gpu.md has its own test.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import socketserver
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest
from docs import screens

from gpucourse.cli.boundary import run_command
from tests.ports import take_ports
from tests.system.test_any_gpu_page import ANSWERS
from tests.system.test_slurm_cluster_page import TYPED
from tests.system.test_stored_workspace import DDP, lay_out
from tests.unit.test_documented_commands import ROOT, list_lines, list_short_forms

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
TABLES = {"README.md", "commands.md"}
"""The pages with a table of commands that leave `gpucourse` out."""
FOR_OTHERS = ("dev new", "grade --bundle")
"""The beginnings of commands that write files for other commands. They are typed first."""
FILLED = {
    "RUN": DDP, "EXERCISE": "3.2", "DIR": "mine", "NAME=VALUE": "gain-of-1-mib=a", "NAME": "python3", "ARGS": "5", "N": "2",
    "R": "0", "CHECK": "nothing-twice", "TIME": "5m", "PATTERN": "loss", "DATA": "train.py",
    "FILE": "ddp_training.py", "...": "3.2",
}  # fmt: skip
PROGRAM = (
    "__global__ void add(float* x) { x[threadIdx.x] = 1; }\nint main() { float* x; cudaMalloc(&x, 128); add<<<1, 32>>>(x); }\n"
)
PLACE = re.compile(rf"\[?(?<!\w)({'|'.join(map(re.escape, FILLED))})(?!\w)\]?")
OF_AN_INSTRUCTOR = ("grade --open", "grade --rerun")

Answer = tuple[int, str]

REFUSALS = (
    (3, "there are no AWS credentials", "cost deploy doctor leaks"),
    (3, "GPUCOURSE_TERRAFORM", "deploy doctor"),
    (3, "gpucourse deploy ", "break report run ssh"),
    (3, "gpucourse run ", "answer"),
    (2, "gpucourse answer 3.2", "answer"),
    (2, "gpucourse quiz 3 --list", "quiz"),
    (3, "gpucourse break ", "break check"),
    (2, "there is no such module", "run"),
    (2, "has ended already", "cancel"),
    (2, "a comparison needs two", "compare"),
    (2, "contains something that is not a page of gpucourse", "open"),
    (2, "a person has to agree at a terminal", "dev"),
    (2, "this needs confirmation, and there is no terminal", "grade"),
    (2, "--judge 3.2/laptop=80 --by NAME", "grade"),
    (2, "has not been handed in, or is still as the course delivered it", "grade"),
    (2, "so no check will fail", "run"),
    (2, "gpucourse show 3.2 --run", "show"),
    (3, "still needs a part that is right", "show"),
    (2, "no such workspace", "--workspace"),
    (2, "gpucourse trust --list", "trust"),
    (3, "has no lab on AWS", "keep stop"),
    (2, "gpucourse destroy --all", "destroy"),
    (2, "gpucourse list", "run"),
    (2, "gpucourse dev new DIR", "dev"),
    (7, "test it with plain ssh", "deploy"),
    (7, "shows whether you reach it from here", "deploy"),
)
"""The permitted refusals: the exit code, words of the message, and the commands that may be refused."""
TYPED_ELSEWHERE = {
    **dict.fromkeys(("check train.py", "check mine.py", "check mine.py --run RUN"), "needs a run of a script with checks"),
    "deploy 2": "builds a cluster",
    "deploy 2 --unpack-slurm": "downloads packages",
    "deploy 3": "builds a lab",
    "deploy 3 --nodes 3": "builds a lab",
    "dev check": "reads the whole course, as `make lint` does",
    "dev check --run": "runs every exercise",
    "dev check --run --module 3": "runs a module",
    "dev schema": "writes into the course",
    "init --ssh-include": "changes the home that the system has of the user",
    **dict.fromkeys(("watch 0.1", "watch 3.2", "watch 3.3", "watch my.cu", "status --watch"), "ends with Ctrl-C"),
    **dict.fromkeys(("cuda my.py", "cuda my.py --limit 5m", "cuda my.py --lines"), "tests of the command start Triton"),
    **dict.fromkeys(("cuda my.cu -D NAME=VALUE", "cuda my.cu -I DIR"), "tests of the command name a macro and a folder"),
}
TYPED_BY_PAGE = {"any-gpu.md": set(ANSWERS), "slurm-cluster.md": set(TYPED)}


def list_documented_lines() -> list[str]:
    """Return the words after `gpucourse` in README and docs, and the short forms of their tables, each once. Pages that other
    tests type as a whole are left out.
    """
    lines: set[str] = set()
    for page in PAGES:
        text = screens.BLOCK.sub("", page.read_text(encoding="utf-8"))
        lines |= set(list_lines(text)) - TYPED_BY_PAGE.get(page.name, set())
        lines |= set(list_short_forms(text)) if page.name in TABLES else set()
    return sorted(lines, key=lambda line: (not line.startswith(FOR_OTHERS), line))


def split_line(line: str) -> list[str]:
    """Return the words of a line as a shell passes them on. Each placeholder is replaced by its value in this test."""
    words = shlex.split(PLACE.sub(lambda place: FILLED[place[1]], line))
    return [name for word in words for name in expand(word)]


def expand(word: str) -> list[str]:
    """Return the files that match a word with a star, the path for a word with a tilde, otherwise the word itself."""
    if "*" in word:
        return sorted(path.name for path in Path().glob(word))
    return [str(Path(word).expanduser())] if word.startswith("~/") else [word]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with scripts and two bundles. The learner's workspace is the stored one."""
    desk, home, workspace = tmp_path / "desk", tmp_path / "home", tmp_path / "workspace"
    desk.mkdir()
    home.mkdir()
    lay_out(workspace)
    for name in [name for name in os.environ if name.startswith(("GPUCOURSE", "AWS", "XDG"))]:
        monkeypatch.delenv(name)
    for name, value in (
        ("HOME", str(home)),
        ("SHELL", "/bin/bash"),
        ("GPUCOURSE_WORKSPACE", str(workspace)),
        ("GPUCOURSE_TERRAFORM", "/nowhere/terraform"),
        ("GPUCOURSE_CHECKIP_URL", "http://127.0.0.1:9"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("NO_PROXY", "127.0.0.1"),
        ("no_proxy", "127.0.0.1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(desk)
    for name in ("train.py", "mine.py", FILLED["FILE"]):
        (desk / name).write_text("print('trained')\n")
    for name in ("my.cu", "a.cu", "b.cu", "transpose.cu", "padded.cu"):
        (desk / name).write_text(PROGRAM)
    (desk / "mine.yaml").write_text("checks: [{id: fast, title: It is fast, value: metrics.ms, below: 9, hint: Hurry.}]\n")
    for name in ("a.zip", "b.zip"):
        assert run_command(["grade", "--bundle", name]) == 0
    return desk


@pytest.fixture
def type_line(desk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Answer]:
    """Yield a function that types a line in this process, without a terminal or a browser. It returns the exit code and the
    output on one line.
    """

    def press_ctrl_c(_server: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    monkeypatch.setattr(socketserver.BaseServer, "serve_forever", press_ctrl_c)
    monkeypatch.setattr(os, "nice", lambda _increment: 0)  # so that later tests keep their priority
    ports = take_ports(2)
    hosts = {f"gpu{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports, 1)}  # an address without a server

    def type_it(line: str) -> Answer:
        words = [re.sub(r"\bgpu\d\b", lambda host: hosts[host[0]], word) for word in split_line(line)]
        capfd.readouterr()
        with monkeypatch.context() as patcher:
            if line.startswith(OF_AN_INSTRUCTOR):
                patcher.setenv("GPUCOURSE_WORKSPACE", str(desk.parent / "instructor"))
            try:
                code = run_command(words)
            except SystemExit as ended:  # --install-completion exits this way
                code = int(ended.code or 0)
        return code, " ".join("".join(capfd.readouterr()).split())

    return type_it


def is_expected(line: str, code: int, output: str) -> bool:
    """Return whether a line did what it should, or was refused for a reason that applies here."""
    command, *arguments = line.split()
    if code == 0 or (
        code == 2 and not arguments and "→ gpucourse" in output
    ):  # alone, without what it is about, it is only named
        return True
    return any(code == row[0] and row[1] in output and command in row[2].split() for row in REFUSALS)


@pytest.mark.system
@pytest.mark.slow
def test_documented_command_does_what_it_says_or_names_what_is_missing(type_line: Callable[[str], Answer]) -> None:
    failures = []
    for line in list_documented_lines():
        if line not in TYPED_ELSEWHERE:
            code, output = type_line(line)
            if not is_expected(line, code, output) or "Traceback" in output:
                failures.append(f"gpucourse {line}: {code}: {output}")
    assert not failures, "\n".join(failures)
