"""`--json`: small objects with a schema for each command, never the record that is stored."""

from __future__ import annotations

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.help import COMMANDS
from gpucourse.cli.schema import DOCUMENTS, format_schema
from tests.documents import SCHEMA
from tests.learning import Learning, deploy

LINES = """
list
show 1
show 1.1
show 1.1 --run 1.1
show 7
next
runs
status
grade
grade --bundle work.zip
hint 1.1
check 1.1
check --all
answer 1.1 --set speedup=1.9
answer 1.1 --template
doctor
reset 1.1
trust --list
dev check
cost
compare 1.1 1.9
destroy --all
cancel 1.1
run 1.2 --dry-run --gpu t4
""".split("\n")[1:-1]


def test_format_schema_writes_what_the_docs_have() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == format_schema(), "python -m gpucourse.cli.schema > docs/json.schema.json"


def test_schema_has_every_command_with_json_and_no_other() -> None:
    commands = typer.main.get_command(tree()).commands  # type: ignore[attr-defined]
    assert {name for name in COMMANDS if any("--json" in item.opts for item in commands[name].params)} == set(DOCUMENTS)


@pytest.mark.parametrize("line", LINES)
def test_schema_accepts_the_document_of_each_command(
    learning: Learning, line: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    learning.record()
    if line == "status":
        deploy(learning)
    result = learning.types(*line.split(), "--json", code=None)
    assert result.document["version"] == 1
