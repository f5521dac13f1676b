"""The prediction before a run, at a terminal and typed."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from gpucourse.cli.prediction import ask_prediction, read_prediction
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
    """Return what a person who types this at a terminal has predicted of 1.1, and what was shown."""
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    terminal = Terminal() if out is None else out
    face = Console(json=json, quiet=False, verbose=False, stdout=terminal, stderr=terminal, environ={"TERM": "dumb"})
    session = Session(options=Options(json=json), console=face)
    return ask_prediction(session, RunRequest(**({"exercise": "1.1"} | request))), terminal.getvalue()


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
