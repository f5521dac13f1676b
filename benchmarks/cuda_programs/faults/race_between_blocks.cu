__global__ void fill(int* out, int n) {
#ifdef MENDED
  int first = blockIdx.x * 64;
#else
  int first = blockIdx.x * 63;
#endif
  int i = first + threadIdx.x;
  if (i < n) out[i] = blockIdx.x;  // fault: race
}

int main() {
  int* out;
  cudaMallocManaged(&out, 256 * sizeof(int));
  fill<<<4, 64>>>(out, 256);
  cudaDeviceSynchronize();
  return out[0] != 0;
}
