"""Judge my_checkpoint.py of 6.4: two ranks save a training run, which continues from disk on two ranks and on one; then reads
of slices that were cut in other ways."""

from __future__ import annotations

import itertools
import operator
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

WIDTH, LAYERS, DONE, STEPS = 16, 1, 3, 6
WAYS = {
    "weights-only": Way(
        "the checkpoint has no optimizer. AdamW divides by the moments of all steps so far: with new moments the next steps "
        "differ, so the losses differ from those of a training run that never stopped",
        (', "optimizer": moments,', ","),
    ),
    "no-generator": Way(
        "the checkpoint has no generator: the continued training draws different batches",
        (', "generator": generator.get_state()', ""),
    ),
    "no-step": Way(
        "the checkpoint does not say how many steps are done: restore cannot return it, so the training begins at 0 again",
        (', "step": step', ""),
    ),
    "off-by-one": Way(
        "saved after {done} steps, it continues with step {given}: steps are counted from 0, so the next one has the number "
        "{done}. A step is skipped or repeated",
        ('return int(saved["step"])', 'return int(saved["step"]) + 1'),
    ),
    "zero-moments": Way(
        "after {done} steps the state has no moments, or all of them are 0: they belong to an optimizer that has never "
        "stepped. Take them from the optimizer that trains, which is passed to you",
        ("get_state_dict(model, optimizer)", "get_state_dict(model, torch.optim.AdamW(model.parameters()))"),
    ),
    "empty-before-load": Way(
        "for a new training, state returns no moments: its AdamW creates them in its first step. A load reads only what the "
        "dictionary asks for, so the saved moments stay on disk. torch's get_state_dict creates them; optimizer.state_dict "
        "does not",
        (
            "    weights, moments = get_state_dict(model, optimizer)",
            "    from torch.distributed.checkpoint.state_dict import get_model_state_dict\n\n"
            "    weights, moments = get_model_state_dict(model), optimizer.state_dict()",
        ),
    ),
    "new-optimizer": Way(
        "the moments were saved, but after restore the optimizer that is passed to you does not have them: only that "
        "optimizer continues to train, and any other that you create or load is lost",
        (
            "set_state_dict(model, optimizer,",
            "optimizer.state.clear()\n    set_state_dict(model, torch.optim.AdamW(model.parameters()),",
        ),
    ),
    "generator-reset": Way(
        "after restore the generator does not continue where it was. Its seed only says where it began; its state says how "
        "far it has come",
        ('generator.set_state(saved["generator"])', 'generator.manual_seed(int(saved["step"]))'),
    ),
    "local-slices": Way(
        "the checkpoint has {name} as a tensor of {given} numbers, but the whole tensor has {right}: you returned each rank's "
        "slice as a separate tensor, all under one name, so that only one is kept. A DTensor records its place",
        ('"model": weights', '"model": {name: tensor.to_local() for name, tensor in weights.items()}'),
    ),
    "gathered": Way(
        "{name} is in the checkpoint in one piece: every rank gathered the whole tensor before the save. A model that is "
        "sharded because it does not fit would not fit here either, and all ranks but one write nothing of it",
        ('"model": weights', '"model": {name: tensor.full_tensor() for name, tensor in weights.items()}'),
    ),
    "changes-training": Way(
        "state changes the {what} of the training: it must only read it, because the training continues after the save",
        ("generator.get_state()}", "generator.manual_seed(step).get_state()}"),
    ),
    "first-dimension": Way(
        "plan_reads compares rows only: it reads as if every slice had all columns of its rows. A slice may be cut along any "
        "dimension, and two blocks overlap only if they do so in all of them",
        ("if min(size) > 0:", 'size[1:] = wanted["size"][1:]\n        if size[0] > 0:'),
    ),
    "place-in-whole": Way(
        'the places of plan_reads are those in the whole tensor. "from" counts from the first number of the saved slice, and '
        '"to" from the first number of the wanted one',
        (
            "            reads[tuple(begin)]",
            "            source, target = begin, begin\n            reads[tuple(begin)]",
        ),
    ),
    "copies-read": Way(
        "plan_reads reads some numbers several times: several nodes have saved a copy of the same slice, and one of them is "
        "enough",
        ("reads[tuple(begin)] =", "reads[len(reads)] ="),
    ),
    "whole-slices": Way(
        "plan_reads reads whole slices, with numbers that are not wanted. Read only the block in which the two overlap",
        (
            "            source = [",
            '            size, begin = saved["size"], saved["offset"]\n            source = [',
        ),
    ),
    "one-slice": Way(
        "plan_reads reads from one slice only: a wanted slice may overlap several, because ranks have cut the tensor at other "
        "places than those that load it",
        ("return list(reads.values())", "return list(reads.values())[:1]"),
    ),
}
Block = dict[str, Any]
KEYS = {"model": "weights", "optimizer": "weights-only", "step": "no-step", "generator": "no-generator"}


