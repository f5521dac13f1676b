from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.learning import Learning, deploy
from tests.waiting import STUCK_S


def test_status_watch_repeats_until_ctrl_c(learning: Learning) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "gpucourse", "status", "--watch"]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        assert process.wait(STUCK_S) == 130
    assert lines.count("Nothing is deployed.\n") > 1, "shown anew"


def test_status_names_a_lab_that_does_not_answer(learning: Learning) -> None:
    deploy(learning)
    (lab,) = learning.types("status", "--json").document["stacks"]
    assert (lab["deployment"]["stack"], lab["healthy"], lab["active_runs"]) == ("01-local", False, [])
    assert "01-local" in learning.types("status").out


def test_status_and_next_name_damaged_settings(learning: Learning) -> None:
    settings = learning.workspace / "gpucourse.yaml"
    learning.types("next")
    settings.write_text("target: [1,\n")
    assert "is not YAML" in learning.types("status").err
    assert "is not YAML" in learning.types("next").err
    settings.write_text("target: moon\n")
    assert f"fix {settings}" in learning.types("status", "--json").document["warnings"][0]
