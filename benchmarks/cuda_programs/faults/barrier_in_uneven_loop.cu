__global__ void steps(const int* counts, int* out) {
  __shared__ int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
#ifdef MENDED
  int limit = counts[0];
#else
  int limit = counts[threadIdx.x];
#endif
  for (int i = 0; i < limit; ++i) {
    if (threadIdx.x == 0) turn = i;
    __syncthreads();  // fault: barrier
  }
  __syncthreads();  // fault: barrier
  out[threadIdx.x] = turn;
}

int main() {
  int *counts, *out;
  cudaMallocManaged(&counts, 64 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) counts[i] = i < 32 ? 3 : 2;
  steps<<<1, 64>>>(counts, out);
  cudaDeviceSynchronize();
  return out[0] != 2;
}
