__global__ void histogram(const unsigned char* data, int n, int* bins) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
#ifdef MENDED
    atomicAdd(&local[data[i] % 16], 1);
#else
    local[data[i] % 16]++;  // fault: race
#endif
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main() {
  const int n = 2048;
  unsigned char* data;
  int* bins;
  cudaMallocManaged(&data, n);
  cudaMallocManaged(&bins, 16 * sizeof(int));
  cudaMemset(bins, 0, 16 * sizeof(int));
  for (int i = 0; i < n; ++i) data[i] = i * 7;
  histogram<<<2, 128>>>(data, n, bins);
  cudaDeviceSynchronize();
#ifdef MENDED
  return bins[3] != n / 16;
#endif
  return 0;
}
