__global__ void wait(volatile int* flag, int* out) {
#ifdef MENDED
  if (threadIdx.x == 32) *flag = 1;
  __threadfence();
  __syncthreads();
#endif
  while (*flag == 0) {  // fault: endless
  }
  if (threadIdx.x == 0) *out = 1;
}

int main() {
  int *flag, *out;
  cudaMallocManaged(&flag, sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *flag = 0;
  wait<<<1, 64>>>(flag, out);
  cudaDeviceSynchronize();
  return *out != 1;
}
