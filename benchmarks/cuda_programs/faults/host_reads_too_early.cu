__global__ void fill(int* values) { values[threadIdx.x] = threadIdx.x; }

int main() {
  int *values, *pinned;
  cudaMalloc(&values, 64 * sizeof(int));
  cudaMallocHost(&pinned, 64 * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  fill<<<1, 64, 0, stream>>>(values);
  cudaMemcpyAsync(pinned, values, 64 * sizeof(int), cudaMemcpyDeviceToHost, stream);
#ifdef MENDED
  cudaStreamSynchronize(stream);
#endif
  return pinned[63] != 63;  // fault: hazard between streams
}
