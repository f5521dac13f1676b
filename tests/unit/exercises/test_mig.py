"""The rules of MIG: where a driver accepts an instance."""

from __future__ import annotations

from tests.unit.exercises.scripts import beside_the_script

mig = beside_the_script("07-hpc-systems", "mig")


def test_find_problems_keeps_the_driver_table_of_an_a100() -> None:
    card = mig.CARDS["a100-80"]
    starts = {profile.name: profile.starts for profile in card.profiles}
    assert starts["3g.40gb"] == (0, 4)
    assert starts["2g.20gb"] == (0, 2, 4)
    assert mig.find_problems(card, ["3g.40gb", "3g.40gb"], [(0, 0), (0, 2)]), "3g at 0 and 2 overlap, and 2 is forbidden"
    assert mig.find_problems(card, ["4g.40gb"], [(0, 4)]) == ["4g.40gb cannot begin at 4, only at 0"]
    assert list(mig.draw(card, ["2g.20gb", "3g.40gb"], [(0, 0), (0, 4)])) == ["GPU 0  2g 2g  .  . 3g 3g 3g 3g"]
