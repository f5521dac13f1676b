__device__ int lock = 0;

__global__ void add(int* total) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
#ifdef MENDED
    __threadfence();
#endif
    *total = *total + 1;  // fault: race
#ifdef MENDED
    __threadfence();
#endif
    atomicExch(&lock, 0);
  }
}

int main() {
  int* total;
  cudaMallocManaged(&total, sizeof(int));
  *total = 0;
  add<<<8, 32>>>(total);
  cudaDeviceSynchronize();
#ifdef MENDED
  return *total != 8;
#endif
  return 0;
}
