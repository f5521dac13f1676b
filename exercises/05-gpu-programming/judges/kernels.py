"""Help the judges of Triton kernels: run a kernel in the interpreter, check its loads and stores, and compare tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gpucourse.judge import Part, Verdict
from gpucourse.judge.cases import Knobs, describe_passing, find_simplest


@dataclass(frozen=True)
class TensorCase:
    """One input: its name for the learner, the part's result, the right result, and the results of the wrong ways.

    A wrong way may occur several times. `values` fill in the names in a way's message. `knobs` are the input's sizes and
    settings.
    """

    name: str
    given: Any
    right: torch.Tensor
    ways: Sequence[tuple[str, torch.Tensor]] = ()
    values: dict[str, object] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=dict)


class WatchedKernel:
    """Calls the learner's host function, which launches `kernel`, and counts the loads and stores in the interpreter.

    A load or store outside the tensors is the wrong way `outside`. An error in the kernel is shown with its line.
    """

    def __init__(self, part: Part, host: str, kernel: str) -> None:
        os.environ["TRITON_INTERPRET"] = "1"  # before the part imports triton
        torch.set_num_threads(1)
        self.part, self.host = part, part.function(host)
        self.kernel: Any = part.function(kernel)
        self.memory: Any = None
        if not hasattr(self.kernel, "pre_run_hooks"):
            raise Verdict("failed", "no-kernel", f"{kernel} must remain a function with @triton.jit")

    def __call__(self, case: str, *arguments: Any) -> Any:
        """Return the result of the host function, and set `memory` to the kernel's loads and stores. Raises Verdict."""
        return self.part.call(self._run, case, arguments, case=case)

    def _run(self, case: str, arguments: Sequence[Any]) -> Any:
        from kernel_memory import KernelMemory, OutsideTensors, StoredTwice, reason_of

        try:
            with KernelMemory(self.kernel) as self.memory:
                result = self.host(*arguments)
        except Exception as error:  # noqa: BLE001  # the interpreter hides what a kernel raised in an error of its own
            reason = reason_of(error)
            if isinstance(reason, (OutsideTensors, StoredTwice)):
                raise self.part.wrong("outside", case, what=str(reason)) from None
            raise reason from None
        if not self.memory.tensors:
            names = f"{self.host.__name__} did not launch {self.kernel.__name__}"
            raise Verdict("failed", "not-launched", f"{names}: its result must come from your kernel", case)
        return result


def is_close(answer: Any, reference: torch.Tensor, tolerance: float) -> bool:
    """Return whether every number is right to a relative or absolute `tolerance`."""
    same_kind = isinstance(answer, torch.Tensor) and answer.shape == reference.shape
    return same_kind and torch.allclose(answer.float(), reference.float(), tolerance, tolerance, equal_nan=True)


def compare(part: Part, cases: Sequence[TensorCase], tolerance: float) -> None:
    """Return if every case is right. Otherwise, raise a Verdict.

    The verdict names the wrong way that matches the part in every case. If no way does, it shows the worst number in the
    simplest wrong case, and the nearest right case.
    """
    wrong_cases = [case for case in cases if not is_close(case.given, case.right, tolerance)]
    if not wrong_cases:
        return
    simplest = wrong_cases[0]
    for place, (way, _) in enumerate(simplest.ways):
        if all(is_close(case.given, case.ways[place][1] if case.ways else case.right, tolerance) for case in cases):
            raise part.wrong(way, simplest.name, **simplest.values)
    simplest = wrong_cases[find_simplest([case.knobs for case in wrong_cases])]
    passing_words = describe_passing(
        simplest.knobs, [case.knobs for case in cases if is_close(case.given, case.right, tolerance)]
    )
    raise Verdict("failed", "other", describe(simplest.given, simplest.right, tolerance) + passing_words, simplest.name)


def describe(answer: Any, reference: torch.Tensor, tolerance: float) -> str:
    """Describe in a sentence why a tensor is wrong: its kind, its shape, or the number of wrong values."""
    if answer is None:
        return "it returned None: is the return missing?"
    if not isinstance(answer, torch.Tensor):
        return f"it returned a {type(answer).__name__}, but should return a tensor"
    if answer.shape != reference.shape:
        return f"it returned a tensor of shape {tuple(answer.shape)}; {tuple(reference.shape)} is right"
    off = (answer.double() - reference.double()).abs().nan_to_num(torch.inf)
    place = tuple(int(index) for index in torch.unravel_index(off.argmax(), off.shape))
    wrong_count = int((off > tolerance * (1 + reference.double().abs())).sum())
    return (
        f"{wrong_count:,} of {off.numel():,} numbers are wrong; the worst is at {list(place)}: {answer[place].item():.6g}, "
        f"where {reference[place].item():.6g} is right"
    )
