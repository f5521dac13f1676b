#include <cuda_pipeline.h>

__global__ void sum_tiles(const float* in, float* out, int tiles) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float));  // fault: race, unwritten read
  __pipeline_commit();
  float sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[(i + 1) * 64 + t], sizeof(float));  // fault: race, unwritten read
    }
    __pipeline_commit();
#ifdef MENDED
    __pipeline_wait_prior(1);
#else
    __pipeline_wait_prior(2);
#endif
    __syncthreads();
    sum += stage[i % 2][63 - t];  // fault: race, unwritten read
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  float *in, *out;
  cudaMallocManaged(&in, 256 * sizeof(float));
  cudaMallocManaged(&out, 64 * sizeof(float));
  for (int i = 0; i < 256; ++i) in[i] = i;
  sum_tiles<<<1, 64>>>(in, out, 4);
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[63] != 384;
#endif
  return 0;
}
