"""What the emulator's versions of CUDA's libraries compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("libraries.cu")


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("blas", "0 wrong, norm 5, largest 2, too long 13"),
        ("random", "mean 3, deviation 2, uniform 0.5, Philox 6627e8d5"),  # of the paper's test vectors
        ("thrust", "squares 140, value 73, scan 28, kept 4"),
        ("cub", "0 wrong, sums 295 295, first 6, last 0"),
        ("fft", "back, sum 1, wrong type 3"),
        ("graph", "before 0, after 12 24, nodes in order 10"),
        ("vectors", "-2 4 -2, 0.1 -0.2, 68"),
        ("product", "0: 0 10 0 10, too deep 7"),
        ("devices", "1 GPUs, sum 32, peer 0, threads 1, operation not supported"),
    ],
)
def test_library_computes_what_is_known(program: Any, name: str, output: str) -> None:
    result = program.run(name)
    assert (result.output, result.first_fault()) == (output, None)


def test_run_shows_as_many_gpus_as_it_was_given(program: Any) -> None:
    result = program.run("devices", devices=2)
    assert (result.output, result.first_fault()) == ("2 GPUs, sum 64, peer 1, threads 1, operation not supported", None)


def test_thrust_takes_functions_with_values_and_of_other_types(build: Callable[..., Any]) -> None:
    text = """
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
struct Halve {
  int by;
  explicit Halve(int by_) : by(by_) {}
  __host__ __device__ long operator()(long i) const { return i / by; }
};
int main() {
  thrust::device_vector<int> numbers(2);
  numbers[0] = 7, numbers[1] = 8;
  auto places = thrust::make_transform_iterator(thrust::counting_iterator<long>(0), Halve(2));
  auto twice = thrust::make_permutation_iterator(numbers.begin(), places);
  thrust::host_vector<int> out(4);
  thrust::copy(twice, twice + 4, out.begin());
  for (int number : out) printf("%d", number);
  const auto first = numbers.begin();
  printf(" %d", thrust::inner_product(first, first + 2, first, 0, thrust::maximum<float>(), thrust::multiplies<float>()));
}
"""
    assert build(text).run().output == "7788 64"


def test_state_of_random_numbers_may_be_copied(build: Callable[..., Any]) -> None:
    text = """
#include <curand_kernel.h>
__global__ void begin(curandState* states) { curand_init(1, threadIdx.x, 0, states + threadIdx.x); }
__global__ void draw(curandState* states, float* numbers) {
  curandState own = states[threadIdx.x];
  numbers[threadIdx.x] = curand_normal(&own);
  states[threadIdx.x] = own;
}
int main() {
  curandState* states;
  float* numbers;
  cudaMalloc(&states, 32 * sizeof *states);
  cudaMalloc(&numbers, 32 * sizeof *numbers);
  begin<<<1, 32>>>(states);
  draw<<<1, 32>>>(states, numbers);
  return cudaDeviceSynchronize();
}
"""
    assert build(text).run().first_fault() is None


def test_bytes_of_random_numbers_are_written(build: Callable[..., Any]) -> None:
    text = """
#include <curand.h>
__global__ void count(const unsigned char* bytes, int* total) { atomicAdd(total, bytes[threadIdx.x] == 0xff); }
int main() {
  curandGenerator_t generator;
  unsigned* numbers;
  int* total;
  cudaMalloc(&numbers, 1024);
  cudaMallocManaged(&total, sizeof *total);
  *total = 0;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandGenerate(generator, numbers, 256);
  count<<<1, 1024>>>(reinterpret_cast<unsigned char*>(numbers), total);
  cudaDeviceSynchronize();
  printf("%d", *total > 0);
}
"""
    result = build(text).run()
    assert (result.output, result.first_fault()) == ("1", None)


def test_textures_and_surfaces_return_what_they_describe(build: Callable[..., Any]) -> None:
    text = """
