__global__ void reverse(int* values, int n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = values[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = tile[n - 1 - i];
}

int main() {
  const int n = 16000, bytes = n * sizeof(int);
  int* values;
  cudaMallocManaged(&values, bytes);
  for (int i = 0; i < n; ++i) values[i] = i;
#ifdef MENDED
  cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
#endif
  reverse<<<1, 256, bytes>>>(values, n);  // fault: refused launch
  cudaDeviceSynchronize();
#ifdef MENDED
  return values[0] != n - 1;
#endif
  return 0;
}
