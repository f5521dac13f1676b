from __future__ import annotations

from gpucourse.model.manifest import MetricsTable
from gpucourse.model.slurm import JobRow, LaterJob, SlurmRun
from gpucourse.ui.tables import View
from gpucourse.ui.views import slurm
from tests.unit.launch.test_planning import exercise
from tests.unit.ui.examples import record, text


def test_describe_later_names_the_first_jobs_and_counts_the_others() -> None:
    jobs = [LaterJob(job=str(number), name="sum") for number in range(8)]
    sentence = slurm.describe_later(record(slurm=SlurmRun(partition="gpu", nodes=2, gpus=0, later=jobs)))
    assert sentence.startswith("8 jobs still running, submitted by this run: 0 sum, 1 sum")
    assert sentence.endswith("5 sum and 2 more")
    assert slurm.describe_later(record()) == ""


RUN = SlurmRun(
    partition="gpu",
    nodes=2,
    gpus=0,
    jobs=[
        JobRow(row=0, job="7", file="a.sbatch", state="FAILED", reason="NonZeroExitCode", node="node1", code=3),
        JobRow(row=1, job="8", file="a.sbatch", state="CANCELLED", reason="Dependency", restarts=1, asked=True),
    ],
)


def test_jobs_of_a_failed_run_are_in_the_words_of_slurm() -> None:
    blocks = slurm.jobs(record(state="failed", slurm=RUN), None, are_measured=False)
    rows = [line.split() for line in text(View(title="", blocks=tuple(blocks))).splitlines()]
    assert ["7", "FAILED", "NonZeroExitCode", "node1", "3", "0"] in rows
    assert ["8", "CANCELLED", "(as", "requested)", "Dependency", "–", "1"] in rows


def test_jobs_are_left_out_without_slurm_or_if_the_exercise_shows_them() -> None:
    assert slurm.jobs(record(), None, are_measured=True) == []
    columns = ({"key": "job", "title": "job"},)
    table = MetricsTable.model_validate({"title": "Jobs", "rows": "metrics.slurm.jobs", "columns": columns})
    with_table = exercise().model_copy(update={"tables": (table,)})
    assert slurm.jobs(record(slurm=RUN), with_table, are_measured=True) == []
    assert slurm.jobs(record(slurm=RUN), with_table, are_measured=False), "nothing was measured, so that its table is empty"


def test_summary_counts_the_jobs_of_a_run() -> None:
    assert slurm.summary(record(launcher="slurm", slurm=RUN)) == "2 jobs, each on 2 nodes, by slurm in the partition gpu"
    assert slurm.summary(record()) == ""
