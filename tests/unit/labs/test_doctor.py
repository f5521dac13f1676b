"""`doctor --module`: the programs that a module's exercises start, and the measurements that are left out without others."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec

from gpucourse.context import Context
from gpucourse.labs.doctor import doctor, list_programs


def test_list_programs_names_the_exercises_that_use_them(context: Context) -> None:
    module = context.catalog.module("3")
    assert list_programs(module) == []
    first, second, third = module.exercises[:3]
    needing = module.model_copy(
        update={
            "exercises": (
                first.model_copy(update={"programs": ("sh", "no-such-compiler")}),
                second.model_copy(update={"programs": ("no-such-compiler",), "optional_programs": ("no-such-profiler",)}),
                third.model_copy(update={"optional_programs": ("sh",), "packages": ("torch", "triton")}),
            )
        }
    )
    shell, lacking, optional, triton = list_programs(needing)
    assert (shell.what, shell.state) == ("sh", "ok")
    assert (lacking.what, lacking.state, lacking.mend) == (
        "no-such-compiler",
        "warning",
        "sudo apt-get install no-such-compiler",
    )
    assert lacking.detail == "not found; needed for 3.1 and 3.2"
    assert (optional.what, optional.state) == ("no-such-profiler", "warning")
    assert optional.detail == "not found: its measurements in 3.2 are left out"
    assert triton.what == "triton"
    if find_spec("triton") is None:
        assert (triton.state, triton.detail) == ("warning", "not installed; needed for 3.3")
        assert "gpucourse[kernels]" in triton.mend or "macOS" in triton.mend


def test_doctor_checks_this_computer_for_the_selected_target(context: Context) -> None:
    context = replace(context, environ={"PATH": os.environ["PATH"], "GPUCOURSE_TERRAFORM": "/no/terraform"})
    findings = {finding.what: finding for finding in doctor(context, "local", "3")}
    assert findings["Terraform"].state == "missing"
    assert findings["workspace"].state in {"ok", "warning"}
    assert findings["course"].detail.endswith(f"modules in {context.folders.modules}")
    assert {"Python", "asyncssh", "torch"} <= set(findings)
