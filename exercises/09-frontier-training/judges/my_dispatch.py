"""Judge my_dispatch.py of 9.2 on real ranks: rows that experts compute and return, bytes, outputs and gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WIDTH, K, TOLERANCE = 5, 2, 1e-9
WAYS = {
    "not-sorted": Way(
        "rank {rank} gets a row of a token that chose none of this rank's experts: the exchange cuts the rows in the order of "
        "the ranks, and rank r holds the {each} experts that start at r * {each}. Sort the pairs by expert first",
        ("order = pairs.argsort(stable=True)", "order = torch.arange(len(pairs))"),
        seen="rank {rank} gets a row of a token that chose none of this rank's experts; rank r holds the {each} experts that "
        "start at r * {each}",
    ),
    "rows-of-other-tokens": Way(
        "expert {expert} gets a row of a token that has not chosen it: pair p of the flattened choices belongs to token p // "
        "{k}",
        ("tokens = order // chosen.shape[1]", "tokens = order % max(1, len(x))"),
        seen="expert {expert} gets a row of a token that has not chosen it",
    ),
    "not-grouped": Way(
        "expert {expert} computes a row of expert {other}: rows arrive sorted by the rank that sent them, and only then "
        "by expert. Group them by expert before you compute",
        ("grouped = labels.argsort(stable=True)", "grouped = torch.arange(len(labels))"),
    ),
    "not-put-back": Way(
        "rank {rank} sends its results back in the order in which its experts computed them: undo the grouping first, as "
        "the other ranks expect the order in which they sent the rows",
        ("back = torch.empty_like(outputs).index_copy(0, grouped, outputs)", "back = outputs"),
    ),
    "weights-in-the-old-order": Way(
        "each output is multiplied by the weight of another pair: the rows are sorted by expert, but the weights are not. "
        "Bring both into one order",
        ("weights.flatten()[order, None]", "weights.flatten()[:, None]"),
        seen="each token is a sum of the right outputs, but with weights that are not its own",
    ),
    "order-of-arrival": Way(
        "the outputs are right, but added to other tokens: rows come back sorted by expert, so row {row} belongs to token "
        "{token}",
        (
            "torch.zeros_like(x).index_add(0, tokens, home * weights.flatten()[order, None])",
            "(home * weights.flatten()[order, None]).view(len(x), -1, x.shape[1]).sum(1)",
        ),
    ),
    "overwritten": Way(
        "a token has the output of only one of its {k} experts: add them (index_add), as assigning keeps only one of equal "
        "places",
        (
            "index_add(0, tokens, home * weights.flatten()[order, None])",
            "index_copy(0, tokens, home * weights.flatten()[order, None])",
        ),
    ),
    "unweighted": Way(
        "the outputs of a token's experts are added without their weights",
        ("home * weights.flatten()[order, None]", "home"),
    ),
    "own-sizes": Way(
        "{text}. Counts have to be exchanged first: no rank knows what the others send",
        ("receive = arriving.sum(1).tolist()", "receive = send"),
    ),
    "padded": Way(
        "rank {rank} sends {sent:,} bytes of rows to other ranks, but its tokens and experts need {limit:,}: send as "
        "many rows as there are",
        (
            "    rows = AllToAll",
            "    exchange(x.new_zeros(8 * ranks, x.shape[1]), [8] * ranks, [8] * ranks)\n    rows = AllToAll",
        ),
    ),
    "no-way-back": Way(
        "the output is right, but the gradient of {name} is {off:.2g} off: autograd does not follow `exchange`, so no gradient "
        "leaves this rank. Send rows with AllToAll.apply, whose backward you write",
        ("AllToAll.apply(x[tokens], send, receive, exchange)", "exchange(x[tokens], send, receive)"),
    ),
    "same-sizes-back": Way(
        "in the backward pass, {text}. Which rank has the rows whose gradients arrive, and how many did it send?",
        ("ctx.back = receive, send, exchange", "ctx.back = send, receive, exchange"),
    ),
    "detached": Way(
        "the output is right, but the gradient of {name} is {off:.2g} off: gradients go back through AllToAll only if you send "
        "the rows of x themselves, without detach, use what it returns, and return all gradients unchanged",
        ("AllToAll.apply(x[tokens], send", "AllToAll.apply(x.detach()[tokens], send"),
    ),
    "alone-in-the-backward-pass": Way(
        "the output of rank {rank} depends on {count} exchanges, and that of another rank on {most}: in the backward pass, "
        "the others would wait for it for ever. Return what came back even if there are no tokens",
        ("    return torch.zeros_like(x)", "    if not len(x):\n        return 0 * x\n    return torch.zeros_like(x)"),
    ),
}


class Trial(NamedTuple):
    """One layer: its name, how many experts, the tokens of each rank, and an expert that every token chooses, or -1."""

    name: str
    experts: int
    tokens: tuple[int, ...]
    favourite: int = -1


TRIALS = (
    Trial("4 experts on 2 ranks, 5 tokens each", 4, (5, 5)),
    Trial("6 experts on 3 ranks, 1 to 7 tokens", 6, (7, 1, 4)),
    Trial("8 experts on 4 ranks, one of which has no tokens", 8, (3, 0, 6, 5)),
    Trial("8 experts on 4 ranks, expert 6 in every token", 8, (4, 3, 5, 4), 6),
    Trial("4 experts on 1 rank", 4, (5,)),
)


def judge(part: Part) -> None:
    """Judge five layers with even and uneven tokens, on 1 to 4 ranks, forward and backward."""
    forward = part.function("forward")
    for trial in TRIALS:
        size = len(trial.tokens)
        _check(part, trial, part.on_ranks(size, lambda rank, size, trial=trial: _run(part, forward, trial, rank, size)))
    part.note(f"output and gradients of one process in {len(TRIALS)} layers, with every row sent once for each pair")


def _draw(trial: Trial) -> tuple[Any, Any, Any, Any]:
    """Return the tokens of all ranks, their experts and weights, and the matrix of each expert. Nothing in them is random."""
    import torch

    count = sum(trial.tokens)
    x = torch.sin(torch.arange(count * WIDTH, dtype=torch.float64) * 1.7).view(count, WIDTH)
    first = torch.arange(count) * 5 % trial.experts
    second = (first + 1 + torch.arange(count) * 3 % (trial.experts - 1)) % trial.experts
    if trial.favourite >= 0:
        first = torch.full((count,), trial.favourite)
        second = (trial.favourite + 1 + torch.arange(count) % (trial.experts - 2)) % trial.experts
    share = 0.55 + 0.4 * torch.arange(count, dtype=torch.float64) / max(1, count)
    matrices = torch.cos(torch.arange(trial.experts * WIDTH * WIDTH, dtype=torch.float64) * 0.9)
    return x, torch.stack([first, second], 1), torch.stack([share, 1 - share], 1), matrices.view(trial.experts, WIDTH, WIDTH)


def _place(trial: Trial, rank: int) -> slice:
    begin = sum(trial.tokens[:rank])
    return slice(begin, begin + trial.tokens[rank])


class _Watch:
    """Record the rows that one rank's experts get, and the rows that they send back."""

    def __init__(self, part: Part, trial: Trial, rank: int, size: int) -> None:
        from exchange import Exchange

        self.part, self.trial, self.rank, self.each = part, trial, rank, trial.experts // size
        self.inner, self.is_backward = Exchange(rank, size), False
        self.sent_rows: list[Any] = []
        self.arrived: list[Any] = []
        self.computed: list[tuple[int, Any]] = []
        self.outputs: Any = []
        self.sent_home: Any = []
        self.is_followed = True
        _, _, _, matrices = _draw(trial)
        self.matrices = matrices[rank * self.each : (rank + 1) * self.each].clone().requires_grad_()

    def exchange_counts(self, counts: Any) -> Any:
        import torch
        import torch.distributed as dist

        if not isinstance(counts, torch.Tensor) or counts.dtype != torch.int64 or counts.shape != (self.trial.experts,):
            raise ValueError(f"exchange_counts needs an int64 tensor with {self.trial.experts} numbers")
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts.contiguous())
        return arriving.view(-1, self.each)

    def exchange(self, rows: Any, send: Any, receive: Any) -> Any:
        import torch

        try:
            result = self.inner(rows.detach(), [int(size) for size in send], [int(size) for size in receive])
        except ValueError as error:
            way = "same-sizes-back" if self.is_backward else "own-sizes"
            raise self.part.wrong(way, self.trial.name, text=str(error)) from None
        if self.is_backward:
            return result
        self.is_followed &= not torch.is_grad_enabled()  # autograd is off inside of AllToAll.forward
        if self.outputs == []:
            self.sent_rows, self.arrived = rows.tolist(), result.tolist()
        else:
            self.sent_home = rows.tolist()
        return result

    def compute(self, rows: Any, sizes: Any) -> Any:
        import torch

        sizes = [int(size) for size in sizes]
        if len(sizes) != self.each or sum(sizes) != len(rows):
            raise ValueError(f"compute needs {self.each} sizes that add up to {len(rows)} rows, not {sizes}")
        parts = rows.split(sizes)
        for expert, some in enumerate(parts):
            self.computed += [(self.rank * self.each + expert, row) for row in some.tolist()]
        result = torch.cat([torch.tanh(some @ matrix) for some, matrix in zip(parts, self.matrices, strict=True)])
        self.outputs = result.tolist()
        return result


