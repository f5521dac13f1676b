"""The judges of module 2: batch files that are right in another way pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer

FOLDER = Path(__file__).parent.parent.parent.parent / "exercises" / "02-slurm"
HEAD = """#!/bin/bash
#SBATCH -p gpu --gres=gpu:1 -t 10 -o logs/%j-%N.out
source ./setup.sh
"""
TWO = HEAD.replace("-p gpu", "-p gpu -N 2")
MEET = """export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
"""
RANKED = "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID"
LOGGED = "srun -K -o logs/%N-rank%t.log"
ARRAY = HEAD.replace("-o logs/%j-%N.out", "-a 0-3%2 -o logs/%A_%a-%N.out")
FOLLOW = """ms=$(cat outputs/product-ms-$SLURM_JOB_ID.txt)
limit=$(python -c "print(f'0:{{float($ms) // 60 + 2:.0f}}:30')")
next=$(sbatch --parsable -d afterok:$SLURM_JOB_ID -p gpu --gpus=1 -t $limit -o outputs/%j.out --wrap="
  . ./setup.sh
  python work/first_job.py $* --products=1000")
cd work && python next_job.py {}
"""
COMPARE = """ || exit
if ((SLURM_ARRAY_TASK_ID == SLURM_ARRAY_TASK_MIN)); then
  n=$(sbatch --parsable -d afterok:$SLURM_ARRAY_JOB_ID --kill-on-invalid-dep=yes -p gpu -t 5 -o outputs/%j.out --wrap="
    . ./setup.sh; python work/gather.py $* --print-only")
  python {}gather_job.py $n
fi
"""


def judge_text(judge: Judge, folder: Path, name: str, text: str) -> JudgeAnswer:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return judge.judge(FOLDER / "judges" / f"{file.stem}.py", file, torch=False, limit_s=20.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("my_job.sbatch", HEAD + 'python work/first_job.py "$@" || { echo "failed"; exit 1; }\n' + FOLLOW.format("$next")),
        ("my_job.sbatch", HEAD.replace("source", "set -e\nsource") + 'srun python "$(readlink -f work)"/first_job.py "$@"\n'
         + FOLLOW.format("$next")),
        ("my_job.sbatch", HEAD.replace("-p gpu", "--part gpu -n1") + "python3 -u work/first_job.py $* &\nwait $! || exit $?\n"
         + FOLLOW.format("${next%%;*}")),
        ("my_multi_node.sbatch", TWO + MEET + "srun -n $SLURM_NNODES python work/check_machine.py && "
         + f"{LOGGED} bash -c '{RANKED}; exec python work/multi_node.py \"$@\"' x \"$@\"\n"),
        ("my_array.sbatch", ARRAY + 'v=$(echo 0.0005,1e-3,.002,0.004 | cut -d, -f$((SLURM_ARRAY_TASK_ID + 1)))\n'
         'python work/sweep.py "$@" --values $v' + COMPARE.format("work/")),
        ("my_array.sbatch", ARRAY + 'case $SLURM_ARRAY_TASK_ID in\n0) v=0.0005;; 1) v=0.001;; 2) v=0.002;; *) v=0.004;; esac\n'
         'cd work && python sweep.py "$@" --values=$v' + COMPARE.format("")),
    ],
)  # fmt: skip
def test_batch_file_that_is_right_in_another_way_passes(judge: Judge, tmp_path: Path, name: str, text: str) -> None:
    verdict = judge_text(judge, tmp_path, name, text)
    assert (verdict.word, verdict.says) == ("passed", "")
