"""The batch script that module 0 explains: what each node would start."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gpucourse.course.locate import find_course
from tests.waiting import STUCK_S

FOLDER = "00-local-foundations"
SCRIPTS = find_course({}).exercises / FOLDER
SBATCH = SCRIPTS / "annotated.sbatch"
STUBS = {
    "scontrol": '#!/bin/sh\n[ "$*" = "show hostnames gpu[01-02]" ] && printf "gpu01\\ngpu02\\n"\n',
    "srun": '#!/bin/sh\n[ "$1" = --kill-on-bad-exit=1 ] && shift\nfor n in 0 1; do SLURM_NODEID=$n "$@" || exit 1; done\n',
    "python": '#!/bin/sh\necho "$OMP_NUM_THREADS threads, $SRUN_CPUS_PER_TASK cores: $*"\n',
}


def test_sbatch_file_starts_torchrun_on_each_node(tmp_path: Path) -> None:
    """With stand-ins for scontrol, srun and python: what each node would start, word for word."""
    for name, text in STUBS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "gpu[01-02]", "SLURM_JOB_ID": "1234567",
        "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4", "SLURM_CPUS_PER_TASK": "16",
    }  # fmt: skip
    result = subprocess.run(
        ["bash", str(SBATCH)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=STUCK_S
    )
    assert result.returncode == 0, result.stderr
    common = "--nproc-per-node=4 --master-addr=gpu01 --master-port=24567 local_ddp.py --epochs=3"
    start_of = "4 threads, 16 cores: -m torch.distributed.run --nnodes=2"
    assert result.stdout.splitlines() == [f"{start_of} --node-rank={node} {common}" for node in (0, 1)]
    wishes = [line for line in SBATCH.read_text(encoding="utf-8").splitlines() if line.startswith("#SBATCH")]
    assert len(wishes) == 8
