from __future__ import annotations

import pytest

from gpucourse.model.plan import BatchFile


@pytest.mark.parametrize(
    ("values", "name", "rows"),
    [
        ({}, "job.sbatch", 1),
        ({"copies": 3}, "job.sbatch", 3),
        ({"tasks": 4}, "job.sbatch", 4),
        ({"tasks": 4, "numbers": (1, 3)}, "job.sbatch", 2),
        ({"script": "mine.sh"}, "mine.sh", 1),
    ],
)
def test_batch_file_has_a_row_for_each_job_or_task(values: dict[str, object], name: str, rows: int) -> None:
    file = BatchFile(name="job", text="", **values)  # type: ignore[arg-type]
    assert (file.file_name, file.rows) == (name, rows)
