from __future__ import annotations

from gpucourse.errors import UsageError
from gpucourse.launch.launcher import find_launcher
from tests.unit.launch.test_slurm import batch_of, make_plan, request


def test_plan_of_a_terminal_is_the_plain_command_with_its_name_in_the_environment() -> None:
    plan = make_plan(request({"kind": "slurm-pty", "timeout": "1h"}))
    command = plan.commands[0]
    assert " ".join(command.argv) == "srun --partition=gpu --gres=gpu:1 --pty bash"
    assert command.env["SLURM_JOB_NAME"] == "2.9"
    assert command.env["SLURM_TIMELIMIT"] == "10"
    assert command.env["HISTFILE"] == ""
    assert batch_of(plan).session


def test_object_to_refuses_a_secret_that_a_process_list_would_show() -> None:
    terminal = find_launcher("slurm-pty")
    assert terminal.object_to(torchrun="", handed_on=(), profile=False) is None
    reason = terminal.object_to(torchrun="", handed_on=("TOKEN",), profile=False)
    assert isinstance(reason, UsageError)
    assert reason.hint == "set it in the terminal: read -rs TOKEN; export TOKEN"
