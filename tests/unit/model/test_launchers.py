from __future__ import annotations

from gpucourse.model.launchers import find_traits, list_choices, list_launchers


def test_list_launchers_has_the_terminal_and_list_choices_leaves_it_out() -> None:
    assert list_choices() == ("python", "torchrun", "mpi", "accelerate", "slurm")
    assert list_launchers(lambda traits: traits.by_slurm) == ("slurm", "slurm-pty")


def test_find_traits_of_a_launcher_of_another_version_has_none() -> None:
    assert find_traits("from-a-newer-version").title == ""
