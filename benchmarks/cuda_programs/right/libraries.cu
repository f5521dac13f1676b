// variants: 5
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <curand_kernel.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

__global__ void run(int* out) {
#if VARIANT == 2
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int sum = Reduce(storage).Sum(threadIdx.x);
  if (threadIdx.x == 0) *out = sum;
#elif VARIANT == 3
  curandState state;
  curand_init(1, threadIdx.x, 0, &state);
  float value = curand_uniform(&state);
  if (value > 0 && value <= 1) atomicAdd(out, threadIdx.x);
#endif
}

int main() {
  int* out;
  cudaMallocManaged(&out, sizeof(int));
  *out = 0;
#if VARIANT == 1
  thrust::device_vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[i] = 63 - i;
  thrust::sort(values.begin(), values.end());
  *out = values[0] == 0 ? thrust::reduce(values.begin(), values.end()) : -1;
#elif VARIANT == 4
  float *a, *b, *c, one = 1, zero = 0;
  for (float** matrix : {&a, &b, &c}) cudaMallocManaged(matrix, 64 * sizeof(float));
  for (int i = 0; i < 64; ++i) a[i] = 7, b[i] = 36;
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, 8, b, 8, &zero, c, 8);
  cudaDeviceSynchronize();
  *out = c[9];
#elif VARIANT == 5
  int *values, *sum;
  cudaMallocManaged(&values, 64 * sizeof(int));
  cudaMallocManaged(&sum, sizeof(int));
  for (int i = 0; i < 64; ++i) values[i] = i;
  void* storage = nullptr;
  size_t bytes = 0;
  cub::DeviceReduce::Sum(storage, bytes, values, sum, 64);
  cudaMalloc(&storage, bytes);
  cub::DeviceReduce::Sum(storage, bytes, values, sum, 64);
  cudaDeviceSynchronize();
  *out = *sum;
#else
  run<<<1, 64>>>(out);
  cudaDeviceSynchronize();
#endif
  return *out != 2016;
}
