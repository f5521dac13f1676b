__global__ void histogram(const int* values, int n, int* bins, int width) {
  int i = threadIdx.x;
  if (i < n) {
    atomicAdd(&bins[values[i] / width], 1);  // fault: out of bounds
  }
}

int main() {
  int *values, *bins;
  cudaMallocManaged(&values, 101 * sizeof(int));
  cudaMallocManaged(&bins, 11 * sizeof(int));
  for (int i = 0; i < 101; ++i) values[i] = i;
#ifdef MENDED
  const int bytes = 11 * sizeof(int);
#else
  const int bytes = 10 * sizeof(int);  // the value 100 needs an eleventh bin
#endif
  int* d_bins;
  cudaMalloc(&d_bins, bytes);
  cudaMemset(d_bins, 0, bytes);
  histogram<<<1, 128>>>(values, 101, d_bins, 10);
  cudaMemcpy(bins, d_bins, bytes, cudaMemcpyDeviceToHost);
  return bins[0] != 10;
}
