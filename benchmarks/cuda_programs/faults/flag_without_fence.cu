__global__ void hand_over(volatile int* value, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  if (atomicAdd(flag + 1, 1) == 0) {  // the block that comes first
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
  cudaMallocManaged(&flag, 2 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  flag[0] = flag[1] = 0;
  hand_over<<<2, 32>>>(value, flag, out);
  cudaDeviceSynchronize();
  return *out != 42;
}
