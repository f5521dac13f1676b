#include <cuda_runtime.h>

// A square tile without padding: row r is stored rotated, so that a column meets every bank once.
__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32 * 32];
  const int a = threadIdx.x, b = threadIdx.y, down = blockIdx.y * 32, right = blockIdx.x * 32;
  const bool reads = down + b < rows && right + a < columns, writes = right + b < columns && down + a < rows;
  if (reads) tile[b * 32 + (a ^ b)] = in[(down + b) * columns + right + a];
  __syncthreads();
  if (writes) out[(right + b) * rows + down + a] = tile[a * 32 + (b ^ a)];
}

// Every thread has one sample of each channel, and the blocks past the end have none: no warp splits, but half the blocks idle.
__global__ void clip_sum(const float* left, const float* right, float* sum, int n, float limit) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < n ? fmaxf(-limit, fminf(left[i], limit)) + fmaxf(0.0f, right[i]) : 0.0f;
  for (int lanes = 16; lanes > 0; lanes >>= 1) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  if (threadIdx.x % 32 == 0 && i < n) atomicAdd(sum, value);
}
