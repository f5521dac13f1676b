"""`run` refuses what it cannot do before it looks at anything, and says what to type instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.learning import InterruptedTerminal, Learning
from tests.unit.cli.conftest import Answer
from tests.unit.cli.test_outcome import end_run
from tests.unit.learning.test_predictions import ask_for_prediction

Type = Callable[..., Answer]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("", "which exercise?", "gpucourse list shows them; or --script FILE for a script of your own"),
        ("my/train.py", "my/train.py is a file, not an exercise", "gpucourse run --script my/train.py"),
        ("3.2 --timeout soon", "--timeout: 'soon' is not a duration", "gpucourse run 3.2 --timeout 10m"),
        ("3.2 --timeout 0", "--timeout 0: the time must be longer than 0 s", "gpucourse run 3.2 --timeout 10m"),
        ("3.2 3.3", "run accepts one exercise, but '3.3' was typed, too", "gpucourse run 3.2 --set NAME=VALUE"),
        ("--script none.py", "--script none.py: there is no such file", "name a Python file on this computer"),
        ("3.2 --set a", "--set a: not of the form name=value", "gpucourse show 3.2 lists its parameters"),
        ("3.2 --sweep a=1 --sweep b=2", "but was typed 2 times", "gpucourse run 3.2 --sweep a=1, then the other one"),
        ("3.2 --sweep a=1 --detach", "cannot be combined", "gpucourse run 3.2 --set NAME=VALUE --dry-run shows one run"),
        ("3 --all --dry-run", "cannot be combined", "gpucourse run EXERCISE --set NAME=VALUE --dry-run shows one run"),
        ("3.2 --predict a=1 --no-predict", "cannot be combined", "gpucourse run 3.2 --no-predict"),
        ("3.2 --predict a=1 --sweep batch_size=1,2", "--predict is for a single run", "gpucourse run 3.2 --predict a=1"),
        ("3.2 --expect-red gradients-eq", "there is no check 'gradients-eq'", "checks of 3.2:"),
        ("3.2 --expect-red a --sweep batch_size=1,2", "--expect-red is for a single run", "gpucourse run 3.2 --expect-red a"),
        ("3.2 --script x.py", "x.py cannot run in place of 3.2", "a script of your own: gpucourse run --script x.py"),
        ("2.1 --script x.sbatch -- 4", "x.sbatch cannot run in place of 2.1", "edit that copy, then gpucourse run 2.1"),
        ("--script x.py --module a.b", "--script and --module cannot be combined", "gpucourse run --module a.b"),
        ("--script x.py --module 3", "--script and --module cannot be combined", "gpucourse run --script x.py"),
        ("--module none.train", "--module none.train: there is no such module", "type it in the folder"),
        ("--script x.py --expect-red a -- 0.1", "--expect-red is for an exercise", "gpucourse list shows them"),
        ("3 --all --script x.py", "--all is for the exercises of a module, not for a script", "gpucourse run --script x.py"),
        ("--script x\udcff.py", "not text in UTF-8", "rename the file"),
        ("--script x.py -- a\udcff", "not text in UTF-8", "--env NAME"),
        ("--script x.sbatch --launcher python", "x.sbatch is a file for sbatch", "gpucourse run --script x.sbatch"),
    ],
)
def test_run_refuses_what_it_cannot_do_and_says_what_to_type(type_line: Type, words: str, message: str, hint: str) -> None:
    answer = type_line("run", *words.split())
    assert answer.code == 2
    assert message in answer.err
    assert hint in answer.err


def test_run_creates_no_workspace_when_it_refuses_its_options(workspace: Path, type_line: Type) -> None:
    assert type_line("run", "3.2", "--timeout", "soon").code == 2
    assert not workspace.exists()


def test_run_refuses_to_profile_a_module(type_line: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    answer = type_line("run", "--module", "train", "--profile")
    assert answer.code == 2
    assert "--profile is for a script, not for --module" in answer.err


def test_run_names_a_current_folder_that_was_removed(type_line: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    answer = type_line("run", "--script", "x.py")
    assert answer.code == 3
    assert "the current folder no longer exists" in answer.err


def test_run_refuses_an_unknown_check_before_it_asks_for_the_prediction(learning: Learning) -> None:
    ask_for_prediction(learning)
    terminal = InterruptedTerminal()  # an answer that is asked for would interrupt the command, with another exit code
    assert "there is no check 'CHECK'" in learning.types("run", "1.1", "--expect-red", "CHECK", typing=terminal, code=2).err


def test_run_json_is_the_record_the_verdict_and_the_folder(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    record = end_run(learning, monkeypatch)
    document = learning.types("run", "1.1", "--json").document
    assert (document["run"]["id"], document["verdict"]["verdict"]) == (record.id, "passed")
    assert document["folder"] == str(learning.folder(record))
