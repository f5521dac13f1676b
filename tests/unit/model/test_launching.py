"""How an exercise is started, and what its parameters allow."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.launching import Launch, Parameter, SlurmLaunch, advise_install


def make_parameter(**keys: Any) -> Parameter:
    return Parameter.model_validate({"name": "p", "help": "h", **keys})


def test_advise_install_names_the_extra_of_triton_and_none_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    assert advise_install(["triton"], "py", on_this_computer=False) == "py -m pip install 'gpucourse[kernels]'"
    assert advise_install(["triton", "torch"], "py", on_this_computer=False) == "py -m pip install 'gpucourse[kernels,local]'"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert advise_install(["triton"], "py", on_this_computer=False) == "py -m pip install 'gpucourse[kernels]'", (
        "the node's system is not known"
    )
    assert advise_install(["triton"], "py", on_this_computer=True).startswith(
        "Triton has no build for macOS: run it on Linux machines"
    )
    assert advise_install(["torch"], "py", on_this_computer=True) == "py -m pip install 'gpucourse[local]'"


@pytest.mark.parametrize(
    ("kind", "keys", "complaint"),
    [
        (Launch, {"kind": "python", "restarts": 1}, "restarts is for the kind torchrun"),
        (Launch, {"kind": "torchrun", "nodes": 1, "min_nodes": 2}, r"nodes \(1\) must be between min_nodes \(2\)"),
        (Launch, {"kind": "torchrun", "slurm": {}}, "slurm is for the kinds slurm and slurm-pty"),
        (SlurmLaunch, {"jobs": "a", "array": "b"}, "jobs and array cannot be combined"),
        (SlurmLaunch, {"at_once": "a"}, "at_once belongs to array"),
    ],
)
def test_launch_with_keys_that_do_not_agree_is_refused(kind: Any, keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        kind.model_validate(keys)


def test_launch_lists_the_parameters_that_the_script_does_not_get() -> None:
    slurm = {"partition": "queue", "array": "sizes", "at_once": "most"}
    launch = Launch.model_validate({"kind": "slurm", "procs_per_node": "nproc", "slurm": slurm})
    assert launch.for_launcher == {"nproc", "queue", "most"}, "the script gets the whole array"
    assert Launch(kind="python").for_launcher == frozenset()


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"type": "int", "default": 1, "min": 9, "max": 1}, r"min \(9\) is above max \(1\)"),
        ({"type": "bool", "default": False, "min": 0}, "min and max are for numbers, not for true or false"),
        ({"type": "int", "default": 5, "max": 4}, "default: 5 is above 4"),
        ({"type": "int", "default": 1, "local": 0, "min": 1}, "local: 0 is below 1"),
        ({"type": "str", "default": "t", "choices": ["t"], "choices_of": "instance types"}, "cannot be combined"),
        ({"type": "str", "default": "16,8", "each": "int", "min": 16}, "default: 8 is below 16"),
        ({"type": "int", "default": 16, "each": "int"}, "each is for text with commas in it"),
        ({"type": "str", "default": "half", "each": "str", "min": 1}, "min and max are for numbers"),
        ({"type": "str", "default": "half", "choices": ["half", 2]}, "the choice 2 is not text"),
    ],
)
def test_parameter_with_a_default_or_range_that_cannot_be_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        make_parameter(**keys)
