"""Exercises that need Linux refuse another system in a sentence."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

containers = beside_the_script("07-hpc-systems", "containers")
crew = beside_the_script("shared", "crew")


def test_need_linux_refuses_macos_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SystemExit, match=r"only Linux has: run 7\.4 on a Linux machine, after gpucourse deploy 7"):
        containers.need_linux()
    with pytest.raises(SystemExit, match=r"on macOS .* cannot be forked: .*--set ranks_per_node=1"):
        crew.start(2)
