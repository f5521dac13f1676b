__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }

int main() {
  int values[128], *d_values;
  cudaMalloc(&d_values, 64 * sizeof(int));
  fill<<<1, 64>>>(d_values);
#ifdef MENDED
  cudaMemcpy(values, d_values, 64 * sizeof(int), cudaMemcpyDeviceToHost);
  return values[63] != 63;
#else
  cudaMemcpy(values, d_values, sizeof(values), cudaMemcpyDeviceToHost);  // fault: out of bounds
#endif
}
