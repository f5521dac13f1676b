// variants: 3
__global__ void scan(const int* in, int* out) {  // exclusive
  int t = threadIdx.x;
#if VARIANT == 1
  __shared__ int buffer[2][128];
  int from = 0;
  buffer[0][t] = t > 0 ? in[t - 1] : 0;
  for (int step = 1; step < 128; step *= 2) {
    __syncthreads();
    buffer[1 - from][t] = buffer[from][t] + (t >= step ? buffer[from][t - step] : 0);
    from = 1 - from;
  }
  out[t] = buffer[from][t];
#elif VARIANT == 2
  extern __shared__ int tree[];
  tree[t] = in[t];
  int step = 1;
  for (int nodes = 64; nodes > 0; nodes /= 2, step *= 2) {
    __syncthreads();
    if (t < nodes) tree[step * (2 * t + 2) - 1] += tree[step * (2 * t + 1) - 1];
  }
  if (t == 0) tree[127] = 0;
  for (int nodes = 1; nodes < 128; nodes *= 2) {
    step /= 2;
    __syncthreads();
    if (t < nodes) {
      int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1, value = tree[left];
      tree[left] = tree[right];
      tree[right] += value;
    }
  }
  __syncthreads();
  out[t] = tree[t];
#else
  __shared__ int sums[4];
  int value = in[t], lane = t % 32;
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, step);
    if (lane >= step) value += other;
  }
  if (lane == 31) sums[t / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < t / 32; ++warp) value += sums[warp];
  out[t] = value - in[t];
#endif
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 128 * sizeof(int));
  cudaMallocManaged(&out, 128 * sizeof(int));
  for (int i = 0; i < 128; ++i) in[i] = i;
  scan<<<1, 128, 128 * sizeof(int)>>>(in, out);
  cudaDeviceSynchronize();
  return out[127] != 127 * 126 / 2 || out[0] != 0;
}
