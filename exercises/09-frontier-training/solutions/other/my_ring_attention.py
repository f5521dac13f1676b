"""Solve the ring of 9.3: send the owners of keys with the keys in a list, and merge partial softmaxes by sigmoids."""

from __future__ import annotations

import torch


def share(length, ranks, rank):
    """Return an early piece and its mirror, with the middle pieces for the first rank."""
    size = length // (2 * ranks)
    early = ranks - 1 - rank
    late = 2 * ranks - 1 - early
    return torch.cat([torch.arange(size) + early * size, torch.arange(size) + late * size])


def merge(out, lse, part, part_lse):
    """Return the merged result and its logsumexp. The weight exp(a) / (exp(a) + exp(b)) is the sigmoid of a - b."""
    difference = torch.nan_to_num(part_lse - lse, nan=0.0)
    return torch.lerp(out, part, torch.sigmoid(difference).expand_as(out)), torch.logaddexp(lse, part_lse)


def forward(q, k, v, positions, rank, causal, send_on, block):
    """Return the output and its logsumexp: merge this rank's own keys, then those of one rank after the other."""
    latest = int(positions[rank].max())
    out, lse = block(q, k, v, positions[rank], positions[rank])
    owners = list(range(len(positions)))
    owners = owners[rank::-1] + owners[:rank:-1]
    for owner in owners[1:]:
        k, v = send_on((k, v))
        if causal and int(positions[owner].min()) > latest:
            continue
        out, lse = merge(out, lse, *block(q, k, v, positions[rank], positions[owner]))
    return out, lse


def backward(gradient, q, k, v, out, lse, positions, rank, causal, send_on, gradients):
    """Return the gradients. The sums of the keys' gradients travel separately from the keys."""
    ranks, latest = len(positions), int(positions[rank].max())
    of_q = torch.zeros_like(q)
    sums = [torch.zeros_like(k), torch.zeros_like(v)]
    for hop in range(ranks):
        owner = (rank + ranks - hop) % ranks
        if not (causal and int(positions[owner].min()) > latest):
            first, *others = gradients(gradient, (q, k, v, out, lse), positions[rank], positions[owner])
            of_q += first
            sums = [total + other for total, other in zip(sums, others, strict=True)]
        sums = send_on(sums)
        if hop + 1 < ranks:
            k, v = send_on([k, v])
    return of_q, *sums
