"""Help the judges of Triton kernels: run a kernel in the interpreter, check its loads and stores, and compare tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from device_memory import SimulatedMemory

from gpucourse.judge import Part, Verdict
from gpucourse.judge.cases import Knobs, describe_passing, find_simplest


@dataclass(frozen=True)
class TensorCase:
    """One input: its name for the learner, the part's result, the right result, and the results of the mistakes.

    A mistake may occur several times. `values` fill in the names in a mistake's message. `knobs` are the input's sizes and
    settings.
    """

    name: str
    answer: Any
    right: torch.Tensor
    ways: Sequence[tuple[str, torch.Tensor]] = ()
    values: dict[str, object] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=dict)


class WatchedKernels:
    """Calls functions of the learner's part, and counts the loads and stores of its Triton kernels in the interpreter.

    A race between programs or lanes is the mistake `race`. Other faults, such as a load outside a pointer's tensor, are the
    mistake `outside`. An error in a kernel is shown with its line.
    """

    def __init__(self, part: Part) -> None:
        os.environ["TRITON_INTERPRET"] = "1"  # before the part imports triton
        torch.set_num_threads(1)
        self.part = part
        self.kernels = [value for value in vars(part.module).values() if hasattr(value, "pre_run_hooks")]
        self.memory: Any = None
        self.race = "outside"

    def call(self, case: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of `function`, and set `memory` to the kernels' loads and stores. Raises Verdict."""
        return self.part.call(self._run, case, function, arguments, case=case)

    def _run(self, case: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        import numpy as np
        from kernel_memory import KernelFault, KernelMemory, Race, reason_of

        try:
            with KernelMemory(*self.kernels) as self.memory, np.errstate(over="ignore", invalid="ignore"):
                return function(*arguments)
        except Exception as error:  # noqa: BLE001  # the interpreter wraps a kernel's error in its own
            reason = reason_of(error)
            if isinstance(reason, KernelFault):
                way = self.race if isinstance(reason, Race) else "outside"
                raise self.part.wrong(way, case, what=str(reason)) from None
            raise reason from None


class WatchedKernel(WatchedKernels):
    """Calls the learner's `host` function, which must launch `kernel`."""

    def __init__(self, part: Part, host: str, kernel: str) -> None:
        super().__init__(part)
        self.host = part.function(host)
        self.kernels = [part.function(kernel)]
        if not hasattr(self.kernels[0], "pre_run_hooks"):
            raise Verdict("failed", "no-kernel", f"{kernel} must remain a function with @triton.jit")

    def __call__(self, case: str, *arguments: Any) -> Any:
        """Return the result of the host function, and set `memory` to the kernel's loads and stores. Raises Verdict."""
        result = self.call(case, self.host, *arguments)
        if not self.memory.tensors:
            names = f"{self.host.__name__} did not launch {self.kernels[0].__name__}"
            raise Verdict("failed", "not-launched", f"{names}: its result must come from your kernel", case)
        return result


class Products:
    """Count the multiply-adds of each tl.dot in the interpreter from now on, and collect the precisions of float32 products.

    The interpreter itself computes all products exactly.
    """

    def __init__(self) -> None:
        from triton.runtime.interpreter import InterpreterBuilder

        self.multiply_adds, self.precisions = 0, set[str]()
        multiply = InterpreterBuilder.create_dot

        def note(builder: Any, a: Any, b: Any, d: Any, precision: Any, *arguments: Any) -> Any:
            self.multiply_adds += a.data.size * b.data.shape[-1]
            if a.dtype.primitive_bitwidth == 32:
                self.precisions.add(precision.name)
            return multiply(builder, a, b, d, precision, *arguments)

        InterpreterBuilder.create_dot = note


class PartMemory(SimulatedMemory):
    """Count the memory that a part allocates, without the copies that Triton's interpreter makes of a kernel's tensors."""

    def __init__(self) -> None:
        from triton.runtime.interpreter import GridExecutor

        super().__init__(1 << 40)
        self.is_launching, launch = False, GridExecutor.__call__

        def launch_uncounted(executor: Any, *arguments: Any, **keywords: Any) -> Any:
            self.is_launching = True
            try:
                return launch(executor, *arguments, **keywords)
            finally:
                self.is_launching = False

        GridExecutor.__call__ = launch_uncounted

    def count(self, storage: torch.UntypedStorage) -> None:
        """Count a new storage until it is freed."""
        if not self.is_launching:
            super().count(storage)


def is_close(answer: Any, reference: torch.Tensor, tolerance: float) -> bool:
    """Return whether every number is right to a relative or absolute `tolerance`."""
    same_kind = isinstance(answer, torch.Tensor) and answer.shape == reference.shape
    return same_kind and torch.allclose(answer.float(), reference.float(), tolerance, tolerance, equal_nan=True)


def compare(part: Part, cases: Sequence[TensorCase], tolerance: float) -> None:
    """Return if every case is right. Otherwise, raise a Verdict.

    The verdict names the mistake that matches the part in every case. If none does, it shows the worst number in the
    simplest wrong case, and the nearest right case.
    """
    wrong_cases = [case for case in cases if not is_close(case.answer, case.right, tolerance)]
    if not wrong_cases:
        return
    simplest = wrong_cases[0]
    for place, (way, _) in enumerate(simplest.ways):
        if all(is_close(case.answer, case.ways[place][1] if case.ways else case.right, tolerance) for case in cases):
            raise part.wrong(way, simplest.name, **simplest.values)
    simplest = wrong_cases[find_simplest([case.knobs for case in wrong_cases])]
    passing_words = describe_passing(
        simplest.knobs, [case.knobs for case in cases if is_close(case.answer, case.right, tolerance)]
    )
    raise Verdict("failed", "other", describe(simplest.answer, simplest.right, tolerance) + passing_words, simplest.name)


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
        f"{wrong_count:,} of {off.numel():,} numbers are wrong; the worst is at {list(place)}: {answer[place].item():.6g} "
        f"instead of {reference[place].item():.6g}"
    )
