__global__ void differences(const int* in, int* out) {
#ifdef MENDED
  __shared__ int tile[65];
  if (threadIdx.x == 0) tile[64] = in[64];
#else
  __shared__ int tile[64];
#endif
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 1] - tile[threadIdx.x];  // fault: out of bounds
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 65 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 65; ++i) in[i] = 3 * i;
  differences<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  return out[0] != 3;
}
