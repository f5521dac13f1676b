__global__ void block_sum(const int* in, int* out) {
  __shared__ int parts[4];
  int value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;  // fault: race
#ifdef MENDED
  __syncthreads();
#else
  __syncwarp();
#endif
  if (threadIdx.x == 0) *out = parts[0] + parts[1] + parts[2] + parts[3];  // fault: race
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 128 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < 128; ++i) in[i] = 1;
  block_sum<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return *out != 128;
#endif
  return 0;
}
