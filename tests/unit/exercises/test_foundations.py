"""What the exercises of module 0 are on, without torch: the text and its dice, the question, the batch script."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S

FOLDER = "00-local-foundations"
SCRIPTS = find_course({}).exercises / FOLDER
SBATCH = SCRIPTS / "annotated.sbatch"
LESSON = find_course({}).modules / FOLDER / "lesson.md"


def test_the_text_is_what_its_grammar_writes_and_every_sum_in_it_is_right() -> None:
    stories = beside_the_script(FOLDER, "stories")
    text, floor = stories.write()
    assert (SCRIPTS / "stories.txt").read_text(encoding="utf-8") == text
    for line in text.splitlines():
        words_of = line.split()
        has, gives, keeps = (stories.NUMBERS.index(words_of[place].rstrip(".")) for place in (2, 6, -1))
        assert has - gives == keeps
    assert floor == pytest.approx(0.1034, abs=1e-4), "the lesson says so"
    assert (len(text), len(set(text))) == (39295, 30)


def test_the_dice_count_what_they_bring() -> None:
    dice = beside_the_script(FOLDER, "stories").Dice(0)
    for _ in range(10):
        dice.one_of("ab")
    assert dice.nats == pytest.approx(10 * math.log(2))


def test_questions_are_generated_and_answers_are_judged() -> None:
    challenge = beside_the_script(FOLDER, "challenge")
    assert challenge.Question(node=3, nodes=4, gpus=8).holds(24, 31)
    asked = [challenge.ask(number) for number in range(1, 200)]
    assert len({str(question) for question in asked}) > 50
    assert challenge.ask(7) == challenge.ask(7)
    for question in asked:
        ranks = [node for node in range(question.nodes) for _ in range(question.gpus)]
        mine = [rank for rank, node in enumerate(ranks) if node == question.node]
        assert question.holds(mine[0], mine[-1])
        assert not question.holds(mine[0] + 1, mine[-1])
        assert not question.holds(mine[0], mine[-1] + 1)
    for text in ("24-31", " 24 - 31 ", "24..31", "24 to 31", "24–31"):
        assert challenge.read(text) == (24, 31)
    assert challenge.read("5") == (5, 5)
    verdicts = [challenge.judge(1, answer)["right"] for answer in ("", " ", "4-7", "4-8")]
    assert verdicts == [None, None, True, False], "an answer that was not given is neither right nor wrong"
    for text in ("", "all", "24-", "-24", "24,31", "1-2-3", "0x18-0x1f", "9" * 7):
        with pytest.raises(ValueError, match="not a range of ranks"):
            challenge.read(text)


STUBS = {
    "scontrol": '#!/bin/sh\n[ "$*" = "show hostnames gpu[01-02]" ] && printf "gpu01\\ngpu02\\n"\n',
    "srun": '#!/bin/sh\n[ "$1" = --kill-on-bad-exit=1 ] && shift\nfor n in 0 1; do SLURM_NODEID=$n "$@" || exit 1; done\n',
    "python": '#!/bin/sh\necho "$OMP_NUM_THREADS threads, $SRUN_CPUS_PER_TASK cores: $*"\n',
}


def test_the_sbatch_file_starts_what_it_says(tmp_path: Path) -> None:
    """With stand-ins for scontrol, srun and python: what each node would start, word for word."""
    for name, text in STUBS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "gpu[01-02]", "SLURM_JOB_ID": "1234567",
        "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4", "SLURM_CPUS_PER_TASK": "16",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(SBATCH)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=STUCK_S
    )
    assert done.returncode == 0, done.stderr
    common = "--nproc-per-node=4 --master-addr=gpu01 --master-port=24567 local_ddp.py --epochs=3"
    start_of = "4 threads, 16 cores: -m torch.distributed.run --nnodes=2"
    assert done.stdout.splitlines() == [f"{start_of} --node-rank={node} {common}" for node in (0, 1)]
    wishes = [line for line in SBATCH.read_text(encoding="utf-8").splitlines() if line.startswith("#SBATCH")]
    assert len(wishes) == 8


def test_every_line_of_the_sbatch_file_is_explained() -> None:
    lesson, script = LESSON.read_text(encoding="utf-8"), SBATCH.read_text(encoding="utf-8")
    for wish in (line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH")):
        assert f"`{wish}`" in lesson
