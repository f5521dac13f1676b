__global__ void hand_over(volatile int* value, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *value = 42;  // fault: race
#ifdef MENDED
    __threadfence();
#endif
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {
    }
#ifdef MENDED
    __threadfence();
#endif
    *out = *value;  // fault: race
  }
}

int main() {
  int *value, *flag, *out;
  cudaMallocManaged(&value, sizeof(int));
  cudaMallocManaged(&flag, sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *flag = 0;
  hand_over<<<2, 32>>>(value, flag, out);
  cudaDeviceSynchronize();
  return *out != 42;
}
