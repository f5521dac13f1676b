from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.model.plan import LaunchPlan, NodeCommand, Upload
from gpucourse.ui.views import plan
from tests.unit.ui.examples import node, text
from tests.waiting import STUCK_S

AWKWARD = [
    "it's",
    'say "hi"',
    "$(touch owned)",
    "`x`",
    "a b",
    "",
    "line\nbreak",
    "tab\there",
    "\x1b[31m",
    "~",
    "*",
    "日本 ✓",
    "a\\b",
    "x\\n\n",
]


def launch_plan() -> LaunchPlan:
    commands = tuple(
        NodeCommand(
            node=node(number),
            argv=("printf", "%s\\0", *AWKWARD),
            env={"RANK_HINT": str(number), "AWKWARD": "it's $HOME\n"},
            ranks=(2 * number, 2 * number + 1),
        )
        for number in range(2)
    )
    return LaunchPlan(
        run_id="dry-run", exercise="3.1", launcher="torchrun", mode="local", script="hello.py",
        parameters={"note": "two\nlines"}, commands=commands, uploads=(Upload(name="hello.py", source=Path("/w/hello.py")),),
        master_address="127.0.0.1", master_port=29500, timeout_s=600.0, collective_timeout_s=120.0, outputs=("*.csv",),
    )  # fmt: skip


def test_launch_names_every_node_and_what_it_starts() -> None:
    view = plan.launch(launch_plan())
    output = text(view)
    assert view.mode == "local"
    for words in (
        "node0 (head, learner@127.0.0.1:2200): ranks 0 to 1",
        "node1 (worker, learner@127.0.0.1:2201): ranks 2 to 3",
        "127.0.0.1:29500",
        "RANK_HINT=1 \\",
        "10 min, a collective 2 min",
        "hello.py  ·  /w/hello.py",
        "*.csv",
        "at most 20,000 files and 10.0 GiB, 1.0 GiB per file, 1.0 GiB per log",
    ):
        assert words in output, words
    assert output.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("parameters", "own_script", "count"),
    [({}, "", 4), ({"ranks_per_node": 4}, "", 16), ({"ranks_per_node": 4}, "mine.py", 4)],
)
def test_launch_counts_the_ranks_that_an_exercise_forks(parameters: dict[str, object], own_script: str, count: int) -> None:
    shown = text(plan.launch(replace(launch_plan(), parameters=parameters, own_script=own_script)))
    assert re.search(rf"ranks +{count} on 2 nodes", shown)


def test_launch_shows_commands_that_can_be_pasted_into_a_shell() -> None:
    output = text(plan.launch(launch_plan()))
    pasted = output.split("ranks 0 to 1\n")[1].split("\n\n")[0]
    process = subprocess.run(["bash", "-c", pasted], capture_output=True, check=True, timeout=STUCK_S)
    assert process.stdout.decode().split("\0")[:-1] == AWKWARD
    environment = pasted.replace("printf '%s\\0'", "printenv AWKWARD #")
    result = subprocess.run(["bash", "-c", environment], capture_output=True, check=True, timeout=STUCK_S)
    assert result.stdout == b"it's $HOME\n\n"
