__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];  // fault: race
#ifdef MENDED
  __syncthreads();
#endif
  out[threadIdx.x] = tile[63 - threadIdx.x];  // fault: race
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 64 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) in[i] = i;
  reverse<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  return out[0] != 63;
}
