__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }  // fault: hazard between streams

__global__ void scale(const int* in, int* out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];  // fault: hazard between streams
}

int main() {
  int *values, *out;
  cudaMalloc(&values, 64 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  fill<<<1, 64, 0, first>>>(values);
#ifdef MENDED
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaEventRecord(done, first);
  cudaStreamWaitEvent(second, done, 0);
#endif
  scale<<<1, 64, 0, second>>>(values, out);
  cudaDeviceSynchronize();
  return out[63] != 126;
}
