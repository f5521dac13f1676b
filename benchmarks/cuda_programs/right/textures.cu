// variants: 3
__global__ void run(cudaTextureObject_t image, cudaSurfaceObject_t surface, int n, float* out) {
  int i = threadIdx.x;
#if VARIANT == 1  // beyond the end of linear memory: zero
  out[i] = tex1Dfetch<float>(image, i - 1);
#elif VARIANT == 2  // beyond the border of an array: its last column
  out[i] = tex2D<float>(image, i + 0.5f, 0.5f);
#else
  float value;
  surf2Dread(&value, surface, min(i, 15) * 4, 0);
  out[i] = value;
#endif
}

int main() {
  float values[16], *linear, *out;
  for (int i = 0; i < 16; ++i) values[i] = i + 1;
  cudaMallocManaged(&out, 32 * sizeof(float));
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource = {};
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.readMode = cudaReadModeElementType;
#if VARIANT == 1
  cudaMalloc(&linear, sizeof(values));
  cudaMemcpy(linear, values, sizeof(values), cudaMemcpyHostToDevice);
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = format;
  resource.res.linear.sizeInBytes = sizeof(values);
#else
  cudaArray_t array;
  cudaMallocArray(&array, &format, 16, 1, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, values, sizeof(values), sizeof(values), 1, cudaMemcpyHostToDevice);
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
#endif
  cudaTextureObject_t image = 0;
  cudaSurfaceObject_t surface = 0;
  cudaCreateTextureObject(&image, &resource, &description, nullptr);
#if VARIANT == 3
  cudaCreateSurfaceObject(&surface, &resource);
#endif
  run<<<1, 32>>>(image, surface, 16, out);
  cudaDeviceSynchronize();
  return VARIANT == 1 ? out[16] != 16 || out[20] != 0 : out[3] != 4 || out[31] != 16;
}
