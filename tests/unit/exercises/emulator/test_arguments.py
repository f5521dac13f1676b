"""The arguments of kernels: which are copied, how often, and in whose memory they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("arguments.cu")
PRINTED = """\
1 copies, 1 ends, sum 1312
2 copies, 2 ends, sum 1312
3 copies, 3 ends, sum 1312
3 copies, 64, 4 and 3
sum 160
"""


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


@pytest.mark.parametrize("order", range(4))
def test_host_copies_each_argument_once(program: Any, order: int) -> None:
    result = program.run(order=order)
    assert (result.output, result.code, result.first_fault()) == (PRINTED, 0, None)


def test_blocks_without_hooks_get_the_same_arguments(build: Callable[..., Any]) -> None:
    program = build(SOURCE.read_text(encoding="utf-8"), every=False)
    assert program.run().output == PRINTED


def test_reference_to_a_variable_of_the_host_is_a_fault(program: Any) -> None:
    (fault,) = program.run("more").kernels["store_reference"].faults
    assert "reads 4 bytes of the host's memory" in fault.text
