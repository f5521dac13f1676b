#include <cuda/barrier>

__global__ void pass_on(const int* in, int* out) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ barrier ready;
  __shared__ int value[64];
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  value[threadIdx.x] = in[threadIdx.x];  // fault: race
  (void)ready.arrive();
#ifdef MENDED
  ready.wait_parity(false);
#else
  ready.wait_parity(true);  // the phase before the first one: it is over
#endif
  out[threadIdx.x] = value[63 - threadIdx.x];  // fault: race
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 64 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) in[i] = i;
  pass_on<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[1] != 62;
#endif
  return 0;
}
