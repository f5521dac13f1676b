"""Every `gpucourse ...` of README and docs is typed as it stands, in a workspace with runs and answers and without a lab.

Nothing can cost or be built here: there are no credentials of AWS and no Terraform. REFUSED has the commands that end in a
refusal then, with the exit code and what is to be typed or done next; TYPED_ELSEWHERE those that other tests type, with the
reason. The screens of docs are typed by docs/screens.py, docs/any-gpu.md by its own test.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
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
from tests.system.test_stored_workspace import DDP, STORED
from tests.unit.test_documented_commands import ROOT, list_lines, list_short_forms

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
TABLES = {"README.md", "commands.md"}
"""The pages with a table of commands that leave `gpucourse` out."""
FOR_OTHERS = ("dev new", "grade --bundle")
"""How commands begin whose files others read; they are typed first."""
FILLED = {
    "RUN": DDP, "EXERCISE": "3.2", "DIR": "mine", "NAME=VALUE": "bus-factor=1", "NAME": "python3", "ARGS": "5", "N": "2",
    "R": "0", "CHECK": "nothing-twice", "TIME": "5m", "PATTERN": "loss", "DATA": "train.py", "...": "3.2",
}  # fmt: skip
PLACE = re.compile(rf"\[?(?<!\w)({'|'.join(map(re.escape, FILLED))})(?!\w)\]?")
OF_AN_INSTRUCTOR = ("grade --open", "grade --rerun")

Refusal = tuple[int, str]
NO_CREDENTIALS: Refusal = (3, "there are no AWS credentials")
NO_TERRAFORM: Refusal = (3, "GPUCOURSE_TERRAFORM")
NOT_AGREED: Refusal = (2, "this needs a confirmation, and there is no terminal")
MODULE_MISSING: Refusal = (2, "needs the number of a module")
NO_LAB = {module: (3, f"gpucourse deploy {module}") for module in "1234"}
REFUSED: dict[str, Refusal] = {
    "--workspace ~/gpucourse/live-hour destroy --all": (2, "no such workspace"),
    "allow-ip": MODULE_MISSING,
    "answer 0.1": (3, "gpucourse run 0.1"),
    "answer 3.3": (3, "gpucourse run 3.3"),
    "break 1.1 --how code": NO_LAB["1"],
    "break 1.1 --repaired": (3, "gpucourse break 1.1 --how code"),
    "break 3.2": NO_LAB["3"],
    "cancel RUN": (2, "has ended already"),
    "cancel": (2, "has ended already"),
    "check 3.2 --diagnosis kill-rank --rank 1": (3, "gpucourse break 3.2"),
    "check 3.2 --diagnosis kill-rank": (3, "gpucourse break 3.2"),
    "compare RUN RUN": (2, "a comparison needs two different runs"),
    "cost --billed": NO_CREDENTIALS,
    "deploy 1 --target aws --no-spot --ttl 1h": NO_CREDENTIALS,
    "deploy 1 --target aws --spot": NO_CREDENTIALS,
    "deploy 1 --target aws": NO_CREDENTIALS,
    "deploy 2 --target aws --spot --ttl 1h": NO_CREDENTIALS,
    "deploy 2 --target aws": NO_CREDENTIALS,
    "deploy 3 --dry-run": NO_TERRAFORM,
    "deploy 3 --nodes N": NO_TERRAFORM,
    "deploy 3 --target aws": NO_CREDENTIALS,
    "deploy 3 --target hosts --hosts me@gpu1,me@gpu2": (7, "see whether plain ssh gets there"),
    "deploy": (2, "gpucourse deploy --help"),
    "destroy --discard": (2, "gpucourse destroy --all"),
    "destroy": (2, "gpucourse destroy --all"),
    "dev live --max-usd 3": (2, "a person has to agree at a terminal"),
    "dev new": (2, "gpucourse dev new DIR"),
    "doctor --module 3": NO_TERRAFORM,
    "doctor --request-quota": NO_CREDENTIALS,
    "doctor --target aws --request-quota --spot": NO_CREDENTIALS,
    "doctor --target aws --request-quota": NO_CREDENTIALS,
    "doctor --target aws --spot": NO_CREDENTIALS,
    "doctor --target aws": NO_CREDENTIALS,
    "doctor": NO_TERRAFORM,
    "extend": MODULE_MISSING,
    "grade --open alice.zip --review": (2, "gpucourse grade --open alice.zip --review --judge 3.2/laptop=80 --by NAME"),
    "grade --open work.zip --judge 3.1/ring=100 --by Ada": (2, "3.1 ring is not handed in, or is as the course delivers it"),
    "grade --rerun alice.zip --original": NOT_AGREED,
    "grade --rerun alice.zip": NOT_AGREED,
    "grade --rerun work.zip --exercise 3.1": NOT_AGREED,
    "grade --rerun work.zip --original": NOT_AGREED,
    "grade --rerun work.zip": NOT_AGREED,
    "keep 3 2h": (3, "gpucourse deploy 3 --target aws"),
    "keep": MODULE_MISSING,
    "leaks --clean": NO_CREDENTIALS,
    "leaks": NO_CREDENTIALS,
    "open --out DIR": (2, "holds something that is not a page of gpucourse"),
    "quiz": (2, "gpucourse quiz --list"),
    "report": NO_LAB["4"],
    "run --module package.train": (2, "there is no such module"),
    "run --module package.train --with .": (2, "there is no such module"),
    "run --dry-run": (2, "gpucourse list"),
    "run --script FILE -- ARGS": NO_LAB["3"],
    "run --script mine.py --checks mine.yaml": NO_LAB["3"],
    "run --script mine.py --launcher torchrun --nodes 2 -- ARGS": NO_LAB["3"],
    "run --script mine.py --launcher torchrun --nodes 2 --with DATA -- ARGS": NO_LAB["3"],
    "run --script mine.py --launcher torchrun --nodes 2": NO_LAB["3"],
    "run --script mine.py --profile": NO_LAB["3"],
    "run --script train.py --launcher torchrun --nodes 2 -- --epochs 3": NO_LAB["3"],
    "run --script train.py --launcher torchrun --nodes 2 --dry-run -- --epochs 3": NO_LAB["3"],
    "deploy 1 --target aws --gpu any": NO_CREDENTIALS,
    "run --script train.py --launcher torchrun --nodes 2 --procs 2 -- ARGS": NO_LAB["3"],
    "run ... --env NCCL_DEBUG=INFO": NO_LAB["3"],
    'run ... --torchrun "--max-restarts=2"': NO_LAB["3"],
    "run 0.2 --expect-red CHECK": (2, "gpucourse"),
    "run 1.1": NO_LAB["1"],
    "run 3 --all": NO_LAB["3"],
    "run 3.2 --detach": NO_LAB["3"],
    "run 3.2 --dry-run": NO_LAB["3"],
    "run 3.2 --nodes 2": NO_LAB["3"],
    "run 3.2 --nodes N": NO_LAB["3"],
    "run 3.2 --profile": NO_LAB["3"],
    "run 3.2 --set batch_size=64": NO_LAB["3"],
    "run 3.2 --sweep batch_size=16,32,64": NO_LAB["3"],
    "run 3.2 --timeout 30m": NO_LAB["3"],
    "run 3.2": NO_LAB["3"],
    "run 3.3 --predict NAME=VALUE": NO_LAB["3"],
    "run 3.3": NO_LAB["3"],
    "run 4 --all": NO_LAB["4"],
    "run": (2, "gpucourse list"),
    "show 4.2 --run RUN": (2, "gpucourse show 3.2 --run"),
    "show mine.py --run RUN": (2, "gpucourse show 3.2 --run"),
    "ssh": MODULE_MISSING,
    "ssh 1 -- cat /var/lib/gpucourse/ready": NO_LAB["1"],
    "ssh 1 -- nvidia-smi -L": NO_LAB["1"],
    "ssh 1 -- sudo poweroff": NO_LAB["1"],
    "ssh 1 -- systemd-analyze": NO_LAB["1"],
    "ssh 2 -- df -hT /shared": NO_LAB["2"],
    "ssh 2 -- scancel N": NO_LAB["2"],
    "ssh 2 -- scontrol update JobId=N StartTime=now": NO_LAB["2"],
    "ssh 2 -- sudo scontrol update nodename=node2 state=resume": NO_LAB["2"],
    "ssh 2 -- type -a NAME": NO_LAB["2"],
    "ssh 3 -- cat /var/lib/gpucourse/idle.json": NO_LAB["3"],
    "ssh 3 -- env": NO_LAB["3"],
    "ssh 3 -- ip -brief address": NO_LAB["3"],
    "ssh 3 -- nproc": NO_LAB["3"],
    "ssh 3 -- systemctl list-timers": NO_LAB["3"],
    "ssh 3 --node 1": NO_LAB["3"],
    "start": MODULE_MISSING,
    "stop 3": (3, "gpucourse deploy 3 --target aws"),
    "stop": MODULE_MISSING,
    "trust --remove DIR": (2, "gpucourse trust --list"),
    "trust": (2, "gpucourse trust --list"),
    "try": (2, "needs the number of an exercise"),
}
TYPED_ELSEWHERE = {
    **dict.fromkeys(("check train.py", "check mine.py", "check mine.py --run RUN"), "needs a run of a script with checks"),
    "deploy 2": "builds a cluster",
    "deploy 2 --unpack-slurm": "downloads packages",
    "deploy 3": "builds a lab",
    "deploy 3 --nodes 3": "builds a lab",
    "dev check --run --module 3": "runs a module",
    "dev schema": "writes into the course",
    "init --ssh-include": "changes the home that the system has of the user",
    **dict.fromkeys(("watch 0.1", "watch 3.2", "watch 3.3", "status --watch"), "ends with Ctrl-C"),
}


def list_documented_lines() -> list[str]:
    """What README and docs have after `gpucourse`, and the short forms of their tables, each once, without what other tests
    type of a whole page."""
    lines: set[str] = set()
    for page in PAGES:
        text = screens.BLOCK.sub("", page.read_text(encoding="utf-8"))
        lines |= set(list_lines(text)) - (set(ANSWERS) if page.name == "any-gpu.md" else set())
        lines |= set(list_short_forms(text)) if page.name in TABLES else set()
    return sorted(lines, key=lambda line: (not line.startswith(FOR_OTHERS), line))


def split_as_a_shell(line: str) -> list[str]:
    """The words of a line as a shell hands them on, each pattern replaced by what it stands for here."""
    words = shlex.split(PLACE.sub(lambda place: FILLED[place[1]], line))
    return [name for word in words for name in expand(word)]


def expand(word: str) -> list[str]:
    """The files that a word with a star names, the path that one with a tilde means, else the word."""
    if "*" in word:
        return sorted(path.name for path in Path().glob(word))
    return [str(Path(word).expanduser())] if word.startswith("~/") else [word]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script and with two bundles, of a learner whose workspace is the stored one."""
    desk, home, workspace = tmp_path / "desk", tmp_path / "home", tmp_path / "workspace"
    desk.mkdir()
    home.mkdir()
    shutil.copytree(STORED, workspace, ignore=shutil.ignore_patterns("labs", "README.md"))
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
    for name in ("train.py", "mine.py"):
        (desk / name).write_text("print('trained')\n")
    (desk / "mine.yaml").write_text("checks: [{id: fast, title: It is fast, value: metrics.ms, below: 9, hint: Hurry.}]\n")
    for name in ("a.zip", "b.zip"):
        assert run_command(["grade", "--bundle", name]) == 0
    return desk


