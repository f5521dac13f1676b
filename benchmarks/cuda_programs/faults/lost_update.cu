#include <cstdio>

__global__ void count(const int* values, int n, int* positives) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && values[i] > 0) {
#ifdef MENDED
    atomicAdd(positives, 1);
#else
    *positives += 1;  // fault: race
#endif
  }
}

int main() {
  const int n = 1000;
  int values[n], *d_values, *d_count, count_of_host = 0;
  for (int i = 0; i < n; ++i) values[i] = i % 3 - 1;
  cudaMalloc(&d_values, sizeof(values));
  cudaMalloc(&d_count, sizeof(int));
  cudaMemcpy(d_values, values, sizeof(values), cudaMemcpyHostToDevice);
  cudaMemset(d_count, 0, sizeof(int));
  count<<<(n + 127) / 128, 128>>>(d_values, n, d_count);
  cudaMemcpy(&count_of_host, d_count, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", count_of_host);
#ifdef MENDED
  return count_of_host != 333;
#endif
}
