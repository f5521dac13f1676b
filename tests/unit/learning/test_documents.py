"""`--json`: small objects with a schema for each command, never the record that is stored."""

from __future__ import annotations

import json

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.documents.schema import DOCUMENTS, format_schema
from gpucourse.cli.help import COMMANDS
from tests.documents import SCHEMA
from tests.learning import Learning
from tests.unit.learning.test_predicting import deploy

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


def test_the_schema_in_the_docs_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == format_schema(), (
        "python -m gpucourse.cli.documents.schema > docs/json.schema.json"
    )


def test_only_whole_documents_have_a_version() -> None:
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    with_version = {f"#/$defs/{name}" for name, kind in definitions.items() if "version" in kind.get("required", [])}
    for name, kind in definitions.items():
        inside = json.dumps(kind.get("properties", {}))
        assert not [place for place in with_version if f'"{place}"' in inside], f"{name} has a document in it"


def test_every_command_with_json_has_a_schema_and_no_other() -> None:
    commands = typer.main.get_command(tree()).commands  # type: ignore[attr-defined]
    assert {name for name in COMMANDS if any("--json" in item.opts for item in commands[name].params)} == set(DOCUMENTS)


@pytest.mark.parametrize("line", LINES)
def test_documents_are_small_and_as_their_schema_says(
    learning: Learning, line: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    learning.record()
    if line == "status":
        deploy(learning)
    said = learning.types(*line.split(), "--json", code=None)
    assert said.document["version"] == 1
    assert len(said.out) < 4000


def test_a_run_is_an_interface_of_its_own(learning: Learning) -> None:
    record = learning.record()
    [shown] = learning.types("runs", "--json").document["runs"]
    stored = json.loads((learning.folder(record) / "run.json").read_text())
    assert (shown["id"], shown["verdict"], shown["detail"]) == (record.id, "passed", "")
    assert {"outputs", "rank_exits", "phases_s", "full_logs", "silence_s"} <= set(stored) - set(shown)


def test_the_real_course_is_small_too(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCOURSE_COURSE")
    listed = learning.types("list", "--json")
    assert len(listed.out) < 20_000
    assert [module["id"] for module in listed.document["modules"]][:8] == list("01234567")
    assert len(learning.types("show", "3", "--json").out) < 4000
    assert learning.types("show", "3.2", "--json").document["launcher"] == "torchrun"
