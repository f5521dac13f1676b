#include <cuda_runtime.h>

__device__ float warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffffu, value, d);
  return value;
}

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];  // rows of 33: the numbers of a column lie in 32 different banks
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  if (y < rows && x < columns) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  if (y < columns && x < rows) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void clip_sum(const float* left, const float* right, float* sum, int n, float limit) {
  const int i = blockIdx.x / 2 * blockDim.x + threadIdx.x;
  float value = 0.0f;
  if (blockIdx.x % 2) {  // whole blocks go one way
    if (i < n) value = fmaxf(-limit, fminf(left[i], limit));
  } else {
    if (i < n) value = fmaxf(0.0f, right[i]);
  }
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}