int main() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  float numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7}, copies[8];
  cudaResourceDesc resource{}, of_texture, of_surface;
  cudaTextureDesc how{}, same;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaArray_t& array = resource.res.array.array;
  cudaMallocArray(&array, &format, 4, 2, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArrayAsync(array, 0, 0, numbers, 16, 16, 2, cudaMemcpyHostToDevice);
  cudaMemcpy2DFromArrayAsync(copies, 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost);
  how.filterMode = cudaFilterModeLinear;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  cudaCreateSurfaceObject(&surface, &resource);
  cudaGetTextureObjectResourceDesc(&of_texture, texture);
  cudaGetTextureObjectTextureDesc(&same, texture);
  cudaGetSurfaceObjectResourceDesc(&of_surface, surface);
  cudaDeviceSynchronize();
  printf("%d %d %d %g ", of_texture.res.array.array == array, of_surface.res.array.array == array, same.filterMode, copies[7]);
  printf("%s", cudaGetErrorName(cudaGetTextureObjectResourceDesc(&of_texture, 0)));
}
"""
    assert build(text).run().output == "1 1 1 7 cudaErrorInvalidValue"


def test_products_with_sparse_matrices(build: Callable[..., Any]) -> None:
    text = """
#include <cusparse.h>
#define CSR CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ONE, CUDA_R_64F
#define PLAIN CUSPARSE_OPERATION_NON_TRANSPOSE
__managed__ int rows[] = {1, 3, 4, 6}, columns[] = {1, 3, 3, 1, 2};
__managed__ double values[] = {1, 2, 3, 4, 5};
__global__ void twice(double* numbers) { numbers[threadIdx.x] *= 2; }
int main() {
  double numbers[] = {1, 2, 3}, one = 1, zero = 0, half = 0.5, *x, *y;
  cudaMalloc(&x, sizeof numbers);
  cudaMalloc(&y, sizeof numbers);
  cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  cusparseHandle_t handle;
  cusparseSpMatDescr_t a;
  cusparseDnVecDescr_t from, to, longer;
  cusparseDnMatDescr_t row;
  cusparseCreate(&handle);
  cusparseCreateCsr(&a, 3, 3, 5, rows, columns, values, CSR);
  cusparseCreateDnVec(&from, 3, x, CUDA_R_64F);
  cusparseCreateDnVec(&to, 3, y, CUDA_R_64F);
  cusparseCreateDnVec(&longer, 4, y, CUDA_R_64F);
  cusparseSpMV(handle, PLAIN, &one, a, from, &zero, to, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  twice<<<1, 3>>>(y);
  cusparseSpMV(handle, CUSPARSE_OPERATION_TRANSPOSE, &one, a, from, &half, to, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  cudaMemcpy(numbers, y, sizeof numbers, cudaMemcpyDeviceToHost);
  printf("%g %g %g, ", numbers[0], numbers[1], numbers[2]);
  cusparseCreateDnMat(&row, 1, 3, 3, x, CUDA_R_64F, CUSPARSE_ORDER_ROW);
  const cusparseOperation_t turned = CUSPARSE_OPERATION_TRANSPOSE;
  cusparseSpMM(handle, PLAIN, turned, &one, a, row, &zero, to, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr);
  cudaMemcpy(numbers, y, sizeof numbers, cudaMemcpyDeviceToHost);
  printf("%g %g %g, ", numbers[0], numbers[1], numbers[2]);
  size_t bytes = 0;
  cusparseSpMV_bufferSize(handle, PLAIN, &one, a, longer, &zero, to, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes);
  const auto error =
      cusparseSpMV(handle, PLAIN, &one, a, longer, &zero, to, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  printf("%d %s", bytes > 0, cusparseGetErrorString(error));
}
"""
    result = build(text).run()
    assert (result.output, result.first_fault()) == ("20 24 22, 7 9 14, 1 invalid value", None)
