__global__ void histogram(const unsigned char* data, int* bins) {
  __shared__ int local[32];
#ifdef MENDED
  if (threadIdx.x < 32) local[threadIdx.x] = 0;
  __syncthreads();
#endif
  if (threadIdx.x < 32) {
    local[threadIdx.x] += data[threadIdx.x];  // fault: unwritten read
    bins[threadIdx.x] = local[threadIdx.x];
  }
}

int main() {
  unsigned char* data;
  int* bins;
  cudaMallocManaged(&data, 64);
  cudaMallocManaged(&bins, 32 * sizeof(int));
  for (int i = 0; i < 64; ++i) data[i] = i;
  histogram<<<1, 64>>>(data, bins);
  cudaDeviceSynchronize();
#ifdef MENDED
  return bins[9] != 9;
#endif
  return 0;
}
