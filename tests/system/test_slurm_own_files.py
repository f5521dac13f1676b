"""Batch files of the learner's own on a real Slurm: as other people write them, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.system import slurm
from tests.system.cli import Learner

pytestmark = pytest.mark.system


def write(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    return str(path)


def find_outputs(cluster: Learner) -> dict[str, str]:
    """What was collected, by its name."""
    folder = cluster.run_folder() / "outputs" / "node0"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_shell_file_with_sbatch_lines_and_an_error_file(cluster: Learner, tmp_path: Path) -> None:
    lines = (
        '#SBATCH --job-name="two words" # of mine',
        "#SBATCH --nodes=1 --ntasks=2",
        "#SBATCH --output=logs/%x.%N.out",
        "#SBATCH --error logs/%j.err",
        "module load cuda/12.1",
        'echo "$SLURM_JOB_NAME|$SLURM_NTASKS|$TMPDIR|$TRITON_CACHE_DIR"',
        "touch $TMPDIR/left",
        "python -c \"import os; raise ValueError('no such model')\"",
    )
    ran = cluster.types("run", "--script", write(tmp_path, "train it.sh", *lines), code=4)
    assert "[script-error]" in ran.out
    assert "ValueError: no such model" in ran.out
    assert "without a traceback" not in ran.out
    outputs = find_outputs(cluster)
    (name,) = outputs
    assert name.startswith("logs/")
    assert "ValueError: no such model" in outputs[name]
    log = next(cluster.run_folder().glob("logs/*-rank0.log")).read_text()
    assert "ValueError: no such model" in log
    job_name, tasks, temporary, cache = log.splitlines()[0].split("|")
    assert (job_name, tasks) == ("two words", "2")
    jobs = Path(temporary).parent
    assert cache == str(jobs / "cache" / "triton")
    assert jobs.name == ".gpucourse"
    assert slurm.on_head(cluster, f"ls -d {temporary}", code=None) == ""
    planned = cluster.types("run", "--script", str(tmp_path / "train it.sh"), "--dry-run").out
    assert "1 node of the partition gpu, 2 processes in all" in " ".join(planned.split())


@pytest.mark.parametrize(
    ("lines", "symptom", "words"),
    [
        (("#SBATCH -N 1", "module load cuda", "mpirun -np 2 ./a.out"), "no-modules", "module: command not found"),
        (("#SBATCH -N 1", 'echo "never closed'), "shell-syntax", "unexpected EOF while looking for matching"),
    ],
)
def test_what_the_shell_says_is_shown(
    cluster: Learner, tmp_path: Path, lines: tuple[str, ...], symptom: str, words: str
) -> None:
    ran = cluster.types("run", "--script", write(tmp_path, "job.sh", *lines), code=4)
    assert f"[{symptom}]" in ran.out
    assert words in ran.out


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("#SBATCH --array=0-5000",), "the highest is its MaxArraySize less one"),
        (("#SBATCH -N 1", "#SBATCH hetjob", "#SBATCH -N 2"), "is a heterogeneous job (line 3: #SBATCH hetjob)"),
        (("#SBATCH --nodes='2",), "Unmatched `'` in"),
        (("torchrun train.py",), "is a shell script without lines for sbatch"),
    ],
)
def test_what_is_refused_with_the_right_words(cluster: Learner, tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    said = cluster.types("run", "--script", write(tmp_path, "job.sh", *lines), code=None)
    assert said.code in {2, 3}
    assert words in " ".join(said.err.split())


def test_an_array_of_many_tasks_with_one_that_fails(cluster: Learner, tmp_path: Path) -> None:
    lines = (
        "#SBATCH --array=0-78:2%4",
        "#SBATCH --output=%A-%a.txt",
        'echo "task $SLURM_ARRAY_TASK_ID"',
        'if [ "$SLURM_ARRAY_TASK_ID" = 6 ]; then exit 3; fi',
    )
    ran = cluster.types("run", "--script", write(tmp_path, "array.sh", *lines), code=4)
    rows = cluster.newest_run()["slurm"]["jobs"]
    numbers = [int(job["job"].partition("_")[2]) for job in rows]
    assert numbers == list(range(0, 79, 2))
    assert [job["code"] for job in rows] == [3 if number == 6 else 0 for number in numbers]
    logs = {path.name.rpartition("rank")[2]: path.read_text() for path in cluster.run_folder().glob("logs/*-rank*.log")}
    assert logs == {f"{row}.log": f"task {number}\n" for row, number in enumerate(numbers)}
    assert f"job {rows[3]['job']} FAILED" in " ".join(ran.out.split())
    assert "of 40 jobs: " in next(cluster.run_folder().glob("logs/*-launcher.log")).read_text()


def test_what_jobs_write_that_a_job_submitted_is_collected_later(cluster: Learner, tmp_path: Path) -> None:
    """The last of this file: it destroys the lab."""
    wait = "while [ ! -e go ]; do sleep 0.1; done; echo first > first.txt"
    chain = f'first=$(sbatch --parsable --job-name=first --wrap "{wait}")'
    last = "sbatch --dependency=afterok:$first --job-name='the last' --wrap 'echo last > last.txt; sleep 600'"
    ran = cluster.types("run", "--script", write(tmp_path, "chain.sh", "#SBATCH -N 1", chain, last, "echo all > all.txt"))
    record = cluster.newest_run()
    later = [(job["job"], job["name"]) for job in record["slurm"]["later"]]
    assert [name for _, name in later] == ["first", "the last"]
    shown = " ".join(ran.out.split())
    assert f"2 jobs still running, submitted by this run: {later[0][0]} first, {later[1][0]} the last" in shown
    assert {"all.txt"} <= set(find_outputs(cluster))
    work = slurm.on_head(cluster, f"scontrol show job {later[0][0]} | sed -n 's/.*WorkDir=//p'").strip()
    slurm.on_head(cluster, f"touch {work}/go")
    slurm.eventually(cluster, "last.txt", f"ls {work}")
    told = cluster.types("logs", record["id"])
    assert f"1 job still running, submitted by this run: {later[1][0]} the last" in " ".join(told.err.split())
    assert find_outputs(cluster)["first.txt"] == "first\n"
    (cluster.run_folder() / "outputs/node0/last.txt").unlink(missing_ok=True)
    ended = cluster.types("destroy", "2", "--yes")
    assert "ending 1 job that its own jobs submitted" in " ".join(ended.err.split())
    assert find_outputs(cluster)["last.txt"] == "last\n"
    record = cluster.newest_run()
    assert (record["slurm"]["later"], record["collected"], record["state"]) == ([], True, "succeeded")
    seals: dict[str, Any] = json.loads((cluster.run_folder() / "hashes.json").read_text())
    assert "outputs/node0/last.txt" in seals["sha256"]
