from __future__ import annotations

from gpucourse.model.drill import BY_RANK, HOWS, MEANING, Attempt, InjectedFault


def test_drill_is_solved_by_one_right_diagnosis() -> None:
    fault = InjectedFault(run="otter", exercise="3.2", how="kill-rank", rank=1)
    fault.attempts.append(Attempt(how="slow-rank", rank=1, right=False, at=""))
    assert not fault.is_solved
    fault.attempts.append(Attempt(how="kill-rank", rank=1, right=True, at=""))
    assert fault.is_solved


def test_drill_has_a_meaning_for_every_fault() -> None:
    assert set(MEANING) == set(HOWS) > BY_RANK
