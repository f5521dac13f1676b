from __future__ import annotations

from gpucourse.model.launcher import LAUNCHERS, find_traits, list_choices, list_launchers


def test_find_traits_of_a_launcher_that_is_not_installed_has_none() -> None:
    assert {find_traits(name).title for name in LAUNCHERS}.isdisjoint({""})
    foreign = find_traits("from-a-newer-version")
    assert (foreign.title, foreign.by_slurm, foreign.packages) == ("", False, ())


def test_list_choices_leaves_out_the_terminal() -> None:
    assert list_choices() == ("python", "torchrun", "slurm")
    assert list_launchers(lambda traits: traits.by_slurm) == ("slurm", "slurm-pty")
