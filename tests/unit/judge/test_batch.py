"""The judges of module 2: batch files that are right in another way pass, and more wrong ones get a reason that helps."""

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
TASK = "$SLURM_ARRAY_TASK_ID"
LOGGED = "srun -o logs/%N-rank%t.log"
ARRAY = HEAD.replace("-o logs/%j-%N.out", "-a 0-3%2 -o logs/%A_%a-%N.out")


def judge_text(judge: Judge, folder: Path, name: str, text: str) -> JudgeAnswer:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return judge.judge(FOLDER / "judges" / f"{file.stem}.py", file, torch=False, limit_s=20.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("my_job.sbatch", HEAD + 'python work/first_job.py "$@"\n'),
        ("my_job.sbatch", HEAD.replace("-p gpu", "--part gpu -n1 -J mine") + "cd work\npython3 -u first_job.py $*\n"),
        ("my_job.sbatch", HEAD + 'python work/first_job.py --seconds=2 --size=64 || { echo "failed"; exit 1; }\n'),
        ("my_job.sbatch", HEAD + 'python work/first_job.py "$@" &\nwait $!\n'),
        ("my_job.sbatch", HEAD.replace("source", "set -e\nsource") + 'cd work\nsrun python "$PWD"/first_job.py "$@"\necho\n'),
        ("my_multi_node.sbatch", TWO + MEET + f"{LOGGED} bash -c '{RANKED}; exec python work/multi_node.py \"$@\"' x \"$@\"\n"),
        (
            "my_multi_node.sbatch",
            TWO.replace("-N 2", "--nodes=2 --ntasks-per-node=1 --gpus-per-task=1").replace("--gres=gpu:1", "")
            + "MASTER_ADDR=`scontrol show hostnames $SLURM_NODELIST | sed -n 1p`\n"
            + "export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
            + f'{LOGGED} --nodes=$SLURM_NNODES --ntasks $SLURM_NTASKS bash -c "{RANKED.replace("$", chr(92) + "$")}; '
            + 'exec python -u work/multi_node.py $*"\n',
        ),
        ("my_array.sbatch", ARRAY + 'v=$(echo 0.0005,1e-3,.002,0.004 | cut -d, -f$((SLURM_ARRAY_TASK_ID + 1)))\n'
         'python work/sweep.py "$@" --values $v\n'),
        ("my_array.sbatch", ARRAY + 'case $SLURM_ARRAY_TASK_ID in\n0) v=0.0005;; 1) v=0.001;; 2) v=0.002;; *) v=0.004;; esac\n'
         'cd work && python sweep.py "$@" --values=$v\n'),
        ("my_array.sbatch", ARRAY.replace("0-3%2", "0,1,2-3%2") + 'set -- "$@" 0.0005 0.001 0.002 0.004\n'
         'shift_to=$(($# - 3 + SLURM_ARRAY_TASK_ID))\npython work/sweep.py "${@:1:$#-4}" --values="${!shift_to}"\n'),
        ("my_srun.sh", "srun -p gpu --gpus=1 -t 0:30:00 --pty bash -i\n"),
        ("my_srun.sh", "#!/bin/bash\nsrun --nodes=1 --ntasks=1 --time 30:00 --gres gpu:1 --pty --partition gpu -- bash\n"),
    ],
)  # fmt: skip
def test_judge_passes_a_batch_file_that_is_right_in_another_way(judge: Judge, tmp_path: Path, name: str, text: str) -> None:
    verdict = judge_text(judge, tmp_path, name, text)
    assert (verdict.word, verdict.says) == ("passed", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("my_job.sbatch", HEAD.removeprefix("#!/bin/bash\n"), "line must begin with #!"),
        ("my_job.sbatch", HEAD.replace("/bin/bash", "/bin/bush") + "echo\n", "/bin/bush cannot be started"),
        ("my_job.sbatch", HEAD.replace("--gres", "--gress") + "echo\n", "no option --gress"),
        ("my_job.sbatch", HEAD.replace("-t 10", "-t 00:10") + "echo\n", "asks for 0.166667 minutes"),
        ("my_job.sbatch", HEAD.replace("logs/", "") + "echo\n", "expected logs/4711-node1.out"),
        ("my_job.sbatch", HEAD, "never runs work/first_job.py"),
        ("my_job.sbatch", HEAD + "pyton work/first_job.py\n", "pyton: command not found"),
        ("my_job.sbatch", HEAD + "while true; do :; done\n", "did not end within 3 s"),
        ("my_job.sbatch", HEAD + "python work/first_job.py $* &\n", "is started in the background"),
        ("my_job.sbatch", HEAD.replace("source ./setup.sh\n", "python work/first_job.py $*\n"), "without what setup.sh sets"),
        ("my_multi_node.sbatch", TWO.replace("-N 2", "-N 2 -n 2") + "echo\n", "asks for 2 processes on 3 machines"),
        ("my_multi_node.sbatch", TWO + MEET + f"{LOGGED} python work/multi_node.py $*\n", "RANK is not set"),
        (
            "my_multi_node.sbatch",
            TWO + MEET.replace("$(hostname)", "localhost") + f"{LOGGED} bash -c '{RANKED}; python work/multi_node.py'\n",
            "MASTER_ADDR was localhost",
        ),
        ("my_array.sbatch", ARRAY.replace("%2", "%3") + "echo\n", "lets 3 tasks run at the same time"),
        ("my_array.sbatch", ARRAY + 'python work/sweep.py "$@"\n', "got the whole list"),
        ("my_array.sbatch", ARRAY + f'r=(0.001 0.0005 0.002 0.004); python work/sweep.py $* --values=${{r[{TASK}]}}\n',
         "--values was 0.001; expected 0.0005"),
        ("my_srun.sh", "srun -p gpu -G1 -t30 --pty\n", "does not know what to start"),
        ("my_srun.sh", "srun -p gpu -G1 -t30 --pty python\n", "expected a shell"),
        ("my_srun.sh", "salloc -p gpu -G1 -t30\n", "salloc opens no shell"),
    ],
)  # fmt: skip
def test_judge_says_what_is_wrong_with_a_batch_file(judge: Judge, tmp_path: Path, name: str, text: str, reason: str) -> None:
    verdict = judge_text(judge, tmp_path, name, text)
    assert verdict.word == "failed"
    assert reason in verdict.says
