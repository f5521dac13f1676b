"""Judge my_training.py of 5.9: it must give the same results on new data, without any of the eight faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way

SAMPLES, EPOCHS, TOLERANCE, INPUTS_OFF = 256, 2, 1e-4, 1e-3
CPU = torch.device("cpu")
WAYS = {
    "other-steps": Way(
        "it took {steps} steps, but {epochs} epochs of {samples} samples in batches of {batch} have {right}. With "
        "fewer and larger steps, the model learns something else",
        ("split(BATCH)", "split(2 * BATCH)"),
    ),
    "skips-samples": Way(
        "{missing} of {samples} samples were not used in every epoch: doing less work is not a speed-up of the same work",
        ("out = model(x[places])", "places = places[: BATCH // 2]\n            out = model(x[places])"),
    ),
    "repeats-samples": Way(
        "{repeated} of {samples} samples were used more than once in an epoch: take them in the order of make_order",
        ("out = model(x[places])", "model(x[places])\n            out = model(x[places])"),
    ),
    "sixteen-bits": Way(
        "{percent:.0f}% of the work of matrix products is done in 16 bits. That is a different precision, but the results have "
        "to agree with float32 to 0.0001",
        (
            "            out = model(x[places])",
            "            with torch.autocast(device.type, torch.bfloat16):\n                out = model(x[places])",
        ),
    ),
    "less-precise-products": Way(
        "it lets torch multiply with fewer digits than float32 has (matmul precision '{precision}' instead of 'highest'): "
        "TF32 or bfloat16 inside each product. That is a different precision, even if the losses are close",
        ("    model = make_model()", "    torch.set_float32_matmul_precision('high')\n    model = make_model()"),
    ),
    "not-trained": Way(
        "its losses are right, but the model that it returns does not have the weights that were trained",
        ("100 * right / len(rows), model\n", "100 * right / len(rows), make_model()\n"),
    ),
    "kept-result": Way(
        "called again with other data, it returned the result of the first call: keep nothing from one call to the next",
        (
            "def train(",
            "def once(function):\n    kept = []\n\n    def call(*given):\n        if not kept:\n"
            "            kept.append(function(*given))\n        return kept[0]\n\n    return call\n\n\n@once\ndef train(",
        ),
    ),
    "kept-by-identity": Way(
        "called again with the same list, whose numbers had changed meanwhile, it returned the earlier result: it remembers a "
        "list by its id, but the id does not depend on the content",
        (
            "def train(",
            "def once(function):\n    kept = {}\n\n    def call(rows, *given):\n        if id(rows) not in kept:\n"
            "            kept[id(rows)] = rows, function(rows, *given)\n        return kept[id(rows)][1]\n\n"
            "    return call\n\n\n@once\ndef train(",
        ),
    ),
    "normalised-in-python": Way(
        "Python loops over the numbers of each sample {count:.0f} times, in {epochs} epochs. What does a later epoch compute "
        "that the first one has not?",
        (
            "out = model(x[places])",
            "out = model(torch.tensor([[(number - MEAN) / STD for number in rows[i]] for i in places]))",
        ),
    ),
    "float64": Way(
        "{count:.0f} results of each step are in float64, which takes twice the bytes, and on most GPUs 32 to 64 times as "
        "long. How precise do the results have to be?",
        (
            ".to(device).sub_(MEAN).div_(STD)\n    model = make_model().to(device)\n",
            ".to(device).sub_(MEAN).div_(STD).double()\n    model = make_model().double().to(device)\n",
        ),
    ),
    "reads-the-loss": Way(
        "{count:.3g} values are read out of tensors in each step, apart from loops over the batch: at each of them the "
        "processor waits for the GPU. Which line needs a number in Python before the end?",
        ("losses.append(loss.detach())", "losses.append(torch.tensor(loss.item()))"),
    ),
    "keeps-graphs": Way(
        "the graph of each step is still there in the next one, and in the one after that: memory grows with every step. Which "
        "of the values that you keep refers to its graph?",
        ("losses.append(loss.detach())", "losses.append(loss)"),
    ),
    "counts-in-python": Way(
        "{count:.0f} values are read out of tensors in each step, in a loop over the batch. Which of them does a step need?",
        (
            "right[epoch] += (out.argmax(dim=1) == y[places]).sum()",
            "right[epoch] += sum(int(out[k].argmax()) == int(y[places[k]]) for k in range(len(places)))",
        ),
    ),
    "copies-weights": Way(
        "{count:.0f} parameters are copied in each step. Which of these copies is used, and what else has the same weights?",
        (
            "            losses.append(",
            "            best = {name: item.clone() for name, item in model.state_dict().items()}\n            losses.append(",
        ),
    ),
    "retains-graphs": Way(
        "after backward, {count:.0f} tensors that it has used are still in memory. Who asks autograd to keep them?",
        ("loss.backward()", "loss.backward(retain_graph=True)"),
    ),
    "sums-in-python": Way(
        "{count:.0f} operations of a step come from a loop over samples. How many does one call for the whole batch need?",
        (
            "loss = nn.functional.cross_entropy(out, y[places])",
            "logs = torch.stack([out[k].log_softmax(0) for k in range(len(places))])\n"
            "            loss = nn.functional.nll_loss(logs, y[places])",
        ),
    ),
}
OF_FAULT = {
    1: "normalised-in-python", 2: "float64", 3: "reads-the-loss", 4: "keeps-graphs", 5: "counts-in-python",
    6: "copies-weights", 7: "retains-graphs", 8: "sums-in-python",
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the results, then values kept between calls, then the faults one by one."""
    import pipeline
    import training_watch

    torch.set_num_threads(1)
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: right, but slow")
    train = part.function("train")
    observation = part.call(training_watch.watch, train, SAMPLES, 1, EPOCHS, CPU, case=f"{SAMPLES} samples, {EPOCHS} epochs")
    _judge_results(part, pipeline, training_watch, observation)
    _judge_later_calls(part, pipeline, training_watch, train, observation.losses)
    for fault, way in OF_FAULT.items():
        if observation.has(fault):
            raise part.wrong(way, count=observation.counts[fault], epochs=EPOCHS)
    part.note(f"losses, accuracies and weights agree with the training as delivered, to {TOLERANCE:g}, on three sets of data")
    part.note(f"none of the 8 faults is left; {observation.operations_per_step:.0f} operations per step")


