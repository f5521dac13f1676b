__global__ void smooth(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) {
    float sum = in[i - 1] + in[i] + in[i + 1];  // fault: race
    out[i] = sum / 3;                           // fault: race
  }
}

int main() {
  const int n = 300;
  float *values, *smoothed;
  cudaMallocManaged(&values, n * sizeof(float));
  cudaMallocManaged(&smoothed, n * sizeof(float));
  for (int i = 0; i < n; ++i) values[i] = 1;
#ifdef MENDED
  smooth<<<3, 128>>>(values, smoothed, n);
#else
  smooth<<<3, 128>>>(values, values, n);
#endif
  cudaDeviceSynchronize();
  return values[7] != 1;
}