def _run(part: Part, forward: Any, trial: Trial, rank: int, size: int) -> dict[str, Any]:
    """Return the outputs, gradients, rows and bytes of the learner's layer on this rank."""
    import torch

    x, chosen, weights, _ = _draw(trial)
    place, watch = _place(trial, rank), _Watch(part, trial, rank, size)
    leaves = [tensor[place].clone().requires_grad_() for tensor in (x, weights)]
    output = part.call(forward, *leaves, chosen[place].clone(), trial.experts, watch.exchange_counts, watch.exchange,
    watch.compute,
                       case=trial.name)  # fmt: skip
    if not isinstance(output, torch.Tensor) or output.shape != x[place].shape:
        shape = list(getattr(output, "shape", []))
        text = f"rank {rank} returned {type(output).__name__}{shape or ''} instead of a tensor {list(x[place].shape)}"
        raise Verdict("failed", "no-output", text, trial.name)
    sent = sum(watch.inner.forward_bytes)
    _check_graph(part, trial, output)
    watch.is_backward = True
    if output.requires_grad:
        (output * torch.cos(x[place])).sum().backward()
    gradients = [None if leaf.grad is None else leaf.grad.tolist() for leaf in (*leaves, watch.matrices)]
    return {
        "output": output.detach().double().tolist(), "sent": sent, "is_followed": watch.is_followed, "gradients": gradients,
        "computed": watch.computed, "arrived": watch.arrived, "sent_rows": watch.sent_rows, "outputs": watch.outputs,
        "home": watch.sent_home,
    }  # fmt: skip


