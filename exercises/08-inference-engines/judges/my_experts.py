"""Judge my_experts.py of 8.7 on real ranks: each token's output, the rows that experts get, and the bytes that are sent."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WIDTH, K, TOLERANCE = 192, 2, 1e-9  # so wide that all else that a rank may send is smaller than one row
ROUNDING = 1e-5  # rows or gates in float32 make a smaller difference than this
ROW_BYTES = 8 * WIDTH
WAYS = {
    "not-sorted": Way(
        "only {computed} of {needed} pairs of row and expert were computed: all_to_all_single cuts the rows in the order of "
        "the ranks, so sort them by rank first",
        ("owners, rows = needs.T.nonzero(as_tuple=True)", "rows, owners = needs.nonzero(as_tuple=True)"),
        "only {computed} of {needed} pairs of row and expert were computed: expert {expert} has computed {rows} rows, but "
        "{tokens} tokens chose it",
    ),
    "own-sizes": Way(
        "rank {rank} expects {expected} rows from rank {other}, which sends {sent}: gloo would end both processes. Exchange "
        "the sizes with an all-to-all first",
        ("    dist.all_to_all_single(expected, sent, group=group)\n", "    expected = sent.clone()\n"),
    ),
    "rounded": Way(
        "something is rounded: the largest difference is {difference:.1e}. Rows and gates are float64, so a type with fewer "
        "bits cannot hold them, neither on the way nor in a sum",
        ("send(gates)", "send(gates.float())"),
    ),
    "no-gates": Way(
        "the outputs are added without their weights: each output is multiplied by the gate of its expert",
        ("weights[places, choices, None] * compute", "compute"),
    ),
    "gates-in-another-order": Way(
        "each output is multiplied by the gate of another token or expert: rows come back in the order in which you sent "
        "them, and gates have the same order as the choices of their token",
        ("weights[places, choices, None]", "weights[places, 1 - choices, None]"),
    ),
    "overwrites": Way(
        "a token's output comes from only one of its {k} experts, or of its ranks: several rows may come back for a token, and "
        "they must be added. result[rows] += ... keeps only one of equal rows",
        ("result.index_add_(0, rows, back)", "result[rows] += back"),
        "a token's output comes from only one of its {k} experts, or from only one of its ranks",
    ),
    "rows-of-other-tokens": Way(
        "expert {expert} computes rows of tokens that have not chosen it: are rows and choices in the same order? Choice c of "
        "the flattened choices belongs to token c // {k}",
        ("send(x), send(chosen)", "send(x.roll(1, 0)), send(chosen)"),
    ),
    "all-rows-to-all": Way(
        "rank {rank} sends {sent:,} bytes to other ranks, but {limit:,} are enough: send a row only to ranks that have "
        "one of its experts",
        ("needs.scatter_(1, chosen // each, True)", "needs[:] = True"),
        "rank {rank} sends {sent:,} bytes to other ranks, but {limit:,} are enough. Count the rows that it sends to each rank, "
        "the rows that it sends back, and everything that goes with them: one row for each is enough",
    ),
    "a-row-for-each-expert": Way(
        "rank {rank} sends {sent:,} bytes to other ranks, but {limit:,} are enough: a token that has two experts on "
        "one rank sends its row there once, with both gates, and that rank returns one row, the sum of both outputs",
        (
            "    owners, rows = needs.T.nonzero(as_tuple=True)\n    sent = torch.bincount(owners, minlength=ranks)\n",
            "    order = chosen.flatten().argsort(stable=True)\n"
            "    rows, owners = order // chosen.shape[1], chosen.flatten()[order] // each\n"
            "    sent = torch.bincount(owners, minlength=ranks)\n"
            "    gates = gates / (chosen // each == (chosen // each)[:, :1]).all(1, keepdim=True).add(1)\n",
        ),
        "rank {rank} sends {sent:,} bytes to other ranks, but {limit:,} are enough. Count the rows that it sends to each rank, "
        "the rows that it sends back, and everything that goes with them",
    ),
}


class Layer(NamedTuple):
    """One layer: its name, how many experts, the tokens of each rank, and an expert that every token chooses, or -1."""

    name: str
    experts: int
    tokens: tuple[int, ...]
    favourite: int = -1


LAYERS = (
    Layer("4 experts on 1 rank", 4, (5,)),
    Layer("4 experts on 2 ranks, 5 tokens each", 4, (5, 5)),
    Layer("6 experts on 3 ranks, 1 to 7 tokens", 6, (7, 1, 4)),
    Layer("4 experts on 4 ranks, one of which has no tokens", 4, (3, 0, 6, 2)),
    Layer("8 experts on 4 ranks, expert 6 in every token", 8, (4, 3, 5, 4), 6),
)


def judge(part: Part) -> None:
    """Judge five layers with even and uneven tokens, on 1 to 4 ranks."""
    _watch_sizes(part)
    forward = part.function("forward")
    for layer in LAYERS:
        try:
            results = part.on_ranks(len(layer.tokens), lambda rank, size, layer=layer: _run(part, forward, layer, rank, size))
        except Verdict as verdict:
            if verdict.way == "crash":
                verdict.says += ". If the sizes that two ranks expect differ, gloo ends the process"
            raise
        _check(part, layer, results)
    part.note(f"equal to one process in {len(LAYERS)} layers, with every row sent at most once to each rank")


def _watch_sizes(part: Part) -> None:
    """Let all_to_all_single compare the sizes of all ranks before it sends: a difference would end the process."""
    import torch.distributed as dist
    from torch.utils._python_dispatch import _disable_current_modes

    send = dist.all_to_all_single

    def send_checked(
        output: Any,
        input: Any,  # noqa: A002 (the name is torch's)
        output_split_sizes: Any = None,
        input_split_sizes: Any = None,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        ranks, rank = dist.get_world_size(group), dist.get_rank(group)
        both = (input_split_sizes, input), (output_split_sizes, output)
        sizes = [list(map(int, splits)) if splits else [len(tensor) // ranks] * ranks for splits, tensor in both]
        everyone: list[Any] = [None] * ranks
        with _disable_current_modes():  # the judge's own messages are not counted
            dist.all_gather_object(everyone, sizes, group=group)
        for other, (sent, _) in enumerate(everyone):
            if len(sent) == ranks and len(sizes[1]) == ranks and sent[rank] != sizes[1][other]:
                raise part.wrong("own-sizes", rank=rank, other=other, expected=sizes[1][other], sent=sent[rank])
        return send(output, input, output_split_sizes, input_split_sizes, group, async_op)

    dist.all_to_all_single = send_checked


def _draw(layer: Layer) -> tuple[Any, Any, Any, Any]:
    """Return the tokens of all ranks, their experts and gates, and the matrix of each expert. Nothing in them is random."""
    import torch

    count = sum(layer.tokens)
    x = torch.sin(torch.arange(count * WIDTH, dtype=torch.float64) * 1.7).view(count, WIDTH)
    first = torch.arange(count) * 5 % layer.experts
    chosen = torch.stack([first, (first + 1 + torch.arange(count) * 3 % (layer.experts - 1)) % layer.experts], 1)
    if layer.favourite >= 0:
        chosen[:, 0] = layer.favourite
        chosen[:, 1] = (layer.favourite + 1 + torch.arange(count) % (layer.experts - 2)) % layer.experts
    shares = (torch.arange(count, dtype=torch.float64) + 1 / 3) / count  # float32 can hold none of the gates
    gates = torch.stack([0.55 + 0.4 * shares, 0.45 - 0.4 * shares], 1)
    matrices = torch.cos(torch.arange(layer.experts * WIDTH * WIDTH, dtype=torch.float64) * 0.9)
    return x, chosen, gates, matrices.view(layer.experts, WIDTH, WIDTH)


def _place(layer: Layer, rank: int) -> slice:
    begin = sum(layer.tokens[:rank])
    return slice(begin, begin + layer.tokens[rank])


def _run(part: Part, forward: Any, layer: Layer, rank: int, size: int) -> tuple[Any, int, list[tuple[int, Any]]]:
    """Return the learner's output for this rank's tokens, the bytes that left the rank, and the rows of each of its experts."""
    import torch
    from sent_bytes import SentBytes

    x, chosen, gates, matrices = _draw(layer)
    place, each = _place(layer, rank), layer.experts // size

    computed: list[tuple[int, Any]] = []

    def compute(expert: int, rows: Any) -> Any:
        if int(expert) // each != rank:
            text = f"rank {rank} computes expert {int(expert)}, which rank {int(expert) // each} has"
            raise Verdict("failed", "other", text, layer.name)
        computed.extend((int(expert), row) for row in rows.tolist())
        return torch.tanh(rows @ matrices[expert])

    with SentBytes(rank, size) as sent:
        output = part.call(forward, x[place].clone(), chosen[place].clone(), gates[place].clone(), layer.experts, compute,
                           case=layer.name)  # fmt: skip
    if not isinstance(output, torch.Tensor) or output.shape != x[place].shape:
        shape = list(getattr(output, "shape", []))
        text = f"rank {rank} returned {type(output).__name__}{shape or ''} instead of a tensor {list(x[place].shape)}"
        raise Verdict("failed", "no-output", text, layer.name)
    return output.double().tolist(), sent.bytes, computed


def _check(part: Part, layer: Layer, results: list[tuple[Any, int, list[tuple[int, Any]]]]) -> None:
    import torch

    x, chosen, gates, matrices = _draw(layer)
    experts = torch.tanh(torch.einsum("tw,ewv->tev", x, matrices))
    outputs = torch.gather(experts, 1, chosen[..., None].expand(-1, -1, WIDTH))  # tokens, k, width
    result = torch.tensor([row for rows, _, _ in results for row in rows], dtype=torch.float64).view(-1, WIDTH)
    right = (outputs * gates[..., None]).sum(1)
    if not torch.allclose(result, right, rtol=0, atol=TOLERANCE):
        if (difference := float((result - right).abs().max())) < ROUNDING:
            raise part.wrong("rounded", layer.name, difference=difference)
        _name_rows(part, layer, [one for _, _, computed in results for one in computed], x, chosen)
        _name_values(part, layer, result, outputs, gates, _list_owners(layer, chosen))
    owners = _list_owners(layer, chosen)
    is_double = owners[:, 0] == owners[:, 1]  # both experts of the token are on one rank
    token_ranks = torch.tensor([rank for rank, tokens in enumerate(layer.tokens) for _ in range(tokens)])
    companions = (2 * K * max(layer.tokens) + len(layer.tokens) + 8) * 8 * len(layer.tokens)  # numbers, gates, and sizes
    rows = [sent // ROW_BYTES for _, sent, _ in results]
    for rank, (_, sent, _) in enumerate(results):
        is_own = token_ranks == rank
        leaving, coming = (owners != rank) & is_own[:, None], (owners == rank) & ~is_own[:, None]
        pairs, twice = int(leaving.sum() + coming.sum()), int((is_double & (leaving | coming).all(1)).sum())
        limit = ROW_BYTES * (pairs - twice) + companions
        if sent > limit and len(results) > 1:
            way = "a-row-for-each-expert" if sent <= ROW_BYTES * pairs + companions else "all-rows-to-all"
            raise part.wrong(way, layer.name, output=rows, rank=rank, sent=sent, limit=limit)


def _list_owners(layer: Layer, chosen: Any) -> Any:
    """Return the rank of each expert that a token has chosen."""
    return chosen // (layer.experts // len(layer.tokens))


def _name_rows(part: Part, layer: Layer, computed: list[tuple[int, Any]], x: Any, chosen: Any) -> None:
    """Raise the verdict if an expert lacks a row of one of its tokens, or gets a row of another token or of none."""
    import torch

    if len(computed) < chosen.numel():
        rows, tokens = Counter(expert for expert, _ in computed), Counter(chosen.flatten().tolist())
        expert = next(expert for expert in range(layer.experts) if rows[expert] < tokens[expert])
        raise part.wrong("not-sorted", layer.name, output=sorted(computed), computed=len(computed), needed=chosen.numel(),
                         expert=expert, rows=rows[expert], tokens=tokens[expert])  # fmt: skip
    for expert, row in computed:
        differences = (torch.tensor(row, dtype=torch.float64) - x).abs().amax(-1)
        token = int(differences.argmin())
        if not (difference := float(differences[token])) < ROUNDING:
            text = (
                f"expert {expert} computes a row that no token has: from the nearest row of a token it differs by up to "
                f"{difference:.1e}"
            )
            raise Verdict("failed", "other", text, layer.name)
        if expert not in chosen[token].tolist():
            raise part.wrong("rows-of-other-tokens", layer.name, expert=expert, k=K)


def _name_values(part: Part, layer: Layer, result: Any, outputs: Any, gates: Any, owners: Any) -> None:
    """Raise the verdict on wrong outputs: the mistake that explains them, or a question if none does."""
    import torch

    def equals(other: Any) -> bool:
        return bool(torch.allclose(result, other, rtol=0, atol=TOLERANCE))

    if equals(outputs.sum(1)):
        raise part.wrong("no-gates", layer.name)
    weighted = outputs * gates[..., None]
    of_one_rank = torch.where((owners[:, 0] == owners[:, 1])[:, None], weighted.sum(1), weighted[:, 0])
    ways = torch.cat([weighted, of_one_rank[:, None]], 1)
    if bool(((result[:, None] - ways).abs().amax(-1).amin(-1) <= TOLERANCE).all()):
        raise part.wrong("overwrites", layer.name, output=result, k=K)
    weights = (torch.linalg.pinv(outputs.mT) @ result[..., None])[..., 0]  # lstsq refuses a result that is not a number
    is_sum = ((outputs * weights[..., None]).sum(1) - result).abs().amax(-1) <= TOLERANCE
    places = [_place(layer, rank) for rank in range(len(layer.tokens))]
    used, meant = (torch.cat([rows[place].flatten().sort().values for place in places]) for rows in (weights, gates))
    if bool(is_sum.all()) and bool(torch.allclose(used, meant, rtol=0, atol=TOLERANCE)):
        raise part.wrong("gates-in-another-order", layer.name)
    is_right = (result - weighted.sum(1)).abs().amax(-1) <= TOLERANCE
    token = is_right.tolist().index(False)
    rank = next(rank for rank in range(len(layer.tokens)) if token < _place(layer, rank).stop)
    text = (
        "the experts get the right rows, but the outputs are wrong: does each row of the result add up its own token's outputs?"
    )
    if is_sum[token]:
        given, right = (" and ".join(f"{weight:z.4g}" for weight in rows[token].tolist()) for rows in (weights, gates))
        number = token - _place(layer, rank).start
        text = f"on rank {rank}, the weights of the outputs of token {number} are {given}, but its gates are {right}"
    raise Verdict("failed", "other", text, layer.name)
