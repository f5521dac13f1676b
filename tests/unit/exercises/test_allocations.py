"""What tracers of memory say, read: maps and counters of all kinds, sites, probes; and when a tracer begins to watch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

allocations = beside_the_script("B-ebpf-tracing", "allocations")
MAPS = {
    "@allocations": 3, "@bytes": 700, "@failed": {"2": 1}, "@size": {"4096": 300, "8192": 100},
    "@site": {"4096": "load_weights", "8192": "\n        grow_cache+12\n        main+3\n"},
    "@sizes": [{"min": 64, "max": 127, "count": 1}, {"min": 256, "max": 511, "count": 2}],
}  # fmt: skip


def test_read_maps_and_read_counters_agree() -> None:
    counters = {
        ("allocations",): 3, ("bytes",): 700, ("failed", "2"): 1, ("alive", "load_weights"): 300, ("alive", "grow_cache"): 100,
        ("alive", "freed"): 0, ("size", "6"): 1, ("size", "8"): 2, ("calls", "cudaMalloc"): 4,
    }  # fmt: skip
    totals = allocations.read_maps(MAPS)
    assert totals == allocations.Totals(3, 700, {2: 1}, {"load_weights": 300, "grow_cache": 100}, {6: 1, 8: 2})
    assert totals == allocations.read_counters({key: value for key, value in counters.items() if value})
    assert (totals.alive_bytes, totals.leak) == (400, "grow_cache")
    assert allocations.read_calls(counters) == [("cudaMalloc", 4)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"@size": 5}, "@size has to be numbers by key"),
        ({"@allocations": {"cudaMalloc": 3}}, "@allocations has to be one number"),
        ({"@sizes": 7}, "a histogram: hist"),
        ({"@failed": {"no memory": 1}}, "invalid literal"),
    ],
)
def test_read_maps_names_a_map_of_another_kind(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        allocations.read_maps(MAPS | changes)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("grow_cache", "grow_cache"), ("\n cudaMalloc+0\n load_weights+115\n main+7\n", "load_weights"),
        ("0x7ffd1234", "unknown"), ("", "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_name_site_is_the_first_function_outside_of_the_runtime(value: object, name: str) -> None:
    assert allocations.name_site(value) == name


@pytest.mark.parametrize(
    ("program", "functions"),
    [
        ("uprobe:$1:cudaMalloc { @a = count(); } uretprobe:$1:cudaFree { @b = count(); }", []),
        ("uprobe:$1:cudaMalloc,uprobe:$1:cudaMemcpy { @a = count(); }", ["cudaMemcpy"]),
        ("// uprobe:$1:cudaMemcpy\n/* uprobe:$1:cudaMemcpy */ uprobe:$1:cudaFree { @a = count(); }", []),
        ("uprobe:$1:cuda* { @a = count(); }", ["cudaLaunchKernel", "cudaMemcpy"]),
        ("uprobe:/lib/libc.so.6:malloc { @a = count(); }", ["malloc"]),
    ],
)
def test_list_other_probes_lists_other_functions(program: str, functions: list[str]) -> None:
    exported = ["cudaFree", "cudaLaunchKernel", "cudaMalloc", "cudaMemcpy"]
    assert allocations.list_other_probes(program, exported) == functions
