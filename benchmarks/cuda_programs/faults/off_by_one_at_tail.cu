__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
  if (i < n)
#else
  if (i <= n)
#endif
    c[i] = a[i] + b[i];  // fault: out of bounds
}

int main() {
  const int n = 1000;
  float *a, *b, *c;
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  cudaMallocManaged(&c, n * sizeof(float));
  for (int i = 0; i < n; ++i) a[i] = b[i] = i;
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  cudaDeviceSynchronize();
  return c[500] != 1000;
}
