from __future__ import annotations

from gpucourse.labs.aws import node_files
from gpucourse.ports import CommandResult
from tests.unit.labs.aws.fakes import ScriptedLink, node


def test_idle_is_what_the_agent_wrote_last() -> None:
    content = b'{"now": 5.0, "busy": ["ssh", "a\\u001b"], "ends_at": null}'
    answers = [content, b""]
    link = ScriptedLink(node("node1"), lambda _node, _command: CommandResult(code=0, stdout=answers.pop(0), stderr=b""))
    report = node_files.idle(link)
    assert report is not None
    assert (report.node, report.seen_at, report.busy[0], report.ends_at) == ("node1", 5.0, "ssh", None)
    assert "\x1b" not in report.busy[1]
    assert node_files.idle(link) is None, "it has not looked yet"
