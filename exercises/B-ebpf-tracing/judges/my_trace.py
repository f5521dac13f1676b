"""Judge my_trace.bt of B.3: bpftrace runs it while the stand-in engine allocates, frees and leaks, and some calls fail."""

from __future__ import annotations

import os
import shutil
from typing import Any

import allocations
import bpf
import stand_in
import symbols
from memory_totals import CASE, WORKLOAD, folder, judge_probes, judge_totals, refuse_open

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "failed-counted": Way(
        "it counts {failed} calls that failed as allocations: only when cudaMalloc returns does retval show whether there was "
        "memory",
        ("if ((int32)retval == 0) {", "if (@wanted[tid] > 0) {"),
    ),
    "failed-as-bytes": Way(
        "it counts {bytes:,} bytes of failed calls: at the entry, bytes are only requested; the return shows whether they were "
        "allocated",
        ("  if ((int32)retval == 0) {\n    $pointer = *(uint64*)uptr(@where[tid]);\n    @allocations = count();\n"
         "    @bytes = sum(@wanted[tid]);",
         "  @bytes = sum(@wanted[tid]);\n  if ((int32)retval == 0) {\n    $pointer = *(uint64*)uptr(@where[tid]);\n"
         "    @allocations = count();"),
    ),
    "failed-without-code": Way(
        "@failed has the keys {codes}: its key must be the error code that cudaMalloc returns (2: no memory is left)",
        ("@failed[(int32)retval]", "@failed[0]"),
    ),
    "histogram-other": Way(
        "@sizes holds {blocks} blocks, but {right} were allocated: call hist() where you count the allocation",
        ("@wanted[tid] = arg1;", "@wanted[tid] = arg1;\n  @sizes = hist(arg1);"),
    ),
    "never-freed": Way(
        "it says that {given:,} bytes are alive, but only {alive:,} are: compare the blocks in @size with the addresses that "
        "cudaFree got",
        ("  delete(@size[arg0]);\n", ""),
    ),
    "address-of-pointer": Way(
        "the keys of @size are closer together than the blocks are long, so they are not the addresses of the blocks. The "
        "first argument of cudaMalloc is where the program keeps the address of a block, but cudaFree gets the address itself",
        ("$pointer = *(uint64*)uptr(@where[tid]);", "$pointer = @where[tid];"),
    ),
    "returned-code-as-address": Way(
        "a key of @size is the return value of cudaMalloc, which is an error code: 0. The address of the block is where its "
        "first argument points",
        ("$pointer = *(uint64*)uptr(@where[tid]);", "$pointer = retval;"),
    ),
    "size-as-key": Way(
        "the keys of @size are sizes: cudaFree gets an address and no size, so use the address as the key",
        ("@size[$pointer] = ", "@size[@wanted[tid]] = "),
    ),
    "more-than-a-pointer": Way(
        "the keys of @size contain more than an address: cudaFree has only the address and cannot find the block again, and "
        "each stack would make its own keys. Keep the calling function in @site[pointer]",
        ("@size[$pointer] = ", "@size[$pointer, @caller[tid]] = "),
    ),
    "site-unknown": Way(
        "the site of a block is {sites}: @site has to lead to the function of the engine that called cudaMalloc. Use the "
        "return address, which is on top of the stack at the entry, or ustack() at the return",
        ("usym(@caller[tid])", "usym(@where[tid])"),
    ),
    "not-only-memory": Way(
        "it also traces {names}: each probe costs the process time at every call, so trace only memory",
        ("uprobe:$1:cudaFree {\n", "uprobe:$1:cudaLaunchKernel { @launches = count(); }\n\nuprobe:$1:cudaFree {\n"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Run one workload while the part traces it."""
    refuse_open(part)
    if shutil.which("bpftrace") is None or os.geteuid() != 0:
        raise _refuse("bpftrace is not installed" if os.geteuid() == 0 else "bpftrace needs root")
    library = stand_in.build(is_measured=False) / stand_in.LIBRARY
    judge_probes(part, allocations.list_other_probes(part.text, sorted(symbols.list_functions(library))))
    try:
        maps, ledger = allocations.trace_by_bpftrace(part.text, WORKLOAD, folder())
    except bpf.TracerFailed as error:
        if (reason := bpf.find_reason(library)) is not None:
            raise _refuse(reason) from None
        if "mismatch for @size" in str(error):
            raise part.wrong("more-than-a-pointer") from None
        raise Verdict("failed", "not-bpftrace", f"bpftrace refuses it: {error}") from None
    _judge_keys(part, maps)
    try:
        answer = allocations.read_maps(maps)
    except ValueError as error:
        raise Verdict("failed", "other-maps", str(error), CASE) from None
    judge_totals(part, answer, ledger)


def _refuse(reason: str) -> Verdict:
    return Verdict(
        "open", sentence=f"it cannot be tried here: {reason}. my_preload.c is judged without it, and one of the two is enough"
    )


def _judge_keys(part: Part, maps: dict[str, Any]) -> None:
    """Raise the verdict if a key of @size is not the address of a block."""
    blocks = maps.get("@size")
    if not isinstance(blocks, dict) or not blocks:
        return
    if not all(key.isdecimal() for key in blocks):
        raise part.wrong("more-than-a-pointer", CASE)
    if set(blocks) == {"0"}:
        raise part.wrong("returned-code-as-address", CASE)
    if all(int(key) == size for key, size in blocks.items()):
        raise part.wrong("size-as-key", CASE)
    addresses = [int(key) for key in blocks]
    if max(addresses) - min(addresses) < sum(blocks.values()) - max(blocks.values()):  # blocks would overlap
        raise part.wrong("address-of-pointer", CASE)
