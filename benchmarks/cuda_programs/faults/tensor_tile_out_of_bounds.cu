#include <mma.h>
using namespace nvcuda;

__global__ void multiply(const half* a, const half* b, float* c, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
#ifdef MENDED
  const int step = n;
#else
  const int step = 2 * n;
#endif
  wmma::load_matrix_sync(left, a, step);  // fault: out of bounds
  wmma::load_matrix_sync(right, b, n);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}

int main() {
  half *a, *b;
  float* c;
  cudaMallocManaged(&a, 256 * sizeof(half));
  cudaMallocManaged(&b, 256 * sizeof(half));
  cudaMallocManaged(&c, 256 * sizeof(float));
  for (int i = 0; i < 256; ++i) a[i] = b[i] = __float2half(1.0f);
  multiply<<<1, 32>>>(a, b, c, 16);
  cudaDeviceSynchronize();
#ifdef MENDED
  return c[255] != 16;
#endif
  return 0;
}
