"""A prediction is requested at a terminal, stored before the run begins, and shown beside the measurement."""

from __future__ import annotations

import pytest

from gpucourse.learning.evidence import gather
from gpucourse.model.record import GivenPrediction
from tests.learning import FOLDER, METRICS, Learning

PREDICT = "{id: faster, text: How much faster will it be?, value: metrics.speedup, unit: times, tolerance_percent: 10}"


DIRECTION = """{id: faster, text: Will it be twice as fast?, value: metrics.speedup, unit: times,
      options: ["less: a", "more: b", "less: c"], ranges: {a: [null, 2], b: [2, 3]}, explanation: Half of it is the sea.}"""


def ask_for_prediction(learning: Learning, prediction: str = PREDICT) -> None:
    """Make exercise 1.1 ask for a prediction."""
    manifest = learning.course / f"modules/{FOLDER}/module.yaml"
    tasks = "    tasks: [Walk upstream., Note the day.]\n"
    text = manifest.read_text().replace("    no_predict: Nobody knows a river before.\n", "", 1)
    manifest.write_text(text.replace(tasks, f"    predict: {prediction}\n{tasks}"))
    learning.context = learning.open_context()


@pytest.fixture
def learning(learning: Learning, request: pytest.FixtureRequest) -> Learning:
    ask_for_prediction(learning, getattr(request, "param", PREDICT))
    return learning


def test_list_predictions_puts_the_prediction_beside_the_measurement(learning: Learning) -> None:
    record = learning.record(prediction=GivenPrediction(id="faster", answer="1.5"))
    output = " ".join(learning.types("show", "1.1", "--run", record.id).out.split())
    assert "predicted ✗ 1.5 times, measured 1.9 times: off by -21.1 %" in output
    whole = " ".join(learning.types("show", "1.1", "--run", record.id, "--verbose").out.split())
    assert "Your prediction predicted 1.5 times measured 1.9 times result ✗ off by -21.1 %" in whole
    document = learning.types("show", "1.1", "--run", record.id, "--json").document
    assert document["run"]["prediction"] == {"id": "faster", "answer": "1.5"}
    assert document["prediction"]["difference"] == "-21.1 %"
    assert "is a run of 1.1, not of 1.2" in learning.types("show", "1.2", "--run", record.id, code=2).err


def test_judge_predictions_counts_less_after_a_wrong_one(learning: Learning) -> None:
    def share(*runs: tuple[str | None, int]) -> float | None:
        for answer, depth in runs:
            prediction = None if answer is None else GivenPrediction(id="faster", answer=answer)
            learning.record(prediction=prediction, parameters={"depth": depth})
        evidence = gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False)
        assert evidence.prediction is not None
        return evidence.prediction.share

    assert share((None, 10)) is None, "open"
    assert share(("5", 20)) == 0
    assert share(("1.9", 20)) == 0.5, "a later one"
    assert share(("1.9", 30)) == 0.5, "the first right one counts"


@pytest.mark.parametrize(("depths", "share"), [((), 1.0), ((10,), 0.5), ((20,), 1.0)])
def test_judge_predictions_after_a_run_with_the_same_parameters_counts_half(
    learning: Learning, depths: tuple[int, ...], share: float
) -> None:
    for depth in depths:
        learning.record(parameters={"depth": depth})
    learning.record(prediction=GivenPrediction(id="faster", answer="1.9"), parameters={"depth": 10})
    evidence = gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False)
    assert evidence.prediction is not None
    assert evidence.prediction.share == share


def test_list_predictions_in_a_bundle_has_their_order(learning: Learning) -> None:
    for answer in ("5", "1.9", None):
        learning.record(prediction=None if answer is None else GivenPrediction(id="faster", answer=answer))
    bundle = learning.root / "work.zip"
    learning.types("grade", "--bundle", str(bundle))
    assert learning.count_answers(bundle, "1.1") == [0.5]


@pytest.mark.parametrize("learning", [DIRECTION], indirect=True)
@pytest.mark.parametrize(("answers", "share"), [("a", 1.0), ("c", -0.5), ("ca", -0.5), ("ac", 1.0)])
def test_judge_predictions_counts_the_first_direction(learning: Learning, answers: str, share: float) -> None:
    for answer in answers:
        learning.record(prediction=GivenPrediction(id="faster", answer=answer))
    evidence = gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False)
    assert evidence.prediction is not None
    assert evidence.prediction.share == share


@pytest.mark.parametrize("learning", [DIRECTION], indirect=True)
def test_list_predictions_says_which_direction_was_measured(learning: Learning) -> None:
    def show(speedup: float, *words: str) -> str:
        prediction = GivenPrediction(id="faster", answer="b")
        record = learning.record(metrics=METRICS | {"speedup": speedup}, prediction=prediction)
        return " ".join(learning.types("show", "1.1", "--run", record.id, *words).out.split())

    assert "predicted ✗ b. more: b, measured 1.9 times: a is right" in show(1.9)
    whole = show(2.5, "--verbose")
    assert "predicted b. more: b measured 2.5 times result ✓ right Half of it is the sea." in whole
    assert "measured 3.5 times: not judged: no option covers this value" in show(3.5)
