__device__ unsigned int finished = 0;

__global__ void sum(const int* in, int* parts, int* out) {
  __shared__ bool is_last;
  int value = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = value;  // fault: race
#ifdef MENDED
    __threadfence();
#endif
    is_last = atomicAdd(&finished, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int total = 0;
    for (int i = 0; i < gridDim.x; ++i) {
      total += parts[i];  // fault: race
    }
    *out = total;
  }
}

int main() {
  int *in, *parts, *out;
  cudaMallocManaged(&in, 256 * sizeof(int));
  cudaMallocManaged(&parts, 8 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < 256; ++i) in[i] = 1;
  sum<<<8, 32>>>(in, parts, out);
  cudaDeviceSynchronize();
  return *out != 256;
}
