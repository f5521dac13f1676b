__global__ void copy(const float* in, float* out) {
  float4 four = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x);  // fault: illegal address
  *reinterpret_cast<float4*>(out + 4 * threadIdx.x) = four;
}

int main() {
  float *in, *out;
  cudaMallocManaged(&in, 256 * sizeof(float));
  cudaMallocManaged(&out, 256 * sizeof(float));
  for (int i = 0; i < 256; ++i) in[i] = i;
#ifdef MENDED
  const int skipped = 4;
#else
  const int skipped = 1;
#endif
  copy<<<1, 32>>>(in + skipped, out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return out[0] != 4;
#endif
  return 0;
}
