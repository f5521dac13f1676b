from __future__ import annotations

from dataclasses import replace

from gpucourse.ui.views import checks
from tests.unit.ui.examples import RESULTS, VERDICT


def test_list_open_checks_names_the_first_and_counts_the_others() -> None:
    long_verdict = replace(VERDICT, checks=RESULTS[1:2] * 9 + RESULTS[3:] * 9)
    lines = [cell.text for cell in checks.list_open_checks(long_verdict)]
    assert lines[0] == "✗ The sum: 2; expected 3 [sum]"
    assert "✗ and 6 more did not pass" in lines
    assert lines[-2:] == ["– Bandwidth: not measured, needs a GPU", "– and 7 more were not measured"]
    compared_check = replace(RESULTS[1], expected="2 ranks (plan.world_size)")
    lines = [cell.text for cell in checks.list_open_checks(replace(VERDICT, checks=(compared_check,)))]
    assert lines[0] == "✗ The sum: 2; expected 2 ranks (the planned world size) [sum]"
    assert checks.list_open_checks(long_verdict, "counts")[-1].text == "– 9 checks not measured: needs a GPU"
