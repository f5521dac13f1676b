#include <cuda_pipeline.h>

__global__ void scale(const float* in, float* out) {
  __shared__ float tile[128];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float));  // fault: race, unwritten read
  __pipeline_commit();
#ifdef MENDED
  __pipeline_wait_prior(0);
#endif
  __syncthreads();
  out[threadIdx.x] = 2 * tile[127 - threadIdx.x];  // fault: race, unwritten read
}

int main() {
  float *in, *out;
  cudaMallocManaged(&in, 128 * sizeof(float));
  cudaMallocManaged(&out, 128 * sizeof(float));
  for (int i = 0; i < 128; ++i) in[i] = i;
  scale<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[0] != 254;
#endif
  return 0;
}
