__constant__ float weights[4];

__global__ void update(const float* in, float* out) {
#ifdef MENDED
  float w = weights[threadIdx.x] + 1;
  out[threadIdx.x] = w * in[threadIdx.x];
#else
  float* w = const_cast<float*>(&weights[threadIdx.x]);
  *w += 1;  // fault: illegal address
  out[threadIdx.x] = *w * in[threadIdx.x];
#endif
}

int main() {
  const float ones[4] = {1, 1, 1, 1};
  float *in, *out;
  cudaMallocManaged(&in, sizeof(ones));
  cudaMallocManaged(&out, sizeof(ones));
  for (int i = 0; i < 4; ++i) in[i] = i;
  cudaMemcpyToSymbol(weights, ones, sizeof(ones));
  update<<<1, 4>>>(in, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[3] != 6;
#endif
  return 0;
}
