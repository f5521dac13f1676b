// variants: 5
__global__ void run(const int* in, int n, int* out) {
  int i = threadIdx.x, lane = i % 32;
#if VARIANT == 1  // a mask of the lanes that take part
  unsigned mask = __ballot_sync(0xffffffff, i < n);
  if (i < n) {
    int value = in[i];
    for (int step = 16; step > 0; step /= 2) {
      bool has_other = lane + step < 32 && mask >> (lane + step) & 1;
      int other = __shfl_sync(mask, value, has_other ? lane + step : lane);
      if (has_other) value += other;
    }
    if (lane == 0) atomicAdd(out, value);
  }
#elif VARIANT == 2  // lanes with equal keys
  int key = i < n ? in[i] % 4 : -1;
  unsigned peers = __match_any_sync(0xffffffff, key);
  if (key >= 0 && lane == __ffs(peers) - 1) atomicAdd(out, __popc(peers));
#elif VARIANT == 3  // warps that end early, without barriers after them
  if (i >= n) return;
  atomicAdd(out, in[i]);
#elif VARIANT == 4  // parts of eight lanes
  int value = i < n ? in[i] : 0;
  for (int step = 4; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step, 8);
  if (lane % 8 == 0) atomicAdd(out, value);
#else  // votes of a block
  int count = __syncthreads_count(i < n);
  int all = __syncthreads_and(in[i < n ? i : 0] >= 0);
  if (i == 0) *out = all ? count : -1;
#endif
}

int main() {
  const int n = 40;
  int *in, *out;
  cudaMallocManaged(&in, n * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < n; ++i) in[i] = i;
  *out = 0;
  run<<<1, 64>>>(in, n, out);
  cudaDeviceSynchronize();
  return *out != (VARIANT == 2 || VARIANT == 5 ? n : n * (n - 1) / 2);
}
