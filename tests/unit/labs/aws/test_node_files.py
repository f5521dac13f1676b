from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.labs.aws import node_files
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from tests.unit.labs.aws.fakes import ScriptedLink, node


@pytest.fixture
def link(tmp_path: Path) -> ScriptedLink:
    """Return a node whose folder for these files is below the test's own, and does not exist yet."""
    environ = {"PATH": os.environ["PATH"], "GPUCOURSE_NODE_ROOT": str(tmp_path)}

    def answer(_node: Node, command: str) -> CommandResult:
        result = subprocess.run(["sh", "-c", command], env=environ, capture_output=True, check=False)
        return CommandResult(code=result.returncode, stdout=result.stdout, stderr=result.stderr)

    return ScriptedLink(node("node0"), answer)


def test_write_and_remove_change_a_file_on_the_node(link: ScriptedLink, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="node0: its hold could not be written: "):
        node_files.write(link, "hold", "1")
    (folder := tmp_path / "var/lib/gpucourse").mkdir(parents=True)
    node_files.write(link, "hold", "it's")
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"hold": "it's\n"}
    node_files.remove(link, "hold")
    node_files.remove(link, "hold")
    assert list(folder.iterdir()) == []


def test_idle_is_what_the_agent_wrote_last() -> None:
    content = b'{"now": 5.0, "busy": ["ssh", "a\\u001b"], "ends_at": null}'
    answers = [content, b""]
    link = ScriptedLink(node("node1"), lambda _node, _command: CommandResult(code=0, stdout=answers.pop(0), stderr=b""))
    report = node_files.idle(link)
    assert report is not None
    assert (report.node, report.seen_at, report.busy[0], report.ends_at) == ("node1", 5.0, "ssh", None)
    assert "\x1b" not in report.busy[1]
    assert node_files.idle(link) is None, "it has not looked yet"
