"""What 5.1 reads of a .cu file: the bodies of its kernels, and the bytes that each needs."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

findings = beside_the_script("05-gpu-programming", "findings")
TEXT = """
// __global__ void vector_add(float* in_a_comment) { }
__global__ void __launch_bounds__(256) vector_add(const float* a, int n) {
  printf("a { in a text");  /* OPEN("in a comment") */
  if (n) { return; }
}
template <int T> __global__ __launch_bounds__(64) void tiled(float* a) { OPEN("what?"); }
__global__ void declared(float* a);
"""


def test_find_body_takes_what_is_between_the_braces_of_the_kernel() -> None:
    body = findings.find_body(TEXT, "vector_add")
    assert body.strip().startswith("printf")
    assert body.strip().endswith("}")
    assert not findings.is_open(body)
    assert findings.is_open(findings.find_body(TEXT, "tiled"))
    assert [findings.find_body(TEXT, name) for name in ("declared", "vector")] == [None, None]
    assert findings.list_kernels(TEXT) == ["vector_add", "tiled"]


@pytest.mark.parametrize(
    ("kernel", "byte_count"),
    [("vector_add", 1200), ("block_sum", 400), ("clip_sum", 800), ("transpose", 800), ("copy", 800), ("column_of_32", None)],
)
def test_count_bytes_counts_every_array_once(kernel: str, byte_count: int | None) -> None:
    assert findings.count_bytes(kernel, 100) == byte_count


@pytest.mark.parametrize(("elements", "shape"), [(1, (1, 1)), (31, (5, 6)), (1000, (31, 32)), (4096, (64, 64))])
def test_shape_of_transpose_has_no_more_numbers_than_asked_for(elements: int, shape: tuple[int, int]) -> None:
    assert findings.shape_of_transpose(elements) == shape
