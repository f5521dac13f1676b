#include <cuda_runtime.h>

__global__ void vector_add(const float* a, const float* b, float* sum, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void block_sum(const float* x, float* sum, int n) {
  __shared__ float part[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0.0f;  // every thread reaches every barrier, also those past the end
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();  // the next step reads what this one wrote
  }
  if (t == 0) atomicAdd(sum, part[0]);
}
