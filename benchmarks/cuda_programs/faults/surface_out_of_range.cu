__global__ void paint(cudaSurfaceObject_t image) {
#ifdef MENDED
  int place = threadIdx.x * sizeof(float);
#else
  int place = (threadIdx.x + 1) * sizeof(float);
#endif
  surf2Dwrite(float(threadIdx.x), image, place, threadIdx.y);  // fault: out of bounds
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, 16, 8, cudaArraySurfaceLoadStore);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t image;
  cudaCreateSurfaceObject(&image, &resource);
  paint<<<1, dim3(16, 8)>>>(image);
  float pixels[8][16];
  cudaMemcpy2DFromArray(pixels, sizeof(pixels[0]), array, 0, 0, sizeof(pixels[0]), 8, cudaMemcpyDeviceToHost);
#ifdef MENDED
  return pixels[7][15] != 15;
#endif
  return 0;
}
