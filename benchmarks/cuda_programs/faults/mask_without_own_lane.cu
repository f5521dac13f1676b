__global__ void broadcast(int* out) {
  int lane = threadIdx.x;
#ifdef MENDED
  unsigned mask = 0xffffffff;
#else
  unsigned mask = 0x0000ffff;
#endif
  out[lane] = __shfl_sync(mask, lane, 3);  // fault: barrier
}

int main() {
  int* out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  broadcast<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  return out[0] != 3;
}
