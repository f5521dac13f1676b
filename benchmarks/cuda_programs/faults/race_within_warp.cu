__global__ void sum(const int* in, int* out) {
  __shared__ int part[64];
  int lane = threadIdx.x;
  part[lane] = in[lane];
  part[lane + 32] = 0;
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
#ifdef MENDED
    int other = part[lane + step];
    __syncwarp();
    part[lane] += other;
    __syncwarp();
#else
    part[lane] += part[lane + step];  // fault: race
#endif
  }
  if (lane == 0) *out = part[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 32 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < 32; ++i) in[i] = i;
  sum<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return *out != 496;
}
