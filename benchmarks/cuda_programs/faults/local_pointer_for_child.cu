__global__ void child(int* value) {
  *value = 7;  // fault: illegal address
}

__global__ void parent(int* out) {
#ifdef MENDED
  child<<<1, 1>>>(out);
#else
  int value = 0;
  child<<<1, 1>>>(&value);  // fault: illegal address
  *out = value;
#endif
}

int main() {
  int* out;
  cudaMallocManaged(&out, sizeof(int));
  parent<<<1, 1>>>(out);
  cudaDeviceSynchronize();
#ifdef MENDED
  return *out != 7;
#endif
  return 0;
}
