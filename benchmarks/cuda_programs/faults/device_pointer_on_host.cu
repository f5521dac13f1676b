#include <cstdio>

__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }

int main() {
  int* values;
#ifdef MENDED
  cudaMallocManaged(&values, 32 * sizeof(int));
#else
  cudaMalloc(&values, 32 * sizeof(int));
#endif
  fill<<<1, 32>>>(values);
  cudaDeviceSynchronize();
  int last = values[31];  // fault: illegal address
  printf("%d\n", last);
  return last != 31;
}
