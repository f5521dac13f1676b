// A plain product of 256 x 256 matrices: by a kernel, or with an argument by loops of the host.
#include <cstdlib>
#include <vector>
enum { N = 256 };
#ifdef __CUDACC__
__global__ void sgemm(const float* a, const float* b, float* c) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < N; ++k) sum += a[row * N + k] * b[k * N + column];
  c[row * N + column] = sum;
}
int run_kernel() {
  float* device;
  cudaMalloc(&device, 3 * N * N * sizeof(float));
  cudaMemset(device, 0, 3 * N * N * sizeof(float));
  sgemm<<<dim3(N / 16, N / 16), dim3(16, 16)>>>(device, device + N * N, device + 2 * N * N);
  return cudaDeviceSynchronize();
}
#else
int run_kernel() { return 1; }
#endif
int main(int count, char**) {
  if (count == 1) return run_kernel();
  std::vector<float> a(N * N, 1), b(N * N, 1), c(N * N);
  for (int row = 0; row < N; ++row)
    for (int column = 0; column < N; ++column)
      for (int k = 0; k < N; ++k) c[row * N + column] += a[row * N + k] * b[k * N + column];
  return c[0] != N;
}
