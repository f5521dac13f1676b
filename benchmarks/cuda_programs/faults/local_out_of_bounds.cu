__global__ void largest(const int* in, int* out, int window) {
  int values[8];
  for (int i = 0; i < window; ++i) {
    values[i] = in[threadIdx.x + i];  // fault: out of bounds
  }
  int most = values[0];
  for (int i = 1; i < window; ++i) most = max(most, values[i]);  // fault: out of bounds
  out[threadIdx.x] = most;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 64 * sizeof(int));
  cudaMallocManaged(&out, 32 * sizeof(int));
  for (int i = 0; i < 64; ++i) in[i] = i;
#ifdef MENDED
  largest<<<1, 32>>>(in, out, 8);
#else
  largest<<<1, 32>>>(in, out, 9);
#endif
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[0] != 7;
#endif
  return 0;
}
