"""What travels to the nodes: alone, on an older Python, byte for byte the same each time."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.remote import jobs
from gpucourse.remote.agent import frames
from gpucourse.remote.agent.drill import read_load_per_core
from gpucourse.remote.agent.rank import expand
from gpucourse.remote.answers import read_frames

AGENT = sorted(Path(jobs.__file__).parent.glob("agent/*.py"))


@pytest.mark.parametrize("path", AGENT, ids=[path.name for path in AGENT])
def test_the_agent_is_plain_python_3_7_and_stdlib(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            known = name.split(".")[0] in sys.stdlib_module_names or name.startswith("gpucourse.remote.agent")
            assert known, f"{path.name} imports {name}, which is not on the node"


def test_the_bundle_runs_isolated_in_a_folder_of_its_own(tmp_path: Path) -> None:
    for name, text in json.loads(jobs._bundle()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-I", "-S", str(tmp_path), "state", "nothing"]
    done = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path)}, cwd="/", check=True)
    assert json.loads(done.stdout)["state"] == "absent"


def test_the_placeholder_becomes_the_wrapper_and_nothing_else_does() -> None:
    argv = expand(["torchrun", "--no-python", "{rank}", "py", "x{rank}", "{rank} "], "py", "/agent", "r1")
    assert argv == ["torchrun", "--no-python", "py", "-I", "-S", "/agent", "rank", "r1", "py", "x{rank}", "{rank} "]


@pytest.mark.parametrize("size", [1, 7, 16, 17, 18, 1000])
def test_frames_survive_any_cutting_of_the_stream(size: int) -> None:
    sent = [(frames.LOG, 3, 1 << 40, bytes(range(256))), (frames.BEAT, 0, 0, b""), (frames.END, 0, 0, b"{}")]
    stream = b"".join(frames.frame(*part) for part in sent)
    cut = iter([stream[at : at + size] for at in range(0, len(stream), size)])
    assert list(read_frames("node0", cut)) == sent
    assert list(read_frames("node0", iter([stream[:-1]]))) == sent[:-1]


def test_how_many_processes_want_each_core_is_read_or_one() -> None:
    assert read_load_per_core("0.52 0.58 0.59 7/512 4711", 2) == 3.0
    assert read_load_per_core("9.99 0.58 0.59 1/512 4711", 2) == 1.0, "nobody but who asks"
    assert read_load_per_core("nonsense", 2) == 1.0
