__global__ void add(const int* in, int* total) { atomicAdd(total, in[threadIdx.x]); }

int main() {
  int *pinned, *values, *total;
  cudaMallocHost(&pinned, 64 * sizeof(int));
  cudaMalloc(&values, 64 * sizeof(int));
  cudaMallocManaged(&total, sizeof(int));
  *total = 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 64; ++i) pinned[i] = part;  // fault: hazard between streams
    cudaMemcpyAsync(values, pinned, 64 * sizeof(int), cudaMemcpyHostToDevice, stream);
    add<<<1, 64, 0, stream>>>(values, total);
#ifdef MENDED
    cudaStreamSynchronize(stream);
#endif
  }
  cudaDeviceSynchronize();
  return *total != 192;
}
