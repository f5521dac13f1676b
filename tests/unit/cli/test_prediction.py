"""The prediction before a run, at a terminal and typed."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from gpucourse.cli.prediction import ask_prediction, ask_red_check, read_prediction
from gpucourse.cli.session import Options, Session
from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.record import GivenPrediction
from gpucourse.runs.resolve import RunRequest
from gpucourse.ui.console import Console
from tests.learning import Learning, Terminal, deploy
from tests.unit.learning.test_predictions import ask_for_prediction


@pytest.fixture
def learning(learning: Learning) -> Learning:
    ask_for_prediction(learning)
    return learning


def ask(
    monkeypatch: pytest.MonkeyPatch, text: str, *, json: bool = False, out: io.StringIO | None = None, **request: Any
) -> tuple[GivenPrediction | None, str]:
    """Return the prediction for 1.1 by a person who types this at a terminal, and the text that was shown."""
    terminal = Terminal() if out is None else out
    session = open_session(monkeypatch, text, terminal, json=json)
    return ask_prediction(session, RunRequest(**({"exercise": "1.1"} | request))), terminal.getvalue()


def open_session(monkeypatch: pytest.MonkeyPatch, text: str, terminal: io.StringIO, *, json: bool = False) -> Session:
    """Return the session of a person who types this at a terminal."""
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    face = Console(json=json, quiet=False, verbose=False, stdout=terminal, stderr=terminal, environ={"TERM": "dumb"})
    return Session(options=Options(json=json), console=face)


def test_ask_prediction_repeats_until_the_answer_is_a_number(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(learning)
    prediction, screen = ask(monkeypatch, "soon\n1.8 GB\n1.8 times\n", settings={"depth": "20"})
    assert prediction == GivenPrediction(id="faster", answer="1.8 times")
    assert "How much faster will it be?" in screen
    assert "depth=20" in screen
    assert "'soon' is not a number" in screen
    assert "the question asks for times" in screen
    assert screen.count("times> ") == 3


def test_ask_prediction_with_enter_or_end_of_input_is_none(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(learning)
    assert [ask(monkeypatch, text)[0] for text in ("\n", "")] == [None, None]


def test_ask_prediction_without_terminal_lab_or_question_asks_nothing(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    assert ask(monkeypatch, "1.8\n") == (None, ""), "no lab stands"
    deploy(learning)
    assert ask(monkeypatch, "1.8\n", json=True) == (None, "")
    assert ask(monkeypatch, "1.8\n", out=io.StringIO()) == (None, "")
    assert ask(monkeypatch, "1.8\n", exercise="1.2") == (None, "")
    assert ask(monkeypatch, "1.8\n", script=tmp_path / "mine.py") == (None, "")


def test_ask_prediction_and_red_check_refuse_wrong_nodes_first(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(learning)
    request = RunRequest(exercise="1.1", nodes=99)
    for ask_for in (ask_prediction, ask_red_check):
        terminal = Terminal()
        with pytest.raises(UsageError, match="not on 99"):
            ask_for(open_session(monkeypatch, "wet\n", terminal), request)
        assert terminal.getvalue() == ""


def test_ask_red_check_on_a_simulated_lab_lists_no_check_for_gpus(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    session = open_session(monkeypatch, "3\n2\n", terminal)
    deploy(learning)
    assert ask_red_check(session, RunRequest(exercise="1.1")) == "flows"
    assert "It is deep" not in terminal.getvalue()
    assert "'3' is not the number or the name of a check" in terminal.getvalue()


def test_read_prediction_checks_what_was_typed(learning: Learning) -> None:
    _, exercise = learning.context.catalog.exercise("1.1")
    assert read_prediction(exercise, "faster= 1.8 ") == GivenPrediction(id="faster", answer="1.8")
    for text, kind, words in (
        ("1.8", UsageError, "not of the form faster=VALUE"),
        ("faster=", UsageError, "not of the form faster=VALUE"),
        ("fast=1.8", UnknownName, "fast"),
        ("faster=soon", UsageError, "'soon' is not a number"),
    ):
        with pytest.raises(kind, match=words):
            read_prediction(exercise, text)
    _, second_exercise = learning.context.catalog.exercise("1.2")
    with pytest.raises(UsageError, match=r"1\.2 asks for no prediction"):
        read_prediction(second_exercise, "faster=1.8")
