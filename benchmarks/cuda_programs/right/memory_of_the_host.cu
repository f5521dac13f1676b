// variants: 5
#include <cstring>
__constant__ int factor;
__managed__ int managed[64];
__device__ int device_values[64];

__global__ void run(const int* in, int* out, size_t pitch) {
  int i = threadIdx.x;
#if VARIANT == 3
  const int* row = (const int*)((const char*)in + threadIdx.y * pitch);
  if (i < 5) atomicAdd(&out[i], row[i]);
#elif VARIANT == 4
  device_values[i] = in[i] * factor;
#elif VARIANT == 5
  managed[i] = managed[i] + in[i];
#else
  out[i] = 2 * in[i];
#endif
}

int main() {
  int values[64], *in, *out;
  for (int i = 0; i < 64; ++i) values[i] = i;
#if VARIANT == 1  // pinned memory that the kernel reads directly
  int* mapped;
  cudaHostAlloc(&mapped, sizeof(values), cudaHostAllocMapped);
  memcpy(mapped, values, sizeof(values));
  cudaHostGetDevicePointer(&in, mapped, 0);
  cudaMalloc(&out, sizeof(values));
  run<<<1, 64>>>(in, out, 0);
  cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost);
  return values[63] != 126;
#elif VARIANT == 2  // memory in managed hands, written by the host between two kernels
  cudaMallocManaged(&in, sizeof(values));
  cudaMallocManaged(&out, sizeof(values));
  memcpy(in, values, sizeof(values));
  run<<<1, 64>>>(in, out, 0);
  cudaDeviceSynchronize();
  in[0] = out[63];
  run<<<1, 64>>>(in, out, 0);
  cudaDeviceSynchronize();
  return out[0] != 252;
#elif VARIANT == 3  // rows with a pitch: the gaps are never read
  size_t pitch;
  cudaMallocPitch(&in, &pitch, 5 * sizeof(int), 4);
  cudaMalloc(&out, 5 * sizeof(int));
  cudaMemset(out, 0, 5 * sizeof(int));
  cudaMemcpy2D(in, pitch, values, 5 * sizeof(int), 5 * sizeof(int), 4, cudaMemcpyHostToDevice);
  run<<<1, dim3(8, 4)>>>(in, out, pitch);
  cudaMemcpy(values, out, 5 * sizeof(int), cudaMemcpyDeviceToHost);
  return values[4] != 4 + 9 + 14 + 19;
#elif VARIANT == 4  // symbols
  int seven = 7;
  cudaMemcpyToSymbol(factor, &seven, sizeof(int));
  cudaMalloc(&in, sizeof(values));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  run<<<1, 64>>>(in, nullptr, 0);
  cudaMemcpyFromSymbol(values, device_values, sizeof(values));
  return values[63] != 441;
#else  // a variable that both sides see
  cudaMalloc(&in, sizeof(values));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  for (int i = 0; i < 64; ++i) managed[i] = 1;
  run<<<1, 64>>>(in, nullptr, 0);
  cudaDeviceSynchronize();
  return managed[63] != 64;
#endif
}
