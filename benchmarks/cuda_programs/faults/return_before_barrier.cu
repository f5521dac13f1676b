__global__ void shift(const int* in, int* out, int n) {
  __shared__ int tile[129];
  int i = blockIdx.x * 128 + threadIdx.x;
#ifdef MENDED
  tile[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  if (i >= n) return;
#else
  if (i >= n) return;
  tile[threadIdx.x] = in[i];
  __syncthreads();  // fault: barrier
#endif
  out[i] = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 200 * sizeof(int));
  cudaMallocManaged(&out, 200 * sizeof(int));
  for (int i = 0; i < 200; ++i) in[i] = i;
  shift<<<2, 128>>>(in, out, 200);
  cudaDeviceSynchronize();
  return out[199] != 198;
}
