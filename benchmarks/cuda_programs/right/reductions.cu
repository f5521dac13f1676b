// variants: 4
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void sum(const int* in, int n, int* out) {
#if VARIANT == 1
  __shared__ int parts[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  parts[threadIdx.x] = i < n ? in[i] : 0;
  for (int step = 64; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
  }
  if (threadIdx.x == 0) atomicAdd(out, parts[0]);
#elif VARIANT == 2
  __shared__ int parts[32];
  int value = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += in[i];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / 32 ? parts[lane] : 0;
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (lane == 0) atomicAdd(out, value);
  }
#elif VARIANT == 3
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = cg::reduce(tile, i < n ? in[i] : 0, cg::plus<int>());
  if (tile.thread_rank() == 0) atomicAdd(out, value);
#else
  __shared__ volatile int parts[128];
  int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
  parts[t] = i < n ? in[i] : 0;
  __syncthreads();
  if (t < 64) parts[t] = parts[t] + parts[t + 64];
  __syncthreads();
  if (t < 32) {
    int value = parts[t] + parts[t + 32];
    for (int step = 16; step > 0; step /= 2) {
      parts[t] = value;
      __syncwarp();
      if (t < step) value += parts[t + step];
      __syncwarp();
    }
    if (t == 0) atomicAdd(out, value);
  }
#endif
}

int main() {
  const int n = 500;
  int *in, *out;
  cudaMallocManaged(&in, n * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < n; ++i) in[i] = i;
  *out = 0;
  sum<<<4, 128>>>(in, n, out);
  cudaDeviceSynchronize();
  return *out != n * (n - 1) / 2;
}
