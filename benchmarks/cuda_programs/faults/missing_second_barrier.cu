__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];    // fault: race
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];  // fault: race
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += left[threadIdx.y][i] * right[i][threadIdx.x];  // fault: race
#ifdef MENDED
    __syncthreads();
#endif
  }
  c[row * n + column] = sum;
}

int main() {
  const int n = 64;
  float *a, *b, *c;
  cudaMallocManaged(&a, n * n * sizeof(float));
  cudaMallocManaged(&b, n * n * sizeof(float));
  cudaMallocManaged(&c, n * n * sizeof(float));
  for (int i = 0; i < n * n; ++i) a[i] = b[i] = 1;
  multiply<<<dim3(4, 4), dim3(16, 16)>>>(a, b, c, n);
  cudaDeviceSynchronize();
#ifdef MENDED
  for (int i = 0; i < n * n; ++i)
    if (c[i] != n) return 1;
#endif
  return 0;
}
