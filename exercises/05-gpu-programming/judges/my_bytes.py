"""Judge my_bytes.py of 5.12 on small graphs whose bytes can be counted by hand, and on the operations of a block."""

from __future__ import annotations

from collections.abc import Callable

import operation_bytes
import torch

from gpucourse.judge import Case, Part, Way

Operations = list[tuple[list[str], list[str]]]
WAYS = {
    "every-operation": Way(
        "it counts what each operation reads and writes, {given} bytes: that is one kernel for each. In one kernel, what "
        "is between two operations never leaves the chip",
        (
            "    return sum(bytes_of[name] for name in (read - written) | (written & set(results)))",
            "    return sum(bytes_of[name] for reads, writes in operations for name in (*reads, *writes))",
        ),
    ),
    "read-again": Way(
        "an input that two operations read is counted twice: the kernel reads it once, and keeps it",
        (
            "    return sum(bytes_of[name] for name in (read - written) | (written & set(results)))",
            "    again = sum(bytes_of[name] for reads, _ in operations for name in reads if name not in written)\n"
            "    return again + sum(bytes_of[name] for name in written & set(results))",
        ),
    ),
    "results-forgotten": Way(
        "it counts what is read, and not what is written: the results have to be in memory afterwards",
        ("(read - written) | (written & set(results))", "read - written"),
    ),
    "inputs-forgotten": Way(
        "it counts what is written, and not what is read: the inputs are in memory, and have to be read",
        ("(read - written) | (written & set(results))", "written & set(results)"),
    ),
    "unused-read": Way(
        "a tensor that no operation reads is counted: the kernel does not touch it",
        ("(read - written) | (written & set(results))", "(set(bytes_of) - written) | (written & set(results))"),
    ),
    "last-result-only": Way(
        "only results that no operation reads are counted: a result that is also used inside, such as one that backward needs, "
        "has to be written too",
        ("(written & set(results))", "((written - read) & set(results))"),
    ),
    "result-not-made": Way(
        "an input that is returned unchanged is counted as written: it is in memory already",
        ("| (written & set(results))", "| set(results)"),
    ),
}
SETS: dict[str, Callable[[set[str], set[str], set[str], set[str]], set[str]]] = {
    "results-forgotten": lambda read, written, _results, _names: read - written,
    "inputs-forgotten": lambda _read, written, results, _names: written & results,
    "unused-read": lambda _read, written, results, names: (names - written) | (written & results),
    "last-result-only": lambda read, written, results, _names: (read - written) | ((written - read) & results),
    "result-not-made": lambda read, written, results, _names: (read - written) | results,
}
GRAPHS: dict[str, tuple[Operations, dict[str, int], list[str]]] = {
    "one operation": ([(["x"], ["y"])], {"x": 100, "y": 40}, ["y"]),
    "a chain of 3": ([(["x"], ["a"]), (["a"], ["b"]), (["b"], ["y"])], {"x": 100, "a": 90, "b": 80, "y": 70}, ["y"]),
    "an input read twice": ([(["x", "w"], ["a"]), (["a", "x"], ["y"])], {"x": 100, "w": 8, "a": 64, "y": 32}, ["y"]),
    "an input that nothing reads": ([(["x"], ["y"])], {"x": 100, "y": 40, "z": 17}, ["y"]),
    "a result that is used inside": ([(["x"], ["a"]), (["a"], ["y"])], {"x": 100, "a": 90, "y": 70}, ["a", "y"]),
    "an input that is returned": ([(["x", "w"], ["y"])], {"x": 100, "w": 8, "y": 40, "z": 17}, ["y", "z"]),
}


def count_right(operations: Operations, bytes_of: dict[str, int], results: list[str]) -> int:
    """Return the bytes that a kernel for all operations has to move."""
    read, written = ({name for pair in operations for name in pair[side]} for side in (0, 1))
    return sum(bytes_of[name] for name in (read - written) | (written & set(results)))


def count_wrong(operations: Operations, bytes_of: dict[str, int], results: list[str]) -> dict[str, int]:
    """Return the bytes that each mistake would count."""
    read, written = ({name for pair in operations for name in pair[side]} for side in (0, 1))
    sets = {way: choose(read, written, set(results), set(bytes_of)) for way, choose in SETS.items()}
    inputs_again = sum(bytes_of[name] for reads, _ in operations for name in reads if name not in written)
    return {way: sum(bytes_of[name] for name in names) for way, names in sets.items()} | {
        "every-operation": sum(bytes_of[name] for pair in operations for side in pair for name in side),
        "read-again": inputs_again + sum(bytes_of[name] for name in written & set(results)),
    }


def judge(part: Part) -> None:
    """Judge graphs of a few operations, then the block of the run at two sizes."""
    torch.set_num_threads(1)
    least_bytes = part.function("least_bytes")
    graphs = dict(GRAPHS)
    for rows, width in ((8, 16), (32, 64)):
        tensors = operation_bytes.make_tensors(rows, width, torch.device("cpu"))
        block = operation_bytes.trace(operation_bytes.plain_block, operation_bytes.NAMES, tensors)
        graphs[f"a block of {rows} x {width}"] = block.operations, block.bytes_of, block.results
    cases = []
    for name, (operations, bytes_of, results) in graphs.items():
        copies = [(list(reads), list(writes)) for reads, writes in operations]
        answer = part.call(least_bytes, copies, dict(bytes_of), list(results), case=name)
        ways = count_wrong(operations, bytes_of, results)
        cases.append(Case(name, answer, count_right(operations, bytes_of, results), ways))
    part.compare(cases)
    part.note(f"right for {len(graphs)} graphs")