def judge(part: Part) -> None:
    """Judge what is saved and where it is, and continue training from it on two ranks and on one."""
    import sharded_training  # noqa: F401  # once here, and not in each of the ranks that are forked

    state, restore = part.function("state"), part.function("restore")
    with tempfile.TemporaryDirectory(prefix="gpucourse-judge-") as folder:
        for cases in part.on_ranks(2, lambda rank, size: _run(part, state, restore, Path(folder), rank, size)):
            for case in cases:
                part.compare([case], tolerance=1e-5)
    plan_reads = part.function("plan_reads")
    part.compare([_case_of_reads(part, plan_reads, name, *blocks) for name, *blocks in _list_divisions()])
    part.note(f"saved by 2 ranks after {DONE} steps; the losses of the next {STEPS - DONE} are the same on 2 ranks and on 1")


def _run(part: Part, state: Callable[..., Any], restore: Callable[..., Any], root: Path, rank: int, size: int) -> list[Case]:
    """Do all training runs of one rank, and return the cases that still have to be compared."""
    import checkpoints
    import ranks
    import sharded_training
    import torch

    world: Any = ranks.World(rank, size, torch.device("cpu"), torch.distributed.group.WORLD)
    sharded_training.be_repeatable(world.device)
    first = sharded_training.build(world, size, WIDTH, LAYERS, seed=0)
    sharded_training.train(first, range(DONE))
    right, folder = _describe(first), root / "saved"
    saved = part.call(state, first.model, first.optimizer, DONE, first.generator)
    _check_state(part, saved, right, _describe(first))
    part.call(checkpoints.save, saved, folder, first.group)
    _check_contents(part, folder, first.model)
    unbroken = list(sharded_training.train(first, range(DONE, STEPS)).values())
    cases = []
    for count in (size, 1):
        training = sharded_training.build(world, count, WIDTH, LAYERS, seed=1)
        if training is None:
            continue
        request = part.call(state, training.model, training.optimizer, 0, training.generator)
        if isinstance(request, dict) and not any(True for _ in _list_tensors(request.get("optimizer"))):
            raise part.wrong("empty-before-load", f"on {count} of {size} ranks")
        _load(part, request, folder, training.group)
        step = part.call(restore, training.model, training.optimizer, training.generator, request)
        name = f"on {count} of {size} ranks"
        _check_step(part, step, name)
        cases += _check_restored(
            part, _describe(training), right, name, generator=training.generator, same_slices=count == size
        )
        losses = list(sharded_training.train(training, range(DONE, STEPS)).values())
        cases.append(Case(f"the losses of the next steps, {name}", losses, unbroken))
    return cases


def _load(part: Part, request: Any, folder: Path, group: Any) -> None:
    """Load the values that the learner's state asks for, and name those that the checkpoint lacks."""
    import checkpoints

    try:
        checkpoints.load(request, folder, group)
    except Exception as error:  # noqa: BLE001  # torch raises its own kind of error, with the text of the first one
        _, marker, key = str(error).partition("Missing key in checkpoint state_dict: ")
        if not marker:
            raise part.make_verdict(error) from None
        says = f"state returns {key.split()[0]} for a new training, but the checkpoint has nothing of that name"
        raise Verdict("failed", "other-names", says) from None


