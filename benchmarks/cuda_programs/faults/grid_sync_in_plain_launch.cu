#include <cooperative_groups.h>

__global__ void two_steps(int* values, int* out) {
  auto grid = cooperative_groups::this_grid();
  values[grid.thread_rank()] = grid.thread_rank();
  grid.sync();  // fault: barrier, refused launch
  out[grid.thread_rank()] = values[grid.size() - 1 - grid.thread_rank()];
}

int main() {
  int *values, *out;
  cudaMallocManaged(&values, 128 * sizeof(int));
  cudaMallocManaged(&out, 128 * sizeof(int));
#ifdef MENDED
  void* arguments[] = {&values, &out};
  cudaLaunchCooperativeKernel((void*)two_steps, dim3(2), dim3(64), arguments);
#else
  two_steps<<<2, 64>>>(values, out);
#endif
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[0] != 127;
#endif
  return 0;
}
