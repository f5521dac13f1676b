from __future__ import annotations

from gpucourse.model.slurm import LaterJob, SlurmRun
from gpucourse.ui.views import slurm
from tests.unit.ui.examples import record


def test_describe_later_names_the_first_jobs_and_counts_the_others() -> None:
    later = [LaterJob(job=str(number), name="sum") for number in range(8)]
    said = slurm.describe_later(record(slurm=SlurmRun(partition="gpu", nodes=2, gpus=0, later=later)))
    assert said.startswith("8 jobs still running, submitted by this run: 0 sum, 1 sum")
    assert said.endswith("5 sum and 2 more")
    assert slurm.describe_later(record()) == ""
