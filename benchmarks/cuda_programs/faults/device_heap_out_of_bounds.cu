__global__ void sort_three(int* out) {
  int* values = (int*)malloc(3 * sizeof(int));
  if (values == nullptr) return;
#ifdef MENDED
  const int n = 3;
#else
  const int n = 4;
#endif
  for (int i = 0; i < n; ++i) {
    values[i] = threadIdx.x + i;  // fault: out of bounds
  }
  out[threadIdx.x] = values[2];
  free(values);
}

int main() {
  int* out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  sort_three<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  return out[0] != 2;
}
