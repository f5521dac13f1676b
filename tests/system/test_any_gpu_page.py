"""Type the commands of docs/any-gpu.md, as far as they work on a computer without a GPU."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from gpucourse.workspace.settings import Settings
from tests.parts import need
from tests.ports import take_port
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.system.test_here import learner

__all__ = ["learner"]  # the fixture

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "any-gpu.md").read_text(encoding="utf-8")
ANSWERS = {  # where each command ends without a GPU, and its message
    "doctor --target here": (3, "no GPU here: use simulated nodes"),
    "deploy 1 --target here": (3, "no GPU here: use simulated nodes"),
    "deploy 4 --target here": (3, "no GPU here: use simulated nodes"),
    "run 1.1": (3, "gpucourse deploy 1"),
    "run 4.2": (3, "gpucourse deploy 4"),
    "status": (0, "Nothing is deployed"),
    "destroy 1": (0, "there was nothing to destroy"),
    "destroy --all": (0, "there was nothing to destroy"),
    "deploy 1 --target hosts --hosts root@gpubox:22": (7, "test it with plain ssh"),
    "run 1.1 --target hosts": (3, "gpucourse deploy 1 --target hosts"),
}


NO_GPU = '{"torch": "2.11.0", "gpus": []}'


def list_commands() -> list[str]:
    """Return the words after `gpucourse` in the page's blocks, each once, in the order of the page."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    commands = [line.split("#")[0].strip() for line in lines]
    return list(dict.fromkeys(match[1] for line in commands if (match := re.match(r"(?:\S+/)?gpucourse (.+)", line))))


def test_every_command_of_the_page_is_typed_here() -> None:
    assert set(list_commands()) == set(ANSWERS)


@needs_torch
def test_the_commands_go_as_far_as_they_can(learner: Learner) -> None:
    need("ssh")
    python = learner.workspace.parent / "python"  # one stand-in for torch in all commands: none of them tests it
    python.write_text(f'#!/bin/sh\ncase "$2" in *device_count*) echo \'{NO_GPU}\' ;; *) exec {sys.executable} "$@" ;; esac\n')
    python.chmod(0o755)
    learner.workspace.mkdir()
    (learner.workspace / "gpucourse.yaml").write_text(json.dumps({"node_python": str(python)}))
    silent_address = f"127.0.0.1:{take_port()}"
    for command in list_commands():
        code, words = ANSWERS[command]
        result = learner.types(*shlex.split(command.replace("gpubox:22", silent_address)), code=code)
        assert words in result.out + result.err, command


def test_settings_named_on_the_any_gpu_page_exist() -> None:
    names = [
        line.partition(":")[0] for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
    ]
    assert names
    assert set(names) <= set(Settings.model_fields)


def test_pip_is_given_no_index_of_cpu_builds() -> None:
    lines = [line.split() for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    (words,) = [words for words in lines if "install" in words]
    assert words[1:] == ["install", "--editable", "'.[local]'"]
