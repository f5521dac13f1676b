__global__ void halves(int* out) {
  __shared__ int value[64];
  value[threadIdx.x] = threadIdx.x;
#ifdef MENDED
  __syncthreads();
  if (threadIdx.x < 32) {
    out[threadIdx.x] = value[threadIdx.x + 32];
  }
#else
  if (threadIdx.x < 32) {
    __syncthreads();  // fault: barrier
    out[threadIdx.x] = value[threadIdx.x + 32];
  }
#endif
}

int main() {
  int* out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  halves<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  return out[0] != 32;
}
