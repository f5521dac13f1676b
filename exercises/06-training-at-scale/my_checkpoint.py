"""Your part of 6.4: what a checkpoint must contain, and how training continues from it as if it had never stopped.

You will learn    what the state of training is in addition to the weights; how it is saved in slices, and read by fewer ranks
You will produce  `state` and `restore`: a training run saved on 4 ranks continues with the same losses on 4, 2 and 1; and
                  `plan_reads`, which finds the bytes that any other division of the model needs
Try it            gpucourse try 6.4
Your part         the three functions below; keep their names and parameters. As delivered, they keep only the weights, and read
                  only what was saved exactly as it is wanted
Reading           modules/06-training-at-scale/lesson-7-checkpoints.md, "The state of a training run"
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict


def state(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, generator: torch.Generator) -> dict[str, Any]:
    """Return everything that training needs to continue, under the keys "model", "optimizer", "step" and "generator".

    `model` was sharded by FSDP: its parameters are DTensors, each with this rank's slice. `optimizer` is an AdamW over them.
    Its moments are in slices, too, but do not exist before its first step. `step` is how many steps are done. `generator` draws
    the batches.

    Every rank of the model calls it before a save. Every rank also calls it before a load, on a new training run, to say what
    to read. Return tensors as they are, in slices: torch.distributed.checkpoint writes each rank's own slices, and loads into
    these very tensors. Other values are written as they are; after a load, the dictionary contains the values that were read.
    """
    return {"model": get_model_state_dict(model)}


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, saved: dict[str, Any]) -> int:
    """Put `saved` into the training run, and return how many steps it has done: the number of the next step, counted from 0.

    `saved` is the dictionary that `state` returned for this new training run, after the load. Change `model`, `optimizer` and
    `generator` themselves, because the training continues with them.
    """
    set_model_state_dict(model, saved["model"])
    return 0


def plan_reads(slices: list[dict], wanted: dict) -> list[dict]:
    """Return what a rank has to read so that it gets the slice `wanted` of a tensor from the slices in a checkpoint.

    A slice is a block of a tensor of one, two or three dimensions: {"offset": (row, column), "size": (rows, columns)}, with one
    number for each dimension. "offset" is the place of its first number in the whole tensor. Each of `slices` also has "file".
    Together they contain the whole tensor, in any order. They may be cut along any dimension, and some may be empty. If several
    nodes had a copy of the model, each of them has saved it: two slices have either the same place or no number in common.

    Each read is {"file": ..., "from": ..., "to": ..., "size": ...}: the file, the place in its slice at which the read begins,
    the place in the wanted slice to which that number goes, and the size, all with one number for each dimension. Together, the
    reads bring each number of `wanted` exactly once, and no others.
    """
    begin = (0,) * len(wanted["size"])
    same = [block for block in slices if block["offset"] == wanted["offset"] and block["size"] == wanted["size"]]
    return [{"file": block["file"], "from": begin, "to": begin, "size": block["size"]} for block in same]
