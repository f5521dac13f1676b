#include <cuda_runtime.h>

__global__ void vector_add(const float* a, const float* b, float* sum, int n) {
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) sum[i] = a[i] + b[i];
}

__device__ float add_warp(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffffu, value, d);
  return value;
}

__global__ void block_sum(const float* x, float* sum, int n) {
  __shared__ float of_warp[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float mine = add_warp(i < n ? x[i] : 0.0f);
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  if (warp > 0) return;  // a whole warp, and no barrier follows
  const float all = add_warp(lane < blockDim.x / 32 ? of_warp[lane] : 0.0f);
  if (lane == 0) atomicAdd(sum, all);
}