def _describe(training: Any) -> dict[str, Any]:
    """Return this rank's weights, moments, AdamW's numbers of steps, and the generator's state, as they are now."""
    weights = [weight.to_local().detach().clone() for weight in training.model.parameters()]
    states = [training.optimizer.state.get(weight, {}) for weight in training.model.parameters()]
    moments = [state[key].to_local().clone() for state in states for key in ("exp_avg", "exp_avg_sq") if key in state]
    counts = [float(state["step"]) for state in states if "step" in state]
    return {"weights": weights, "moments": moments, "counts": counts, "generator": training.generator.get_state().clone()}


def _equal(answer: Any, right: Any) -> bool:
    if not isinstance(right, list):
        return bool(answer.equal(right))
    return len(answer) == len(right) and all(
        value == its if isinstance(its, float) else value.equal(its) for value, its in zip(answer, right, strict=True)
    )


def _list_tensors(value: Any) -> Iterator[Any]:
    """Yield all tensors with at least one dimension in nested dictionaries, on this rank."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _list_tensors(item)
    elif hasattr(value, "dim") and value.dim():
        yield value.to_local() if hasattr(value, "to_local") else value


def _check_state(part: Part, saved: Any, right: dict[str, Any], current: dict[str, Any]) -> None:
    if not isinstance(saved, dict):
        raise Verdict(
            "failed",
            "no-dictionary",
            f"state returns {type(saved).__name__}, not a dictionary with {', '.join(KEYS)}",
        )
    for key, way in KEYS.items():
        if key not in saved:
            if way not in WAYS:
                raise Verdict("failed", "no-weights", 'state has no key "model": the weights are missing, or have another name')
            raise part.wrong(way)
    for kind, value in right.items():
        if not _equal(current[kind], value):
            raise part.wrong("changes-training", what=kind)
    moments = saved["optimizer"]
    gathered = (
        isinstance(saved["model"], Mapping) and not saved["model"]
    )  # only rank 0 has them then: the judge of the files names the cause
    if isinstance(moments, Mapping) and not gathered and not any(tensor.any() for tensor in _list_tensors(moments)):
        raise part.wrong("zero-moments", done=DONE)


def _check_contents(part: Part, folder: Path, model: Any) -> None:
    """Check the files on disk: the weights must be complete, and in one slice per rank."""
    import checkpoints

    contents = checkpoints.read_metadata(folder)
    tensors = {
        name: item
        for name, item in contents.state_dict_metadata.items()
        if name.startswith("model.") and hasattr(item, "chunks")
    }
    whole, own_numbers = (
        sum(weight.numel() for weight in model.parameters()),
        sum(w.to_local().numel() for w in model.parameters()),
    )
    numbers = sum(item.size.numel() for item in tensors.values())
    if tensors and numbers == own_numbers:
        name, item = max(tensors.items(), key=lambda pair: pair[1].size.numel())
        raise part.wrong("local-slices", name=name, given=item.size.numel(), right=2 * item.size.numel())
    if numbers == whole:
        for name, item in tensors.items():
            if len(item.chunks) == 1:
                raise part.wrong("gathered", name=name)


def _check_step(part: Part, step: Any, name: str) -> None:
    if step is None:
        raise Verdict("failed", "no-answer", "restore returned None: the number of the next step is missing", name)
    try:
        number = operator.index(step)
    except TypeError:
        raise Verdict("failed", "no-number", f"restore returned {step!r}, not a whole number of steps", name) from None
    if number in (DONE - 1, DONE + 1):
        raise part.wrong("off-by-one", name, done=DONE, given=number)
    part.compare([Case(f"what restore returns, {name}", number, DONE)])


def _begin_again(generator: Any) -> Any:
    """Return the state with which a generator of the same seed begins."""
    import torch

    return torch.Generator().manual_seed(generator.initial_seed()).get_state()


def _check_restored(
    part: Part, current: dict[str, Any], right: dict[str, Any], name: str, *, generator: Any, same_slices: bool
) -> list[Case]:
    """Return the cases for the restored values. Moments and weights are compared if the rank has the same slices again."""
    if not _equal(current["generator"], right["generator"]):
        if _equal(current["generator"], _begin_again(generator)):
            raise part.wrong("generator-reset", name)
        raise Verdict("failed", "other", "after restore the state of the generator is not the one that was saved", name)
    if same_slices and not _equal(current["moments"], right["moments"]):
        if not any(moment.any() for moment in current["moments"]):
            raise part.wrong("new-optimizer", name)
        raise Verdict("failed", "other", "after restore the moments of the optimizer are not those that were saved", name)
    if not same_slices:
        return []
    off = sum(float((weight - its).abs().sum()) for weight, its in zip(current["weights"], right["weights"], strict=True))
    return [
        Case(f"the sum of all differences between the weights before and after, {name}", off, 0.0),
        Case(f"the numbers of steps in AdamW's own state, {name}", current["counts"], right["counts"]),
    ]


def _block(offset: Sequence[int], size: Sequence[int], file: str = "") -> Block:
    return {"offset": tuple(offset), "size": tuple(size), **({"file": file} if file else {})}


def _divide(shape: Sequence[int], parts: Sequence[int], copies: int = 1) -> list[Block]:
    """Return, in reverse order, the slices of a tensor that torch cuts into `parts` parts along each dimension."""
    cuts = []
    for length, count in zip(shape, parts, strict=True):
        width = -(-length // count)
        cuts.append([(min(at * width, length), max(0, min(width, length - at * width))) for at in range(count)])
    blocks = [
        _block([begin for begin, _ in place], [length for _, length in place], f"__{copy}_{number}.distcp")
        for copy in range(copies) for number, place in enumerate(itertools.product(*cuts))
    ]  # fmt: skip
    return blocks[::-1]


def _list_divisions() -> Iterator[tuple[str, list[Block], Block]]:
    """Yield cases of a division: its name, the slices of a tensor, and the slice that a rank wants."""
    yield "12 numbers in 4 slices, for rank 1 of 2", _divide((12,), (4,)), _block((6,), (6,))
    yield "12 x 5 in 4 slices of rows, for rank 1 of 3", _divide((12, 5), (4, 1)), _block((4, 0), (4, 5))
    yield "12 x 5 in 4 slices of rows, for rank 0 of 1", _divide((12, 5), (4, 1)), _block((0, 0), (12, 5))
    yield "12 x 5 in 3 slices of rows, for rank 3 of 8", _divide((12, 5), (3, 1)), _block((6, 0), (2, 5))
    yield "7 x 3 in 5 slices, the last of them empty, for rank 1 of 2", _divide((7, 3), (5, 1)), _block((4, 0), (3, 3))
    yield "7 x 3 in 2 slices, for rank 4 of 5, which has no row", _divide((7, 3), (2, 1)), _block((7, 0), (0, 3))
    yield "6 x 8 in 4 slices of columns, for rank 1 of 3, by rows", _divide((6, 8), (1, 4)), _block((2, 0), (2, 8))
    yield "6 x 8 in 2 x 2 slices, for rank 1 of 3, by columns", _divide((6, 8), (2, 2)), _block((0, 3), (6, 3))
    yield "12 x 5 in 4 slices of rows, saved by 2 nodes, for rank 1 of 2", _divide((12, 5), (4, 1), 2), _block((6, 0), (6, 5))
    yield "4 x 6 x 5 in 2 x 3 x 1 slices, for a block inside", _divide((4, 6, 5), (2, 3, 1)), _block((1, 1, 1), (2, 4, 3))


def _case_of_reads(part: Part, plan_reads: Callable[..., Any], name: str, slices: list[Block], wanted: Block) -> Case:
    answer = part.call(plan_reads, [dict(block) for block in slices], dict(wanted), case=name)
    if answer is None:
        raise Verdict("failed", "no-answer", "plan_reads returned None: is the return missing?", name)
    try:
        reads = [
            (str(read["file"]), *(tuple(map(operator.index, read[key])) for key in ("from", "to", "size"))) for read in answer
        ]
    except (KeyError, TypeError) as error:
        says = f"plan_reads returned {str(answer)[:100]}, not a list of reads with file, from, to and size"
        raise Verdict("failed", "shape", f"{says} ({type(error).__name__}: {error})", name) from None
    ways = {way: _play(slices, wanted, plan(slices, wanted)) for way, plan in _WRONG_READS.items()}
    right = _play(slices, wanted, _plan(slices, wanted))
    return Case(f"the numbers that arrive, {name}", _play(slices, wanted, reads), right, ways)


Read = tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _plan(slices: list[Block], wanted: Block, *, copies: bool = False, rows_only: bool = False) -> list[Read]:
    """Return the right reads, or those of a mistake that the options describe."""
    reads, places = [], set()
    for block in slices:
        numbers = [
            range(max(at, other), min(at + length, other + width))
            for at, length, other, width in zip(block["offset"], block["size"], wanted["offset"], wanted["size"], strict=True)
        ]
        size = tuple(map(len, numbers))
        size = (size[0], *wanted["size"][1:]) if rows_only else size
        if min(size[:1] if rows_only else size) > 0 and (copies or block["offset"] not in places):
            places.add(block["offset"])
            begin = [span.start for span in numbers]
            reads.append((block["file"], _subtract(begin, block["offset"]), _subtract(begin, wanted["offset"]), size))
    return reads


def _subtract(place: Sequence[int], origin: Sequence[int]) -> tuple[int, ...]:
    return tuple(at - begin for at, begin in zip(place, origin, strict=True))


def _in_whole(slices: list[Block], wanted: Block) -> list[Read]:
    """Return reads whose places are those in the whole tensor."""
    begins = [tuple(a + b for a, b in zip(target, wanted["offset"], strict=True)) for _, _, target, _ in _plan(slices, wanted)]
    return [(file, at, at, size) for (file, _, _, size), at in zip(_plan(slices, wanted), begins, strict=True)]


def _whole_slices(slices: list[Block], wanted: Block) -> list[Read]:
    """Return reads of all numbers of each slice that overlaps the wanted one."""
    block_of = {block["file"]: block for block in slices}
    return [
        (file, (0,) * len(size), _subtract(block_of[file]["offset"], wanted["offset"]), block_of[file]["size"])
        for file, _, _, size in _plan(slices, wanted)
    ]


_WRONG_READS: dict[str, Callable[[list[Block], Block], list[Read]]] = {
    "first-dimension": lambda slices, wanted: _plan(slices, wanted, rows_only=True),
    "place-in-whole": _in_whole,
    "copies-read": lambda slices, wanted: _plan(slices, wanted, copies=True),
    "whole-slices": _whole_slices,
    "one-slice": lambda slices, wanted: _plan(slices, wanted)[:1],
}


def _play(slices: list[Block], wanted: Block, reads: Sequence[Read]) -> list[str]:
    """Return the place that each number of the wanted slice comes from, in words.

    Then come reads from or to places outside the slices.

    The place is that in the whole tensor. A number that is read twice has two places; one that is not read has "nothing".
    """
    block_of = {block["file"]: block for block in slices}
    arrived: dict[tuple[int, ...], list[str]] = {place: [] for place in itertools.product(*map(range, wanted["size"]))}
    outside = []
    for file, source, target, size in reads:
        block = block_of.get(file, {"offset": wanted["offset"], "size": ()})
        if not len(source) == len(target) == len(size) == len(wanted["size"]):
            outside.append(f"a read of {len(size)} dimensions")
            continue
        for step in itertools.product(*map(range, size)):
            at, to = (tuple(a + b for a, b in zip(step, begin, strict=True)) for begin in (source, target))
            is_inside = len(block["size"]) == len(at) and all(0 <= a < n for a, n in zip(at, block["size"], strict=True))
            number = str(tuple(a + b for a, b in zip(at, block["offset"], strict=True))) if is_inside else "outside its slice"
            arrived[to].append(number) if to in arrived else outside.append(f"{number} to {to}")
    return [*(" and ".join(sorted(numbers)) or "nothing" for numbers in arrived.values()), *sorted(set(outside))]
