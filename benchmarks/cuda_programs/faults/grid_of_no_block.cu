__global__ void fill(int* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = 1;
}

int main() {
  const int n = 200;
  int* values;
  cudaMallocManaged(&values, n * sizeof(int));
#ifdef MENDED
  fill<<<(n + 255) / 256, 256>>>(values, n);
#else
  fill<<<n / 256, 256>>>(values, n);  // fault: refused launch
#endif
  cudaDeviceSynchronize();
#ifdef MENDED
  return values[199] != 1;
#endif
  return 0;
}
