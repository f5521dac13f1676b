"""Judge my_preload.c of B.3: with it, the stand-in engine allocates, frees and leaks memory, and some calls fail."""

from __future__ import annotations

import allocations
import stand_in
import symbols
from memory_totals import CASE, WORKLOAD, folder, judge_probes, judge_totals, refuse_open

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "failed-counted": Way(
        "it counts {failed} failed calls as allocations: the return value of cudaMalloc says whether there was memory",
        ('    add(1, "failed %d", code);\n    return code;\n', '    add(1, "failed %d", code);\n'),
    ),
    "failed-as-bytes": Way(
        "it counts {bytes:,} bytes of failed calls: add the bytes after the call has returned, and only if it returned 0",
        ('    add(1, "failed %d", code);\n', '    add(1, "failed %d", code);\n    add(bytes, "bytes");\n'),
    ),
    "failed-without-code": Way(
        "failed calls are counted under {codes}: the counter's name must contain the code that cudaMalloc returned (2: no "
        "memory is left)",
        ('    add(1, "failed %d", code);\n', '    add(1, "failed %d", 1);\n'),
    ),
    "histogram-other": Way(
        "the counters size N hold {blocks} blocks, but {right} were allocated: count the size where you count the allocation",
        ("  int code = next(pointer, bytes);\n", '  int code = next(pointer, bytes);\n  add(1, "size %d", power(bytes));\n'),
    ),
    "never-freed": Way(
        "it says that {given:,} bytes are alive, but only {alive:,} are: compare the blocks in your table with the addresses "
        "that cudaFree got",
        ("add(-blocks[place].bytes,", "add(0,"),
    ),
    "site-unknown": Way(
        "it has live blocks of {sites}, which is not a function of the engine: the caller of cudaMalloc is at "
        "__builtin_return_address(0), read in cudaMalloc itself",
        ("name_of(__builtin_return_address(0))", "name_of((void *)cudaMalloc)"),
    ),
    "not-handed-on": Way(
        "with your tracer the engine behaves differently ({calls} calls failed instead of {right}): a tracer passes "
        "every call on to the runtime, with next, and returns its result",
        ("  return next(pointer);\n", "  (void)next;\n  return 0;\n"),
    ),
    "not-only-memory": Way(
        "it also intercepts {names}, which costs the process time at every call: intercept only the memory functions",
        ("int cudaFree(void *pointer) {\n",
         'int cudaDeviceSynchronize(void) {\n  NEXT("cudaDeviceSynchronize", int(void));\n  return next();\n}\n\n'
         "int cudaFree(void *pointer) {\n"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Run one workload in a process that has loaded the part."""
    refuse_open(part)
    try:
        stand_in.build(is_measured=False)
        library = stand_in.build_library(part.file, folder())
        functions = [name for name in sorted(symbols.list_functions(library)) if name.startswith("cuda")]
        undisturbed = allocations.run_alone(WORKLOAD)
    except stand_in.CompilerRefused as error:
        raise Verdict("failed", "not-c", str(error)) from None
    except (stand_in.UnsupportedMachine, symbols.TracerFailed) as error:
        raise Verdict("open", sentence=f"it cannot be tried here: {error}") from None
    judge_probes(part, [name for name in functions if not name.startswith(allocations.MEMORY_CALLS)])
    try:
        counters, ledger = allocations.trace_by_preload(library, WORKLOAD, folder())
    except stand_in.EngineEnded as error:
        raise Verdict("failed", "engine-ended", f"with your tracer loaded, the engine does not answer: {error}", CASE) from None
    if ledger["sites"] != undisturbed["sites"]:
        raise part.wrong("not-handed-on", CASE, calls=ledger["failed"], right=undisturbed["failed"])
    judge_totals(part, allocations.read_counters(counters), ledger)
