__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }

__global__ void sum(const int* values, int* out) {
  atomicAdd(out, values[threadIdx.x]);  // fault: use after free
}

int main() {
  int *values, *out;
  cudaMalloc(&values, 64 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *out = 0;
  fill<<<1, 64>>>(values);
#ifndef MENDED
  cudaFree(values);
#endif
  sum<<<1, 64>>>(values, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  cudaFree(values);
  return *out != 2016;
#endif
  return 0;
}
