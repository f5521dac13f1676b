// variants: 5
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

__global__ void sum_tiles(const int* in, int* out, int tiles) {
  __shared__ __align__(16) int stage[2][64];
  int t = threadIdx.x, sum = 0;
#if VARIANT == 1
  __pipeline_memcpy_async(&stage[0][t], &in[t], 4);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[(i + 1) * 64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[i % 2][63 - t];
    __syncthreads();
  }
#elif VARIANT == 2
  for (int i = 0; i < tiles; ++i) {
    unsigned place = __cvta_generic_to_shared(&stage[0][t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(&in[i * 64 + t]));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    sum += stage[0][63 - t];
    __syncthreads();
  }
#elif VARIANT == 3
  auto block = cg::this_thread_block();
  for (int i = 0; i < tiles; ++i) {
    cg::memcpy_async(block, stage[0], in + i * 64, 64 * sizeof(int));
    cg::wait(block);
    sum += stage[0][63 - t];
    block.sync();
  }
#elif VARIANT == 4
  auto block = cg::this_thread_block();
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (t == 0) init(&ready, blockDim.x);
  block.sync();
  for (int i = 0; i < tiles; ++i) {
    cuda::memcpy_async(block, stage[0], in + i * 64, 64 * sizeof(int), ready);
    ready.arrive_and_wait();
    sum += stage[0][63 - t];
    block.sync();
  }
#else
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipeline = cuda::make_pipeline(block, &state);
  pipeline.producer_acquire();
  cuda::memcpy_async(block, stage[0], in, 64 * sizeof(int), pipeline);
  pipeline.producer_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stage[(i + 1) % 2], in + (i + 1) * 64, 64 * sizeof(int), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += stage[i % 2][63 - t];
    pipeline.consumer_release();
  }
#endif
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 256 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 256; ++i) in[i] = i;
  sum_tiles<<<1, 64>>>(in, out, 4);
  cudaDeviceSynchronize();
  return out[63] != 384;
}
