from __future__ import annotations

from pathlib import Path

from gpucourse.context import Context
from gpucourse.runs.resolve import RunRequest, resolve
from tests.unit.runs.test_prepare import lab


def test_resolve_of_a_script_takes_any_lab_and_first_that_of_module_3(context: Context, tmp_path: Path) -> None:

    def find(target: str | None = None) -> str:
        return resolve(context, RunRequest(exercise="3.1", script=tmp_path / "own.py", target=target)).lab.id

    assert find() == "3", "no lab is there: module 3's is asked for"
    lab(context, 1, module="0")
    assert find() == "0"
    assert find("aws") == "3"
    lab(context, 2)
    assert find() == "3"
