#include <vector>

__global__ void scale(float* values, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;  // fault: unwritten read
}

int main() {
  std::vector<float> values(300, 2.0f);
  float* d_values;
  cudaMalloc(&d_values, values.size() * sizeof(float));
#ifdef MENDED
  cudaMemcpy(d_values, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
#endif
  scale<<<3, 128>>>(d_values, values.size(), 3.0f);
  cudaMemcpy(values.data(), d_values, values.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_values);
#ifdef MENDED
  return values[299] != 6.0f;
#endif
  return 0;
}
