__global__ void square(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * in[i];
}

__global__ void sum(const int* in, int n, int* out) {
  int total = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    total += in[i];  // fault: unwritten read
  }
  atomicAdd(out, total);
}

int main() {
  const int n = 512;
  int *in, *squares, *out, values[n], total = 0;
  for (int i = 0; i < n; ++i) values[i] = 1;
  cudaMalloc(&in, sizeof(values));
  cudaMalloc(&squares, sizeof(values));
  cudaMalloc(&out, sizeof(int));
  cudaMemset(out, 0, sizeof(int));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
#ifdef MENDED
  square<<<n / 128, 128>>>(in, squares);
#else
  square<<<n / 256, 128>>>(in, squares);
#endif
  sum<<<1, 32>>>(squares, n, out);
  cudaMemcpy(&total, out, sizeof(int), cudaMemcpyDeviceToHost);
#ifdef MENDED
  return total != n;
#endif
  return 0;
}
