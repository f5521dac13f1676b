from __future__ import annotations

from pathlib import Path

from gpucourse.labs.here.cards import find_requirements
from tests.unit.labs.here.computer import with_python


def test_find_requirements_says_what_torch_can_use(tmp_path: Path) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"] * 2)
    [gpu] = find_requirements(context, is_selected=True)
    assert (gpu.state, gpu.detail) == ("ok", "NVIDIA L4 (2 of them); use it: gpucourse deploy 1 --target here")
    [none] = find_requirements(with_python(tmp_path, "2.11.0", []), is_selected=True)
    assert (none.state, none.mend) == ("missing", "gpucourse deploy 1 --target local")
