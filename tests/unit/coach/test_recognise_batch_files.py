"""Messages of a shell about a batch file are reported with their line, and do not explain a script that started and failed."""

from __future__ import annotations

import pytest

from gpucourse.coach.recognise import recognise
from gpucourse.model.diagnosis import Diagnosis
from tests.unit.coach.test_recognise import evidence, log

FILE = "/var/lib/slurm/slurmd/job00012/slurm_script"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'


def diagnose(*lines: str, code: int = 1) -> tuple[Diagnosis, ...]:
    text = "".join(f"{line}\n" for line in lines)
    return recognise(evidence(log(0, text, code), world=0))


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ((f"{FILE}: line 8: unexpected EOF while looking for matching `\"'",), "8", "matching `\"'"),
        (
            (f"{FILE}: line 9: syntax error near unexpected token `done'", f"{FILE}: line 9: `done'"),
            "9",
            "unexpected token `done'",
        ),
        ((f"{FILE}: line 12: syntax error: unexpected end of file",), "12", "unexpected end of file"),
        ((f"{FILE}: line 4: ${{x y}}: bad substitution",), "4", "bad substitution"),
        (
            ("begun", f"{FILE}: line 7: warning: here-document at line 3 delimited by end-of-file (wanted `EOF')", "and on"),
            "7",
            "here-document at line 3",
        ),
    ],
)
def test_recognise_shows_a_syntax_error_in_the_words_of_the_shell(lines: tuple[str, ...], line: str, message: str) -> None:
    (diagnosis,) = diagnose(*lines, code=2)
    assert diagnosis.symptom == "shell-syntax"
    assert f"line {line}" in diagnosis.title
    assert message in diagnosis.why
    assert message in diagnosis.seen[0].line


def test_recognise_names_a_missing_module_command_with_its_cause_and_repair() -> None:
    missing = f"{FILE}: line 5: module: command not found"
    (diagnosis,) = diagnose(missing, f"{FILE}: line 9: mpirun: command not found", code=127)
    assert diagnosis.symptom == "no-modules"
    assert diagnosis.title == "There is no `module` command on node0"
    assert "source /etc/profile" in diagnosis.next
    assert diagnosis.seen[0].line == missing
    first, second = diagnose(missing, f"{TRACEBACK}ModuleNotFoundError: No module named 'torch'")
    assert {first.symptom, second.symptom} == {"no-modules", "module-missing"}
    (dash,) = diagnose(f"{FILE}: 5: module: not found", code=127)
    assert dash.symptom == "no-modules"


def test_recognise_does_not_explain_a_failed_script_by_a_missing_module_command() -> None:
    (diagnosis,) = diagnose(f"{FILE}: line 5: module: command not found", f"{TRACEBACK}ValueError: no such model")
    assert diagnosis.symptom == "script-error"


def test_recognise_does_not_explain_a_failed_script_by_a_warning_of_the_shell() -> None:
    warning = f"{FILE}: line 7: warning: here-document at line 3 delimited by end-of-file (wanted `EOF')"
    (diagnosis,) = diagnose(warning, f"{TRACEBACK}ModuleNotFoundError: No module named 'torch'")
    assert diagnosis.symptom == "module-missing"


def test_recognise_does_not_call_a_missing_path_a_program() -> None:
    (diagnosis,) = diagnose("step 1", f"{FILE}: line 9: /scratch/out.txt: No such file or directory")
    assert diagnosis.title == "A path in the script is missing on node0"
    assert "starts, reads or writes /scratch/out.txt" in diagnosis.why


@pytest.mark.parametrize(
    "line",
    [
        "main.cpp:3:10: error: 'x' was not declared in this scope",
        'kernel.cu(12): error: identifier "n" is undefined',
        "collect2: error: ld returned 1 exit status",
        "sbatch: error: Batch job submission failed: Invalid partition name specified",
    ],
)
def test_recognise_does_not_mistake_an_error_of_a_compiler_or_sbatch_for_a_wrong_argument(line: str) -> None:
    assert "wrong-arguments" not in {diagnosis.symptom for diagnosis in diagnose("begun", line)}
    build_error = f"{TRACEBACK}RuntimeError: Error building extension 'own'\n{line}"
    assert "wrong-arguments" not in {diagnosis.symptom for diagnosis in diagnose(build_error)}
    assert diagnose("usage: train.py [-h]", "train.py: error: unrecognized arguments: --x")[0].symptom == "wrong-arguments"


def test_recognise_names_a_missing_command() -> None:
    (diagnosis,) = diagnose("step 1", f"{FILE}: line 9: deepspeed: command not found", code=127)
    assert (diagnosis.symptom, "deepspeed" in diagnosis.why) == ("command-missing", True)
    assert diagnose("the shell said: line 9: no command", code=3)[0].symptom == "rank-exited"
