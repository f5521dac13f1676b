"""The daemons of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local.machines.daemons import PID_FILES, find_process


@pytest.mark.parametrize(
    ("stat", "pid"), [("7 (slurmd) S 1", 7), ("7 (slurmd) Z 1", None), ("7 (another) S 1", None), ("", None)]
)
def test_find_process_reads_the_pid_file_of_a_machine(tmp_path: Path, stat: str, pid: int | None) -> None:
    assert find_process("slurmd", str(tmp_path)) is None
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/stat").write_text(stat)
    (tmp_path / "run").mkdir()
    Path(f"{tmp_path}{PID_FILES['slurmd']}").write_text("7\n")
    assert find_process("slurmd", str(tmp_path)) == pid
