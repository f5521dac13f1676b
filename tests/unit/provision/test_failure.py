"""The messages for a failed Terraform."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import StackBusy, StorageError, TerraformFailed
from gpucourse.provision.failure import failure, make_interrupted_error
from gpucourse.provision.transcript import Diagnostic, Transcript

LOG = Path("/w/terraform-apply.log")


def transcript(*diagnostics: Diagnostic, text: str = "") -> Transcript:
    result = Transcript(errors=list(diagnostics))
    for line in text.splitlines():
        list(result.read(line.encode()))
    return result


def error(summary: str, detail: str = "", address: str = "", place: str = "") -> Diagnostic:
    return Diagnostic(summary=summary, detail=detail, address=address, place=place)


@pytest.mark.parametrize(
    ("detail", "output"),
    [
        ("Error running command 'it's: x. Output: y': exit status 2. Output: ", "its command ended with exit status 2"),
        (
            "Error running command 'a\nb': signal: killed. Output: one\n\ntwo",
            "its command ended with signal: killed, saying:\none\ntwo",
        ),
        (
            "Error running command 'a': exit status 1. Output: " + "l\n" * 90,
            "its command ended with exit status 1, saying:" + "\nl" * 5,
        ),
        ("y" * 700, "y" * 600 + " ..."),
    ],
)
def test_failure_shortens_details(detail: str, output: str) -> None:
    terraform_error = failure("apply", 1, transcript(error("S", detail)), LOG)
    assert terraform_error.what == f"terraform apply failed: S\n{output}"
    assert isinstance(terraform_error, TerraformFailed)
    assert terraform_error.detail == detail


def test_failure_takes_the_first_error_that_explains() -> None:
    events = transcript(
        error("execution halted"),
        error("Real", place="main.tf line 3"),
        error("Other"),
    )
    assert failure("plan", 1, events, LOG).what == "terraform plan failed in main.tf line 3: Real (and 2 more, see the log)"
    assert failure("plan", 1, transcript(error("execution halted")), LOG).what == "terraform plan failed: execution halted"


def test_failure_names_who_holds_the_state() -> None:
    detail = (
        "Error message: x\nLock Info:\n  Operation: OperationTypeApply\n  Who:       ann@box\n  Created:   2026-11-21 01:59\n"
    )
    terraform_error = failure("plan", 1, transcript(error("Error acquiring the state lock", detail)), LOG)
    assert isinstance(terraform_error, StackBusy)
    assert terraform_error.what == "another Terraform process holds the state of this stack (ann@box, since 2026-11-21 01:59)"
    assert isinstance(failure("plan", 1, transcript(error("Error acquiring the state lock")), LOG), StackBusy)


@pytest.mark.parametrize(
    ("summary", "detail", "kind", "words"),
    [
        ("Failed to save state", "write x: no space left on device", StorageError, "no space left"),
        ("Failed to save state", "Disk quota exceeded", StorageError, "no space left"),
    ],
)
def test_failure_has_a_class_of_its_own(summary: str, detail: str, kind: type[Exception], words: str) -> None:
    terraform_error = failure("plan", 1, transcript(error(summary, detail), error("A")), LOG)
    assert isinstance(terraform_error, kind)
    assert words in terraform_error.what


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "╷\n│ Error: Failed to query packages\n│ \n│ could not reach\n│ the registry\n╵\n",
            "Failed to query packages\ncould not reach\nthe registry",
        ),
        (
            "There are some problems with the CLI configuration:\n╷\n│ Warning: Unable to open\n│\n╵\n\npanic: nil\n",
            "init ended with exit code 11\npanic: nil",
        ),
        ("", "init ended with exit code 11"),
    ],
)
def test_failure_takes_plain_text_when_there_is_no_diagnostic(text: str, words: str) -> None:
    assert failure("init", 11, transcript(text=text), LOG).what == f"terraform init failed: {words}"


@pytest.mark.parametrize(("code", "name"), [(-9, "SIGKILL (is there enough memory?)"), (-11, "SIGSEGV"), (-99, "signal 99")])
def test_failure_of_a_killed_terraform(code: int, name: str) -> None:
    terraform_error = failure("apply", code, transcript(error("x")), LOG)
    assert terraform_error.what.startswith(f"terraform apply was ended by {name}; what it was building")


def test_make_interrupted_error_says_whether_anything_was_done() -> None:
    before = make_interrupted_error("plan", Transcript(), LOG)
    assert before.what == "terraform plan was stopped before it changed anything"
    assert "nothing was built" in before.hint
    after = make_interrupted_error("apply", Transcript(changing=True, finished=[("create", "x")]), LOG)
    assert after.what == "terraform apply was stopped after 1 change"
    assert "gpucourse destroy" in after.hint
