"""Help fits 80 columns and hides nothing; a word that was misspelt is answered with the one that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.cli.help import COMMANDS, GROUPS
from tests.learning import Learning


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_help_shows_every_command_in_its_group(learning: Learning) -> None:
    shown = learning.types("--help").out
    places = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for name in COMMANDS:
        row = next(line for line in shown.splitlines() if line.startswith(f"  {name} "))
        assert row.endswith("."), f"the summary of {name} goes on in the next line: {row}"
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in shown.partition("\nLearn:\n")[2]
    assert "Start with: gpucourse next" in shown


def test_help_of_every_command_names_the_common_options(learning: Learning) -> None:
    for name in COMMANDS:
        shown = learning.types(name, "--help").out
        assert all(option in shown for option in ("--workspace DIR", "--quiet", "--verbose")), name
    assert learning.types("help", "show").out == learning.types("show", "--help").out
    assert learning.types("help").out == learning.types("--help").out


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ("stauts --watch", "there is no command 'stauts'. Did you mean status", "gpucourse status --watch"),
        ("help stauts", "there is no command 'stauts'. Did you mean status", "gpucourse status --help"),
        ("status --wacth", "there is no option --wacth. Did you mean --watch", "gpucourse status --help"),
        ("quiz --lesson", "there is no option --lesson. →", "gpucourse quiz --help"),
        ("run 1.1 --nodes", "--nodes needs a value →", "gpucourse run --help"),
        ("run 1.1 --detach=yes", "--detach takes no value →", "gpucourse run --help"),
        ("status --qiet", "Did you mean --quiet?", "gpucourse status --help"),
        ("run 1.1 --launcher tochrun", "Did you mean torchrun?", "gpucourse run --help"),
        ("run 1.1 --gpu t5", "there is no GPU 't5'. Did you mean t4?", "known: t4"),
        ("break 1.1 --how kil-rank", "Did you mean kill-rank", "gpucourse break --help"),
        ("check 1.1 --diagnosis kil-rank", "Did you mean kill-rank", "known:"),
        ("run 1.1 --depth 64 --detach", "--depth is a parameter", "gpucourse run 1.1 --set depth=64 --detach"),
        ("hint", "hint needs the number of an exercise: 3.2", "gpucourse hint --help"),
        ("run 1", "1 is a module", "gpucourse run 1 --all"),
        ("hint 1", "1 is a module", "its exercises: 1.1, 1.2"),
        ("show 1.3", "there is no exercise '1.3'. Did you mean", "known: 1.1, 1.2"),
        ("deploy 11", "there is no module '11'. Did you mean 1?", "known: 1"),
        ("logs 1.2", "1.2 has no run yet", "gpucourse run 1.2"),
        ("logs", "there are no runs yet", "gpucourse next"),
    ],
)
def test_wrong_word_is_answered_with_the_one_that_was_meant(learning: Learning, words: str, what: str, hint: str) -> None:
    said = " ".join(learning.types(*words.split(), code=2).err.split())
    assert what in said
    assert hint in said


def test_program_without_words_prints_its_help(learning: Learning) -> None:
    said = learning.types(code=2).err
    assert said.rstrip().endswith("gpucourse help run")
    assert said.strip() == learning.types("--help").out.strip()


def test_run_with_a_gpu_without_a_lab_names_the_deploy_on_aws(learning: Learning) -> None:
    assert "gpucourse deploy 1 --target aws --gpu t4" in learning.types("run", "1.1", "--gpu", "T4", code=3).err


def test_path_after_an_equals_sign_may_begin_with_the_home_folder(
    learning: Learning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell replaces `~` at the beginning of a word only."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    learning.types("open", "--out=~/page", "--no-browser")
    assert (tmp_path / "page" / "index.html").is_file()
    assert not (tmp_path / "~").exists()
