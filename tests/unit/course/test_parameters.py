"""The values that a learner types after --set, and the arguments that the script receives."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from typing import Any

import pytest

from gpucourse.course.parameters import arguments, resolve
from gpucourse.errors import ExitCode, UnknownName, UsageError
from gpucourse.model.launching import Launch
from gpucourse.model.manifest import Exercise
from tests.waiting import STUCK_S


def exercise(*parameters: dict[str, Any]) -> Exercise:
    return Exercise.model_validate(
        {
            "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "python"},
            "tasks": ["t"], "hints": ["h"], "parameters": [{"help": "what it is", **parameter} for parameter in parameters],
        }
    )  # fmt: skip


SIZE = {"name": "batch_size", "type": "int", "default": 64, "local": 8, "min": 1, "max": 65536, "unit": "samples"}
RATE = {"name": "rate", "type": "float", "default": 0.1, "min": -1, "max": 1e6}
WORDS = {"name": "words", "type": "str", "default": "hello"}
FAST = {"name": "fast", "type": "bool", "default": False}
SIZES = {"name": "sizes", "type": "str", "default": "16,32", "each": "int", "min": 16, "max": 64, "unit": "rows"}
DTYPES = {"name": "dtypes", "type": "str", "default": "half", "each": "str", "choices": ["half", "single"]}
KIND = {"name": "kind", "type": "str", "default": "ring", "choices": ["ring", "tree"]}


def test_resolve_uses_smaller_defaults_on_simulated_nodes() -> None:
    sample = exercise(SIZE, RATE, WORDS, FAST)
    assert resolve(sample, {}, local=False) == {"batch_size": 64, "rate": 0.1, "words": "hello", "fast": False}
    assert resolve(sample, {}, local=True)["batch_size"] == 8


@pytest.mark.parametrize("name", ["batch_size", "batch-size", "--batch-size"])
def test_resolve_accepts_a_name_written_as_a_flag(name: str) -> None:
    assert resolve(exercise(SIZE), {name: "5"}, local=True) == {"batch_size": 5}


@pytest.mark.parametrize(
    ("text", "value"), [("+7", 7), (" 12 ", 12), ("0012", 12), ("1_000", 1000), ("1e3", 1000), ("2.0", 2), ("65536", 65536)]
)
def test_resolve_whole_numbers(text: str, value: int) -> None:
    resolved = resolve(exercise(SIZE), {"batch_size": text}, local=False)["batch_size"]
    assert (resolved, type(resolved)) == (value, int)


@pytest.mark.parametrize(
    "text", ["", "many", "1.5", "0x10", "1e-3", "1e999", "nan", "true", "1__0", "1,000", "٣", "²", "1\n2", "9" * 5000, "$(id)"]
)
def test_resolve_refuses_anything_but_a_whole_number(text: str) -> None:
    with pytest.raises(UsageError, match="is not a whole number") as caught:
        resolve(exercise(SIZE), {"batch_size": text}, local=False)
    assert caught.value.exit_code == ExitCode.USAGE
    assert "a whole number from 1 to 65,536 samples" in caught.value.hint
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "message"),
    [("0", "0 is below 1"), ("-3", "-3 is below 1"), ("1e5", "100000 is above 65536")],
)
def test_resolve_refuses_a_number_out_of_range(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(exercise(SIZE), {"batch_size": text}, local=False)


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), (".5", 0.5), ("1e-3", 0.001), ("-1", -1.0), ("2.", 2.0), ("0", 0.0)])
def test_resolve_numbers(text: str, value: float) -> None:
    resolved = resolve(exercise(RATE), {"rate": text}, local=False)["rate"]
    assert (resolved, type(resolved)) == (value, float)


@pytest.mark.parametrize("text", ["nan", "Infinity", "1e999", "0x1p3", "", "1/2", "1,5", "٣.٥"])
def test_resolve_refuses_anything_but_a_number(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number"):
        resolve(exercise(RATE), {"rate": text}, local=False)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("YES", True), ("on", True), ("1", True), ("0", False)])
def test_resolve_true_and_false(text: str, value: bool) -> None:
    assert resolve(exercise(FAST), {"fast": text}, local=False) == {"fast": value}


@pytest.mark.parametrize("text", ["", "2", "maybe", "t"])
def test_resolve_refuses_anything_but_true_and_false(text: str) -> None:
    with pytest.raises(UsageError, match="is not true or false"):
        resolve(exercise(FAST), {"fast": text}, local=False)


def test_resolve_names_the_choices() -> None:
    assert resolve(exercise(KIND), {"kind": "tree"}, local=False) == {"kind": "tree"}
    with pytest.raises(UsageError, match="'Tree' is not one of ring, tree") as caught:
        resolve(exercise(KIND), {"kind": "Tree"}, local=False)
    assert "one of ring, tree" in caught.value.hint


def test_resolve_of_an_unknown_parameter_suggests_the_similar_one() -> None:
    with pytest.raises(UnknownName) as caught:
        resolve(exercise(SIZE, RATE), {"bach_size": "1"}, local=False)
    assert str(caught.value) == "there is no parameter 'bach_size'. Did you mean batch_size?"
    assert caught.value.hint == "parameters of 7.1: batch_size, rate"
    with pytest.raises(UnknownName) as caught:
        resolve(exercise(), {"x": "1"}, local=False)
    assert caught.value.hint == "7.1 has no parameters"


def test_resolve_refuses_one_parameter_in_two_spellings() -> None:
    with pytest.raises(UsageError, match="typed twice"):
        resolve(exercise(SIZE), {"batch_size": "1", "batch-size": "2"}, local=False)


NASTY = [
    "it's", 'a "quote"', "$(touch pwned)", "`id`", "a\nb\r\nc", "", " ", "-x", "--fast", "a=b", "*", "~", "\\", "%s {0}",
    "ünï ✓ 𝔘", "\x1b[31m", "'; rm -rf / #", "a\tb", "\u202eabc",
]  # fmt: skip


def test_arguments_carry_any_text_as_one_argument() -> None:
    """Through the argument list, and through one layer of shell quoting, as it travels to a node."""
    sample = exercise(WORDS, FAST)
    parser = argparse.ArgumentParser()
    parser.add_argument("--words")
    parser.add_argument("--fast", action=argparse.BooleanOptionalAction)
    words = []
    for text in NASTY:
        flags = arguments(sample, resolve(sample, {"words": text}, local=False))
        assert flags == (f"--words={text}", "--no-fast")
        assert parser.parse_args(flags).words == text
        words.append(flags[0])
    echo = [sys.executable, "-S", "-c", "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"]
    result = subprocess.run(["/bin/sh", "-c", shlex.join([*echo, *words])], capture_output=True, check=True, timeout=STUCK_S)
    assert result.stdout.split(b"\0") == [text.encode() for text in words]


def test_resolve_refuses_nul_and_bytes_that_are_not_text() -> None:
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        resolve(exercise(WORDS), {"words": "a\udcffb"}, local=False)
    with pytest.raises(UsageError, match="NUL"):
        resolve(exercise(WORDS), {"words": "a\0b"}, local=False)


@pytest.mark.parametrize("text", ["16", "16,64", "16, 32"])
def test_resolve_keeps_several_values_as_they_were_typed(text: str) -> None:
    assert resolve(exercise(SIZES), {"sizes": text}, local=True) == {"sizes": text}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sizes", "16,many", "'many' is not a whole number"),
        ("sizes", "16,,32", "'' is not a whole number"),
        ("sizes", "1e2", "'1e2' is not a whole number"),
        ("sizes", "32,8", "8 is below 16"),
        ("dtypes", "half,double", "'double' is not one of half, single"),
    ],
)
def test_resolve_checks_each_of_several_values(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        resolve(exercise(SIZES, DTYPES), {name: text}, local=True)
    assert "values with commas between them, each " in caught.value.hint
    assert ("from 16 to 64 rows" if name == "sizes" else "one of half, single") in caught.value.hint


def test_arguments_of_every_type() -> None:
    sample = exercise(SIZE, RATE, WORDS, FAST)
    values = resolve(sample, {"rate": "1e-07", "fast": "yes"}, local=True)
    assert arguments(sample, values) == ("--batch-size=8", "--rate=1e-07", "--words=hello", "--fast")


def test_arguments_leave_out_the_number_of_processes() -> None:
    count = {"name": "nproc", "type": "int", "default": 2, "min": 1, "max": 8}
    sample = exercise(count, FAST).model_copy(update={"launch": Launch(kind="torchrun", procs_per_node="nproc")})
    values = resolve(sample, {"nproc": "3"}, local=True)
    assert values["nproc"] == 3
    assert arguments(sample, values) == ("--no-fast",)
