"""The shell completes what makes sense now: labs that are deployed, unfinished runs, parameters of the exercise."""

from __future__ import annotations

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.session import Options, Session
from gpucourse.ui.console import Console
from tests.learning import Learning, deploy


def complete(learning: Learning, line: str) -> set[str]:
    """Return what the shell would offer for the last word of this line."""
    import io

    *words, incomplete = line.split(" ")
    face = Console(json=False, quiet=True, verbose=False, stdout=io.StringIO(), stderr=io.StringIO(), environ={})
    session = Session(options=Options(), console=face)
    completion = typer.main.get_command(tree(words[0])), {"obj": session}, "gpucourse", "_GPUCOURSE_COMPLETE"
    from typer._completion_classes import BashComplete

    return {item.value for item in BashComplete(*completion).get_completions(words, incomplete)}


def test_complete_offers_only_deployed_labs(learning: Learning) -> None:
    for command in ("ssh ", "destroy ", "stop ", "extend "):
        assert complete(learning, command) == set()
    deploy(learning)
    for command in ("ssh ", "destroy "):
        assert complete(learning, command) == {"1"}
    assert complete(learning, "extend ") == set()  # it costs nothing, so it has no deadline
    assert complete(learning, "ssh 1 --node ") == {"node0"}


def test_complete_offers_parameters_checks_and_questions(learning: Learning) -> None:
    assert complete(learning, "run 1.1 --set d") == {"depth="}
    assert complete(learning, "run 1.1 --sweep ") == {"depth="}
    assert complete(learning, "watch 1.1 --set ") == complete(learning, "break 1.1 --set ") == {"depth="}
    assert complete(learning, "run 1.1 --expect-red ") == {"wet", "flows", "deep"}
    assert complete(learning, "run 1.1 --predict ") == set()
    assert complete(learning, "answer 1.1 --set w") == {"why=", "where="}
    assert {"t4", "l4"} <= complete(learning, "run 1.1 --gpu ")
    assert complete(learning, "run 9.9 --set ") == complete(learning, "edit 1.1 --part ") == set()


def test_complete_offers_what_authors_can_do(learning: Learning) -> None:
    assert complete(learning, "dev ") == {"new", "check", "schema"}
    assert complete(learning, "dev check --run --module ") == {"1"}


def test_complete_offers_runs_by_id_word_and_exercise(learning: Learning) -> None:
    first = learning.record(world_size=2)
    second = learning.record("1.2", state="running", collected=False)
    word = first.id.rsplit("-", 1)[-1]
    assert complete(learning, "logs ") >= {first.id, second.id, word, "1.1", "1.2"}
    assert complete(learning, "cancel ") >= {second.id}
    assert first.id not in complete(learning, "cancel ")
    assert complete(learning, "check 1.1 --run ") == complete(learning, "show 1.1 --run ") == {first.id, "latest"}
    assert complete(learning, f"logs {first.id} --rank ") == complete(learning, "check 1.1 --rank ") == {"0", "1"}


def test_complete_creates_no_workspace(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = learning.root / "elsewhere"
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(elsewhere))
    assert complete(learning, "run 1.") == {"1.1", "1.2"}
    assert complete(learning, "ssh ") == complete(learning, "logs ") == set()
    assert not elsewhere.exists()
