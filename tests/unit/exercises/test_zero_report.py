"""The rows of 6.2: one for each stage of ZeRO, and figures over all stages."""

from __future__ import annotations

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "06-training-at-scale"


@needs_torch
def test_describe_stage_has_the_mean_and_the_fullest_rank() -> None:
    zero_report = beside_the_script(FOLDER, "zero_report")
    shapes = [(3, 2), (2,)]  # 8 numbers on two ranks: 2 + 1 rows and 1 + 1, so 8 + 2 with padding
    held = [
        {"weights": (size, 20), "between": (size, 20), "gradients": (size, 20), "moments": (2 * size, 2 * size)}
        for size in (20, 12)
    ]
    counted = {"whole": {"all_gather": 80, "reduce_scatter": 40}, "ring": 60.0, "calls": {"all_gather": 2, "reduce_scatter": 1}}
    stage_3 = zero_report.describe_stage(3, held, counted, shapes)
    assert (stage_3["torch_off_bytes"], stage_3["torch_sent_off_bytes"]) == (0, 0)
    assert (stage_3["state_bytes"], stage_3["more_on_fullest_bytes"]) == (64, 16)
    assert stage_3["sent_explained_bytes"] == 12, "two numbers of padding in three collectives, half of each is sent"
    wrong = zero_report.describe_stage(3, [held[0], held[0]], counted | {"whole": {"all_gather": 40}}, shapes)
    assert (wrong["torch_off_bytes"], wrong["torch_sent_off_bytes"]) == (16, 80)
