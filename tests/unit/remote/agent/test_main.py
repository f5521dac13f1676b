"""The agent: the files that are sent to the nodes."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.remote import jobs

AGENT = sorted(Path(jobs.__file__).parent.glob("agent/**/*.py"))


@pytest.mark.parametrize("path", AGENT, ids=[path.as_posix().rpartition("agent/")[2] for path in AGENT])
def test_main_is_plain_python_3_7_and_stdlib(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and isinstance(node.value.value, ast.Name):
            assert node.value.value.id not in {"dict", "list", "set", "tuple"}, "no type of its own before Python 3.9"
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            modules = name.split(".")[0] in sys.stdlib_module_names or name.startswith("gpucourse.remote.agent")
            assert modules, f"{path.name} imports {name}, which is not on the node"


def test_main_runs_isolated_in_its_folder(agent: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(agent), "states", "nothing"]
    result = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path)}, cwd="/", check=True)
    assert json.loads(result.stdout) == {"nothing": {"state": "absent", "exit": None}}
