#include <cstdlib>

__global__ void fill(int* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = i;  // fault: illegal address
}

int main() {
  const int n = 100;
  int *values = (int*)malloc(n * sizeof(int)), *d_values;
  cudaMalloc(&d_values, n * sizeof(int));
#ifdef MENDED
  fill<<<1, 128>>>(d_values, n);
#else
  fill<<<1, 128>>>(values, n);
#endif
  cudaMemcpy(values, d_values, n * sizeof(int), cudaMemcpyDeviceToHost);
#ifdef MENDED
  return values[99] != 99;
#endif
  return 0;
}
