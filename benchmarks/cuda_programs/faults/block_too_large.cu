__global__ void fill(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

int main() {
  int* values;
  cudaMallocManaged(&values, 2048 * sizeof(int));
#ifdef MENDED
  fill<<<2, 1024>>>(values);
#else
  fill<<<1, 2048>>>(values);  // fault: refused launch
#endif
  cudaDeviceSynchronize();
#ifdef MENDED
  return values[2047] != 1;
#endif
  return 0;
}
