"""Hazards between streams, copies and the host: each wrong order is a fault with both lines, and no right order is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("hazards.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
FIRST = "thread (0,0,0) of block (0,0,0)"
NO_ORDER = "in another stream, and nothing orders the two streams (cudaStreamWaitEvent does)"
NO_WAIT = "and does not wait for it (cudaStreamSynchronize does)"


def place(comment: str) -> str:
    """Return the line that ends with this comment, as the emulator names it."""
    return f"hazards.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


STORES, LOADS = place("stores"), place("loads")
WRONG = {
    "no-event": f"{LOADS}: {FIRST} reads memory that a kernel writes ({STORES}) {NO_ORDER}",
    "early-event": f"{LOADS}: {FIRST} reads memory that a kernel writes ({STORES}) {NO_ORDER}",
    "write-after-read": f"{STORES}: {FIRST} writes memory that a kernel reads ({LOADS}) {NO_ORDER}",
    "non-blocking": f"{LOADS}: {FIRST} reads memory that a copy writes ({place('fills')}) {NO_ORDER}",
    "copy-after-kernel": f"{place('copies home')}: this copy reads memory that a kernel writes ({STORES}) {NO_ORDER}",
    "copy-after-copy": f"{place('copies on')}: this copy reads memory that a copy writes ({place('copies there')}) {NO_ORDER}",
    "host-after-copy": (
        f"{place('reads too early')}: the host reads memory that a copy writes ({place('copies to the host')}), {NO_WAIT}"
    ),
    "host-after-kernel": f"{place('reads managed memory')}: the host reads memory that a kernel writes ({STORES}), {NO_WAIT}",
    "other-stream": f"{place('writes managed memory')}: the host writes memory that a kernel writes ({STORES}), {NO_WAIT}",
}
RIGHT = ("event", "default-stream", "waits", "chain", "halves", "readers", "atomics", "managed")


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


def list_faults(result: Any) -> list[tuple[str, str]]:
    """Return the kind and the words of all faults."""
    assert result.code == 0
    return [(fault.kind, fault.text) for kernel in result.kernels.values() for fault in kernel.faults]


@pytest.mark.parametrize("name", WRONG)
def test_hazard_is_named_with_both_lines(program: Any, name: str) -> None:
    assert list_faults(program.run(name)) == [("stream_hazards", WRONG[name])]


@pytest.mark.parametrize("name", RIGHT)
def test_right_order_has_no_fault(program: Any, name: str) -> None:
    assert list_faults(program.run(name)) == []


def test_fault_of_the_host_adds_no_kernel_to_the_report(program: Any) -> None:
    command = importlib.import_module("emulator.__main__")
    report = command._make_report({0: program.run("host-after-kernel")}, [])
    assert [kernel["name"] for kernel in report["kernels"]] == ["store"]
    assert [(fault["kernel"], fault["kind"]) for fault in report["faults"]] == [("host code", "hazard between streams")]