def _train_right(pipeline: Any, training_watch: Any, data: Any) -> Any:
    """Return the right losses, accuracies and weights, from a training run with all repairs except the one of float64."""
    return training_watch.convert_outcome(pipeline.train_delivered(*data, EPOCHS, CPU, set(pipeline.FAULTS) - {2}))


def _judge_results(part: Part, pipeline: Any, training_watch: Any, observation: Any) -> None:
    case = f"{SAMPLES} samples, {EPOCHS} epochs"
    losses, accuracies, weights = _train_right(pipeline, training_watch, pipeline.make_data(SAMPLES, 1))
    if not observation.steps:
        raise Verdict(
            "failed", "no-model", "no step called the model of make_model with a batch: use that model, which the judge watches"
        )
    values = {"samples": SAMPLES, "epochs": EPOCHS, "batch": pipeline.BATCH, "right": len(losses)}
    if observation.inputs_off > INPUTS_OFF:
        says = "the model did not get the samples, normalised with MEAN and STD in float32"
        raise Verdict("failed", "other-inputs", says, case)
    if observation.samples_missing:
        raise part.wrong("skips-samples", case, missing=observation.samples_missing, **values)
    if observation.samples_repeated:
        raise part.wrong("repeats-samples", case, repeated=observation.samples_repeated, **values)
    if len(observation.losses) != len(losses):
        raise part.wrong("other-steps", case, steps=len(observation.losses), **values)
    if observation.half_percent:
        raise part.wrong("sixteen-bits", case, percent=observation.half_percent)
    if (precision := torch.get_float32_matmul_precision()) != "highest":
        raise part.wrong("less-precise-products", case, precision=precision)
    _compare(observation.losses, losses, "the loss of step", "is it the same order, model and learning rate?", case)
    question = "is it in percent, and from the outputs of all steps of the epoch?"
    _compare(observation.accuracies, accuracies, "the accuracy of epoch", question, case)
    if observation.weights.shape != weights.shape or not torch.allclose(observation.weights, weights, rtol=0, atol=TOLERANCE):
        raise part.wrong("not-trained", case)


def _compare(answer: torch.Tensor, right: torch.Tensor, label: str, question: str, case: str) -> None:
    """Raise the verdict on the first different number, with a `question` about it, because nothing proves why it differs."""
    if answer.shape != right.shape:
        raise Verdict("failed", "other-results", f"{label}: {len(answer)} numbers, but {len(right)} are right", case)
    if not torch.allclose(answer, right, rtol=0, atol=TOLERANCE):
        place = int((answer - right).abs().gt(TOLERANCE).nonzero()[0])
        says = f"{label} {place} is {answer[place]:.6f}, but {right[place]:.6f} as delivered"
        raise Verdict("failed", "other-results", f"{says}: {question}", case)


def _judge_later_calls(part: Part, pipeline: Any, training_watch: Any, train: Any, earlier: torch.Tensor) -> None:
    rows, labels = pipeline.make_data(SAMPLES, 2)

    def call(case: str, *data: Any) -> tuple[torch.Tensor, bool]:
        right = _train_right(pipeline, training_watch, data)[0]
        losses = part.call(training_watch.convert_outcome, part.call(train, *data, EPOCHS, CPU, case=case), case=case)[0]
        if not (same := losses.shape == right.shape and torch.allclose(losses, right, rtol=0, atol=TOLERANCE)):
            part.note(f"{case}: not the losses of the training as delivered")
        return losses, same

    case = "a second call, with other data"
    losses, same = call(case, rows, labels)
    if not same and losses.shape == earlier.shape and torch.equal(losses, earlier):
        raise part.wrong("kept-result", case)
    if same:
        rows[:], labels[:] = pipeline.make_data(SAMPLES, 3)
        case = "the same lists, with other numbers in them"
        same = call(case, rows, labels)[1]
        if not same and call("copies of these lists", list(rows), list(labels))[1]:
            raise part.wrong("kept-by-identity", case)
    if not same:
        raise Verdict("failed", "other-results", "the losses of a later call differ from the provided training's", case)
