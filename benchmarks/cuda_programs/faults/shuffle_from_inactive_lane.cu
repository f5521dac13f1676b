__global__ void sum_tail(const int* in, int n, int* out) {
  int i = threadIdx.x;
#ifdef MENDED
  int value = i < n ? in[i] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (i == 0) *out = value;
#else
  if (i < n) {
    int value = in[i];
    for (int step = 16; step > 0; step /= 2) {
      value += __shfl_down_sync(0xffffffff, value, step);  // fault: barrier
    }
    if (i == 0) *out = value;
  }
#endif
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 20 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < 20; ++i) in[i] = 1;
  sum_tail<<<1, 32>>>(in, 20, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return *out != 20;
#endif
  return 0;
}
