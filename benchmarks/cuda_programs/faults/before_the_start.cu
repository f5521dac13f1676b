__global__ void slope(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#ifdef MENDED
  float before = i > 0 ? in[i - 1] : in[i];
#else
  float before = in[i - 1];  // fault: out of bounds
#endif
  out[i] = in[i] - before;
}

int main() {
  const int n = 100;
  float values[n], *in, *out;
  for (int i = 0; i < n; ++i) values[i] = i;
  cudaMalloc(&in, sizeof(values));
  cudaMalloc(&out, sizeof(values));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  slope<<<2, 64>>>(in, out, n);
  cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost);
  return values[1] != 1;
}
