"""Commands through login shells of every kind: how they arrive, and which output counts as the command's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpucourse.remote.login_shell import OwnOutput, Request, last_words
from tests.parts import need

SHELLS = {"bash": "", "dash": "", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc", "zsh": ".zshenv"}
"""Each with the file that it reads even for one command; bash reads its own only under sshd."""

HARD = r"""printf '%s|' "it's" 'a\b' 'a\\b' '\n' '!history' '%s' '$HOME' "two
lines" 'ünïcødé 日本' '~' '\047' '`id`' '#'; """


def through(shell: str, command: str, home: Path) -> tuple[bytes, bytes, int]:
    """Return the command's own outputs and its code, through a shell that prints a word on both streams if it can."""
    request = Request(command)
    if SHELLS[shell]:
        start = home / SHELLS[shell]
        start.parent.mkdir(parents=True, exist_ok=True)
        start.write_text("echo Hello, 3 new mails; printf '{\"a\": 1}'; sh -c 'echo banner >&2'\n")
    result = subprocess.run(
        [need(shell), "-c", request.line],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    noisy = bool(SHELLS[shell])
    assert (b"3 new mails" in result.stdout, b"banner" in result.stderr) == (noisy, noisy)
    output, errors = own_outputs(request)
    out, message = output.take(result.stdout), errors.take(result.stderr)
    assert output.code == errors.code == result.returncode
    return out, message, result.returncode


def own_outputs(request: Request) -> tuple[OwnOutput, OwnOutput]:
    return OwnOutput(request.stdout, request.end), OwnOutput(request.stderr, request.end)


@pytest.mark.parametrize("shell", SHELLS)
def test_request_passes_through_every_shell_unchanged(shell: str, tmp_path: Path) -> None:
    plain = subprocess.run(["/bin/sh", "-c", HARD], env={"HOME": str(tmp_path)}, capture_output=True, check=True).stdout
    out, errors, code = through(shell, HARD + 'pwd >&2; cd /; test "$PWD" = / && exit 7', tmp_path)
    assert out == plain
    assert errors.decode() == f"{tmp_path}\n"
    assert code == 7


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_own_output_is_the_same_in_pieces_of_any_size(size: int) -> None:
    begin, end = b"aab-out", b"aab-end"
    data = bytes(range(256)) + b"aab" * 3 + b"aab-en" + b"aaab-e"
    stream = b"noise aaab-ou" + begin + data + end + b"042" + b"bye aab-out aab-end"
    output = OwnOutput(begin, end)
    assert b"".join(output.take(stream[at : at + size]) for at in range(0, len(stream), size)) + output.rest() == data
    assert output.begun
    assert output.ended
    assert output.code == 42


def test_own_output_leaves_out_noise_and_prints_its_end() -> None:
    output = OwnOutput(b"aab-out", b"aab-end")
    assert output.take(b"x" * 5000 + b"\x1b[31mnot\x00 \xff available\n") + output.rest() == b""
    assert not output.begun
    assert output.noise_bytes == 5022
    assert output.noise().endswith("x [31mnot \N{REPLACEMENT CHARACTER} available")
    assert len(output.noise()) == 300


def test_last_words_keeps_the_last_line_of_a_traceback() -> None:
    long = b'Traceback (most recent call last):\n  File "agent.py", line 1\n' + b"    frame()\n" * 300
    assert last_words(long + b"ValueError: no JSON\n", 800) == "ValueError: no JSON"
    assert last_words(b"Traceback (most recent call last)\n" + b" " * 900, 800) == ""
    assert last_words(b"one\ntwo", 800) == r"one\ntwo"