@pytest.fixture
def type_line(desk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Refusal]:
    """Types a line in this process, at no terminal and without a browser; its exit code, and what it said as one line."""

    def press_ctrl_c(_server: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    monkeypatch.setattr(socketserver.BaseServer, "serve_forever", press_ctrl_c)
    ports = take_ports(2)
    hosts = {f"gpu{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports, 1)}  # where nobody answers

    def type_it(line: str) -> Refusal:
        words = [re.sub(r"\bgpu\d\b", lambda host: hosts[host[0]], word) for word in split_as_a_shell(line)]
        capfd.readouterr()
        with monkeypatch.context() as now:
            if line.startswith(OF_AN_INSTRUCTOR):
                now.setenv("GPUCOURSE_WORKSPACE", str(desk.parent / "instructor"))
            try:
                code = run_command(words)
            except SystemExit as ended:  # --install-completion leaves so
                code = int(ended.code or 0)
        return code, " ".join("".join(capfd.readouterr()).split())

    return type_it


def test_every_row_is_of_a_command_in_the_docs() -> None:
    rows = [*REFUSED, *TYPED_ELSEWHERE]
    assert len(rows) == len(set(rows))
    assert set(rows) - set(list_documented_lines()) == set()


@pytest.mark.system
@pytest.mark.slow
def test_every_other_command_does_what_the_docs_say(type_line: Callable[[str], Refusal]) -> None:
    wrong = []
    for line in list_documented_lines():
        if line in TYPED_ELSEWHERE:
            continue
        code, words = REFUSED.get(line, (0, ""))
        answered, said = type_line(line)
        if answered != code or words not in said or "Traceback" in said:
            wrong.append(f"gpucourse {line}: {answered} instead of {code} with {words!r}: {said}")
    assert not wrong, "\n".join(wrong)
