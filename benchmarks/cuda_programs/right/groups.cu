// variants: 3
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void run(int* values, int* out) {
#if VARIANT == 1  // the whole grid, three times
  auto grid = cg::this_grid();
  int rank = grid.thread_rank(), n = grid.size();
  values[rank] = rank;
  for (int i = 0; i < 3; ++i) {
    grid.sync();
    int value = values[(rank + 1) % n];
    grid.sync();
    values[rank] = value;
  }
  if (rank == 0) *out = values[0];
#elif VARIANT == 2  // tiles in shared memory, each with its own barrier
  __shared__ int tile_values[64];
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  tile_values[threadIdx.x] = tile.thread_rank();
  tile.sync();
  int other = tile_values[threadIdx.x ^ 15];
  if (blockIdx.x == 0 && threadIdx.x == 12) *out = other;
#else  // the lanes that are in the branch
  if (threadIdx.x % 3 == 0) {
    auto active = cg::coalesced_threads();
    int first = active.shfl(int(threadIdx.x), 0);
    active.sync();
    if (blockIdx.x == 1 && active.thread_rank() == 0 && threadIdx.x < 32) *out = first + 3;
  }
#endif
}

int main() {
  int *values, *out;
  cudaMallocManaged(&values, 128 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  void* arguments[] = {&values, &out};
  cudaLaunchCooperativeKernel((void*)run, 2, 64, arguments, 0, 0);
  cudaDeviceSynchronize();
  return *out != 3;
}
