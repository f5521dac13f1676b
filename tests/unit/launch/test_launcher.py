from __future__ import annotations

import pytest

from gpucourse.launch.launcher import find_launcher


@pytest.mark.parametrize("name", ["python", "slurm"])
def test_find_launcher_refuses_options_of_torchrun_for_another_launcher(name: str) -> None:
    launcher = find_launcher(name)
    assert launcher.object_to(torchrun="", handed_on=("TOKEN",), profile=False) is None
    reason = launcher.object_to(torchrun="--max-restarts=1", handed_on=(), profile=False)
    assert str(reason) == f"--torchrun is for torchrun, but the launcher of this run is {name}"
    assert find_launcher("torchrun").object_to(torchrun="--max-restarts=1", handed_on=(), profile=False) is None
