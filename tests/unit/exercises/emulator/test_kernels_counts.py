"""What a warp's accesses cost: sectors, lanes, bytes and bank conflicts, against figures that follow from the addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SOURCE = r"""
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
struct Particle { float x, y, z, mass; };
template <int S> __global__ void stride(const float* x, float* y) { int i = threadIdx.x; y[i * S] = x[i * S]; }
__global__ void offset(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x + 1]; }
__global__ void four(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void structures(const Particle* p, float* y) { y[threadIdx.x] = p[threadIdx.x].mass; }
__global__ void same(const float* x, float* y) { y[threadIdx.x] = x[0]; }
__global__ void odd(const float* x, float* y) { if (threadIdx.x % 2) y[threadIdx.x] = x[threadIdx.x]; }
template <int W> __global__ void transpose(const float* x, float* y) {
  __shared__ float t[32][W];
  t[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
__global__ void growing(float* y) {
  for (int d = 1; d <= 32; d *= 2) { if (threadIdx.x < d) y[threadIdx.x] = d; __syncthreads(); }
}
__global__ void tile(const half* x, float* y) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.5f);
  wmma::load_matrix_sync(a, x, 16);
  wmma::load_matrix_sync(b, x, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
}
int main() {
  float *x, *y, r[256];
  half* h;
  cudaMalloc(&x, 8192); cudaMalloc(&y, 8192); cudaMalloc(&h, 512);
  cudaMemset(x, 0, 8192); cudaMemset(y, 0, 8192);
  half values[256];
  for (int i = 0; i < 256; ++i) values[i] = __float2half(i % 7 - 3);
  cudaMemcpy(h, values, 512, cudaMemcpyHostToDevice);
  stride<1><<<1, 32>>>(x, y); stride<2><<<1, 32>>>(x, y); stride<32><<<1, 32>>>(x, y);
  offset<<<1, 32>>>(x, y);
  four<<<1, 32>>>((float4*)x, (float4*)y);
  structures<<<1, 32>>>((Particle*)x, y);
  same<<<1, 32>>>(x, y);
  odd<<<1, 64>>>(x, y);
  transpose<32><<<1, dim3(32, 32)>>>(x, y); transpose<33><<<1, dim3(32, 32)>>>(x, y);
  growing<<<1, 32>>>(y);
  tile<<<1, 32>>>(h, y);
  cudaMemcpy(r, y, 1024, cudaMemcpyDeviceToHost);
  double worst = 0;
  for (int i = 0; i < 16; ++i) for (int j = 0; j < 16; ++j) {
    float right = 0.5f;
    for (int k = 0; k < 16; ++k) right += __half2float(values[i * 16 + k]) * __half2float(values[j * 16 + k]);
    worst = fmax(worst, fabs(right - r[i * 16 + j]));
  }
  printf("%g %s", worst, cudaGetErrorString(cudaGetLastError()));
}
"""


@pytest.fixture(scope="module")
def result(build: Callable[..., Any]) -> Any:
    return build(SOURCE).run(trace=3)


@pytest.mark.parametrize(
    ("kernel", "load", "store"),
    [
        ("stride<1>", 4, 4),
        ("stride<2>", 8, 8),
        ("stride<32>", 32, 32),
        ("offset", 5, 4),
        ("four", 16, 16),
        ("structures", 16, 4),
        ("same", 1, 4),
    ],
)
def test_counts_of_sectors_follow_from_the_addresses(result: Any, kernel: str, load: float, store: float) -> None:
    counts = result.kernels[kernel]
    assert (counts.global_load.sectors_per_request, counts.global_store.sectors_per_request) == (load, store)
    assert (counts.global_load.requests, counts.global_load.lanes_per_request) == (1, 32)


def test_counts_of_bytes_and_of_the_fewest_sectors(result: Any) -> None:
    four, structures, same = (result.kernels[name].global_load for name in ("four", "structures", "same"))
    assert (four.bytes, four.sectors_ideal) == (512, 16)
    assert (structures.bytes, structures.sectors_ideal) == (128, 4)
    assert (same.bytes, same.sectors_ideal) == (128, 1)


def test_counts_of_bank_conflicts_of_a_transposed_tile(result: Any) -> None:
    plain, padded = result.kernels["transpose<32>"], result.kernels["transpose<33>"]
    assert (plain.shared_load.conflicts_per_request, padded.shared_load.conflicts_per_request) == (31, 0)
    assert (plain.shared_store.conflicts_per_request, plain.shared_load.requests) == (0, 32)


def test_counts_keep_requests_before_and_after_a_barrier_apart(result: Any) -> None:
    store = result.kernels["growing"].global_store
    assert (store.requests, store.lanes) == (6, 63)


def test_trace_keeps_the_first_requests_with_their_addresses(result: Any) -> None:
    load, store = result.kernels["stride<2>"].trace
    assert (load.write, store.write, load.shared, load.size) == (False, True, False, 4)
    assert [address - load.addresses[0] for address in load.addresses] == list(range(0, 256, 8))
    assert load.line == "kernels.cu:7"
    assert len(result.kernels["transpose<32>"].trace) == 3
    assert [address is None for address in result.kernels["odd"].trace[0].addresses] == [True, False] * 16


def test_counts_of_products_of_tiles_are_their_bytes(result: Any) -> None:
    tile = result.kernels["tile"]
    assert result.output == "0 no error"
    assert (tile.global_load.bytes, tile.global_store.bytes, tile.global_load.sectors_per_request) == (1024, 1024, None)
    assert result.first_fault() is None
