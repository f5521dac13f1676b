from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.cli.conftest import Answer


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("3.2 --checks c.yaml", "--checks is for a script of your own", "gpucourse run --script FILE --checks FILE"),
        ("--script x.py --checks none.yaml", "--checks none.yaml: No such file", "name a YAML file"),
        ("3.2 --env RANK=1", "--env RANK: gpucourse, the launcher or Slurm sets it", "the launcher numbers the ranks"),
        ("3.2 --env 1A=x", "--env '1A': not the name of a variable", "--env NCCL_DEBUG=INFO"),
        ("3.2 --env A=1 --env A=2", "--env A was typed twice", "type A once"),
        ("3.2 --env PYTHONPATH=/mine", "--env PYTHONPATH changes which code runs", "a script of your own: --script FILE"),
        (
            "3.2 --env PET_MAX_RESTARTS=2",
            "--env PET_MAX_RESTARTS: gpucourse, the launcher",
            "run --torchrun '--max-restarts=2'",
        ),
        ("3.2 --env NOT_SET_HERE", "no variable of that name is set here", "export NOT_SET_HERE=... first"),
        ("3.2 --torchrun --nnodes=2", "--torchrun: gpucourse sets --nnodes itself", "gpucourse run --nodes 2"),
    ],
)
def test_run_options_refuse_wrong_combinations(type_line: Callable[..., Answer], words: str, message: str, hint: str) -> None:
    answer = type_line("run", *words.split())
    assert answer.code == 2
    assert message in answer.err
    assert hint in answer.err