def _check_graph(part: Part, trial: Trial, output: Any) -> None:
    """Raise the verdict if the ranks' outputs depend on different numbers of exchanges. Then a backward pass would hang."""
    import torch.distributed as dist

    nodes, waiting = set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            waiting += [following for following, _ in node.next_functions]
    counts: list[Any] = [None] * len(trial.tokens)
    dist.all_gather_object(counts, sum("AllToAll" in node.name() for node in nodes))
    least = min(counts)
    if least < max(counts):
        raise part.wrong("alone-in-the-backward-pass", trial.name, rank=counts.index(least), count=least, most=max(counts))


def _check(part: Part, trial: Trial, results: list[dict[str, Any]]) -> None:
    import torch

    x, chosen, weights, matrices = (tensor.clone() for tensor in _draw(trial))
    x, weights, matrices = (tensor.requires_grad_() for tensor in (x, weights, matrices))
    experts = torch.tanh(torch.einsum("tw,ewv->tev", x, matrices))
    outputs = torch.gather(experts, 1, chosen[..., None].expand(-1, -1, WIDTH))  # tokens, k, width
    right = (outputs * weights[..., None]).sum(1)
    (right * torch.cos(x.detach())).sum().backward()
    result = torch.tensor([row for one in results for row in one["output"]], dtype=torch.float64).view(-1, WIDTH)
    if not torch.allclose(result, right, rtol=0, atol=TOLERANCE):
        _name_rows(part, trial, results)
        _name_values(part, trial, result, outputs.detach(), weights.detach())
    _check_bytes(part, trial, results, chosen)
    each = trial.experts // len(trial.tokens)
    for rank, one in enumerate(results):
        places = (_place(trial, rank), _place(trial, rank), slice(rank * each, (rank + 1) * each))
        names = ("x", "the weights", "an expert")
        for name, leaf, place, values in zip(names, (x, weights, matrices), places, one["gradients"], strict=True):
            expected = leaf.grad[place]
            value = (
                torch.zeros_like(expected) if values is None else torch.tensor(values, dtype=torch.float64).view_as(expected)
            )
            off = float((value - expected).abs().max()) if expected.numel() else 0.0
            if off > TOLERANCE:
                raise part.wrong("detached" if one["is_followed"] else "no-way-back", trial.name, name=name, off=off)


