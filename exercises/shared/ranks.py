"""Join the other ranks, and combine the values of all ranks. Exercise 3.1 shows the same set-up line by line."""

from __future__ import annotations

import hashlib
import math
import os
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class World:
    """This process among the ranks: `rank` of `size`, computing on `device`.

    `waiting_room` waits without keeping a core or a GPU busy.
    """

    rank: int
    size: int
    device: torch.device
    waiting_room: dist.ProcessGroup

    def reduce(self, value: torch.Tensor | list[float] | float, op: dist.ReduceOp) -> torch.Tensor:
        """Return `value` reduced over all ranks, element by element, in double precision."""
        tensor = torch.as_tensor(value, dtype=torch.float64, device=self.device).clone()
        dist.all_reduce(tensor, op=op)
        return tensor

    def slowest(self, seconds: list[float]) -> list[float]:
        """Return the element-wise maximum, because a collective step ends only when its last rank has finished."""
        return self.reduce(seconds, dist.ReduceOp.MAX).tolist()

    def difference(self, values: torch.Tensor) -> float:
        """Return the largest difference between any two ranks, over all elements. 0 means that all ranks have the same numbers.

        NaN stays NaN.
        """
        if self.reduce(float(not values.isfinite().all()), dist.ReduceOp.MAX):
            return math.nan
        return (self.reduce(values, dist.ReduceOp.MAX) - self.reduce(values, dist.ReduceOp.MIN)).max().item()

    def error(self, result: torch.Tensor, reference: torch.Tensor) -> float:
        """Return the largest difference between the two on any rank, as a share of the largest element. NaN stays NaN."""
        own_error = ((result - reference).abs().max() / reference.abs().max().clamp_min(1e-30)).item()
        return max(self.gather(own_error), key=lambda value: math.inf if math.isnan(value) else value)

    def gather(self, value: object) -> list:
        """Return one object from every rank, in the order of the ranks."""
        values: list[object] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def on_any(self, values: list[bool]) -> list[bool]:
        """Return, for each value, whether it is true on any rank. Waiting for the others keeps no core and no GPU busy."""
        tensor = torch.tensor(values, dtype=torch.int32)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self.waiting_room)
        return [bool(value) for value in tensor.tolist()]

    def free_bytes(self) -> int:
        """Return the bytes that are free for every rank: the least of all GPUs, or on CPUs a rank's share of its computer."""
        if self.device.type == "cuda":
            own_bytes: float = torch.cuda.mem_get_info(self.device)[0]
        else:
            pages = os.sysconf("SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES")
            own_bytes = pages * os.sysconf("SC_PAGE_SIZE") / self.gather(socket.gethostname()).count(socket.gethostname())
        return int(self.reduce(own_bytes, dist.ReduceOp.MIN).item())

    def give_up_together(self, reason: str | None) -> None:
        """End every rank with all reasons if any rank has one. A rank that went on alone would wait for ever."""
        reasons = [f"rank {rank}: {text}" for rank, text in enumerate(self.gather(reason)) if text]
        if reasons:
            dist.destroy_process_group()
            sys.exit("\n".join(reasons))

    def wait_for_all(self) -> None:
        """Wait until every rank is here, without using a CPU that another rank's measurement may need."""
        dist.barrier(group=self.waiting_room)


def flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return all elements of all tensors in one row, in double precision, so that comparing them adds no rounding."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).double()


def checksum(tensor: torch.Tensor) -> str:
    """Return the first 16 digits of the SHA-256 of a tensor's bytes. Equal tensors have equal checksums."""
    return hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()[:16]


def meeting_point(timeout: timedelta, group: str = "") -> dict[str, object]:
    """Return the store in which ranks meet after a restart, or in a second group. Otherwise, return nothing: the environment
    names it.

    torchrun with a static rendezvous (--master-addr) keeps one store through all restarts. In torch 2.13, nothing separates the
    lives in it, so a rank may read the address of a dead process. So each life puts its number before its keys.
    """
    life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if life == "0" and not group:
        return {}
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if size == 1:
        return {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timeout)
    return {"store": dist.PrefixStore(f"life-{life}{group}", store), "rank": rank, "world_size": size}


def join(group: str = "") -> World:
    """Join the process group that torchrun describes in the environment. With plain python, return a world of one.

    With a name for `group`, other processes with the same ranks form a group beside the first one.

    Print how long this rank waited: a slow rank comes last, and waits least. Exit with a message if there is no GPU for this
    process.
    """
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    start = time.perf_counter()
    timeout = timedelta(seconds=float(os.environ.get("GPUCOURSE_COLLECTIVE_TIMEOUT_S", "120")))
    if torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        if device.index >= (gpus := torch.cuda.device_count()):
            sys.exit(
                f"rank {os.environ['RANK']} is process {device.index + 1} of its node, with {gpus} GPUs: start one process "
                f"per GPU (--nproc-per-node={gpus}), or let all ranks compute on CPUs (GPUCOURSE_BACKEND=gloo)"
            )
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device, timeout=timeout, **meeting_point(timeout, group))
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo", timeout=timeout, **meeting_point(timeout, group))
    waiting_room = dist.new_group(backend="gloo", timeout=timedelta(hours=1))
    if dist.get_world_size() > 1 and not group:
        waited_s = time.perf_counter() - start
        sys.stdout.write(f"rank {dist.get_rank()} joined {dist.get_world_size()} ranks, {waited_s:.2f} s after it was ready\n")
        sys.stdout.flush()
    return World(dist.get_rank(), dist.get_world_size(), device, waiting_room)
