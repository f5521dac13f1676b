"""Solve the ring of 9.3: each rank begins with its own keys, and in step s it holds those of rank - s."""

from __future__ import annotations

import math

import torch


def share(length, ranks, rank):
    """Return an early piece and the late piece that mirrors it."""
    pieces = torch.arange(length).chunk(2 * ranks)
    return torch.cat([pieces[rank], pieces[2 * ranks - 1 - rank]])


def merge(out, lse, part, part_lse):
    """Return the merged result and its logsumexp. The weight of each part is its share of the whole sum."""
    both = torch.logaddexp(lse, part_lse)
    base = both.masked_fill(both == -math.inf, 0.0)  # a query that has seen nothing
    return out * (lse - base).exp() + part * (part_lse - base).exp(), both


def forward(q, k, v, positions, rank, causal, send_on, block):
    """Return the output and its logsumexp, merged block by block."""
    ranks = len(positions)
    out, lse = torch.zeros_like(q), q.new_full((*q.shape[:-1], 1), -math.inf)
    for step in range(ranks):
        held = (rank - step) % ranks
        if not causal or positions[held].min() <= positions[rank].max():
            part, part_lse = block(q, k, v, positions[rank], positions[held])
            out, lse = merge(out, lse, part, part_lse)
        if step < ranks - 1:
            k, v = send_on([k, v])
    return out, lse


def backward(gradient, q, k, v, out, lse, positions, rank, causal, send_on, gradients):
    """Return the gradients. Those of keys and values travel with the keys, and then one hop further to their rank."""
    ranks = len(positions)
    of_q, of_k, of_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for step in range(ranks):
        held = (rank - step) % ranks
        if not causal or positions[held].min() <= positions[rank].max():
            parts = gradients(gradient, (q, k, v, out, lse), positions[rank], positions[held])
            of_q, of_k, of_v = of_q + parts[0], of_k + parts[1], of_v + parts[2]
        if step < ranks - 1:
            k, v, of_k, of_v = send_on([k, v, of_k, of_v])
    of_k, of_v = send_on([of_k, of_v])
    return of_q, of_k, of_v