def _check_bytes(part: Part, trial: Trial, results: list[dict[str, Any]], chosen: Any) -> None:
    owners = chosen // (trial.experts // len(trial.tokens))
    for rank, one in enumerate(results):
        owners_here = owners[_place(trial, rank)]
        leaving = int((owners_here != rank).sum())
        arriving = int((owners == rank).sum() - (owners_here == rank).sum())
        limit = 8 * WIDTH * (leaving + arriving)
        if one["sent"] > limit:
            raise part.wrong("padded", trial.name, rank=rank, sent=one["sent"], limit=limit)


def _name_rows(part: Part, trial: Trial, results: list[dict[str, Any]]) -> None:
    """Raise the verdict if a row reaches an expert other than the chosen one, or if rows go back in the wrong order."""
    x, chosen, _, _ = _draw(trial)
    numbers = {tuple(row): token for token, row in enumerate(x.tolist())}
    each = trial.experts // len(trial.tokens)
    for rank, one in enumerate(results):
        here = range(rank * each, (rank + 1) * each)
        tokens = [numbers.get(tuple(row), -1) for row in one["arrived"]]
        if any(token < 0 or not set(chosen[token].tolist()) & set(here) for token in tokens):
            sent = [numbers.get(tuple(row), -1) for row in results[0]["sent_rows"]]
            if sent != sorted(sent):
                expert = next(e for e, row in one["computed"] if e not in chosen[numbers[tuple(row)]].tolist())
                raise part.wrong("rows-of-other-tokens", trial.name, output=_list_outputs(results), expert=expert, k=K)
            raise part.wrong("not-sorted", trial.name, output=_list_outputs(results), rank=rank, each=each)
    for rank, one in enumerate(results):
        for expert, row in one["computed"]:
            others = chosen[numbers[tuple(row)]].tolist()
            if expert not in others:
                other = next((number for number in others if number // each == rank), others[0])
                raise part.wrong("not-grouped", trial.name, expert=expert, other=other)
    for rank, one in enumerate(results):
        rows = [row for _, row in one["computed"]]
        if one["home"] == one["outputs"] and rows != one["arrived"]:
            raise part.wrong("not-put-back", trial.name, rank=rank)


def _list_outputs(results: list[dict[str, Any]]) -> list[Any]:
    return [one["output"] for one in results]


def _name_values(part: Part, trial: Trial, result: Any, outputs: Any, weights: Any) -> None:
    """Raise the verdict if an output is wrong although its rows were computed and sent back correctly."""
    import torch

    def equals(left: Any, right: Any) -> bool:
        return bool(torch.allclose(left, right, rtol=0, atol=TOLERANCE))

    if equals(result, outputs.sum(1)) or equals(result, outputs.mean(1)):
        raise part.wrong("unweighted", trial.name)
    weighted = outputs * weights[..., None]
    places = [_place(trial, rank) for rank in range(len(trial.tokens))]
    if all(equals(result[place].sum(0), weighted[place].sum((0, 1))) for place in places):
        _, chosen, _, _ = _draw(trial)
        order = chosen[places[0]].flatten().argsort(stable=True)
        row = next((row for row, pair in enumerate(order.tolist()) if pair // K != row // K), 0)
        raise part.wrong("order-of-arrival", trial.name, row=row, token=int(order[row]) // K)
    if all((row - ways).abs().amax(-1).min() <= TOLERANCE for row, ways in zip(result, weighted, strict=True)):
        raise part.wrong("overwritten", trial.name, k=K)
    first = result[0][:, None]
    solution = torch.linalg.lstsq(outputs[0].T, first).solution
    if equals(outputs[0].T @ solution, first):
        raise part.wrong("weights-in-the-old-order", trial.name, output=result)
    text = (
        "the experts get the right rows, but the outputs are wrong: does each row of the result add up its own token's outputs?"
    )
    raise Verdict("failed", "other", text, trial.name)
