__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }

int main() {
  int *first, *second;
  cudaMalloc(&first, 64 * sizeof(int));
  cudaMalloc(&second, 64 * sizeof(int));
  fill<<<1, 64>>>(first);
  fill<<<1, 64>>>(second);
  cudaFree(first);
#ifdef MENDED
  cudaFree(second);
#else
  cudaFree(first);  // fault: use after free
#endif
  return 0;
}
