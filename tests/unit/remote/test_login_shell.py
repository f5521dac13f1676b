"""Commands through login shells of every kind: what arrives there, and what of their output is taken for the command's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpucourse.remote.login_shell import Marks, OwnOutput
from tests.parts import need

SHELLS = {"bash": "", "dash": "", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc", "zsh": ".zshenv"}
"""Each with the file that it reads even for one command; bash reads its own only under sshd."""

HARD = r"""printf '%s|' "it's" 'a\b' 'a\\b' '\n' '!history' '%s' '$HOME' "two
lines" 'ünïcødé 日本' '~' '\047' '`id`' '#'; """


def through(shell: str, command: str, home: Path) -> tuple[bytes, bytes, int]:
    """The command's own outputs and its code, through a shell that says a word on both streams where it can."""
    marks = Marks()
    if SHELLS[shell]:
        start = home / SHELLS[shell]
        start.parent.mkdir(parents=True, exist_ok=True)
        start.write_text("echo Hello, 3 new mails; printf '{\"a\": 1}'; sh -c 'echo banner >&2'\n")
    done = subprocess.run(
        [need(shell), "-c", marks.line(command)],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    noisy = bool(SHELLS[shell])
    assert (b"3 new mails" in done.stdout, b"banner" in done.stderr) == (noisy, noisy)
    own, errors = OwnOutput(marks.stdout, marks.end), OwnOutput(marks.stderr, marks.end)
    return own.take(done.stdout), errors.take(done.stderr), done.returncode


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_hands_on_the_command_and_adds_nothing(shell: str, tmp_path: Path) -> None:
    plain = subprocess.run(["/bin/sh", "-c", HARD], env={"HOME": str(tmp_path)}, capture_output=True, check=True).stdout
    out, errors, code = through(shell, HARD + 'pwd >&2; cd /; test "$PWD" = / && exit 7', tmp_path)
    assert out == plain
    assert errors.decode() == f"{tmp_path}\n"
    assert code == 7


@pytest.mark.parametrize("shell", SHELLS)
def test_a_signals_end_is_told_by_every_shell(shell: str, tmp_path: Path) -> None:
    out, _, code = through(shell, "printf begun; kill -KILL $$", tmp_path)
    assert (out, code) == (b"begun", 137)


def test_a_shell_that_prints_what_it_runs_does_not_print_the_marks(tmp_path: Path) -> None:
    marks = Marks()
    done = subprocess.run(["bash", "-xvc", f"exec 2>&1; {marks.line('echo own')}"], capture_output=True, check=True)
    assert done.stdout.count(b"exec /bin/sh") >= 1
    own = OwnOutput(marks.stdout, marks.end)
    assert own.take(done.stdout) == b"own\n"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_of_any_size_give_the_same_bytes(size: int) -> None:
    begin, end = b"aab-out", b"aab-end"
    wanted = bytes(range(256)) + b"aab" * 3 + b"aab-en" + b"aaab-e"
    stream = b"noise aaab-ou" + begin + wanted + end + b"bye aab-out aab-end"
    own = OwnOutput(begin, end)
    assert b"".join(own.take(stream[at : at + size]) for at in range(0, len(stream), size)) + own.rest() == wanted
    assert own.begun
    assert own.ended


def test_an_output_that_breaks_off_is_given_out_whole() -> None:
    own = OwnOutput(b"aab-out", b"aab-end")
    assert own.take(b"aab-out12aab-e") + own.rest() == b"12aab-e"
    assert not own.ended


def test_noise_alone_is_nobodys_output_and_its_end_is_printable() -> None:
    own = OwnOutput(b"aab-out", b"aab-end")
    assert own.take(b"x" * 5000 + b"\x1b[31mnot\x00 \xff available\n") + own.rest() == b""
    assert not own.begun
    assert own.noise_bytes == 5022
    assert own.noise().endswith("x [31mnot \N{REPLACEMENT CHARACTER} available")
    assert len(own.noise()) == 300
