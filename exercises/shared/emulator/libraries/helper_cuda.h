// What programs need of helper_cuda.h of NVIDIA's samples: checks of errors, and the choice of a device.
#pragma once
#include <cuda_runtime.h>

#include "helper_string.h"

template <class Error>
inline void check(Error result, const char* call, const char* file, int line) {
  if (!result) return;
  fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, int(result), cudaGetErrorName(cudaError_t(result)), call);
  exit(EXIT_FAILURE);
}
#define checkCudaErrors(value) check((value), #value, __FILE__, __LINE__)

inline void __getLastCudaError(const char* message, const char* file, int line) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message, int(error), cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)

inline int ftoi(float value) { return int(value >= 0 ? value + 0.5f : value - 0.5f); }
inline int _ConvertSMVer2Cores(int, int) { return 64; }
inline const char* _ConvertSMVer2ArchName(int, int) { return "Ampere"; }
inline int gpuDeviceInit(int) { return 0; }
inline int gpuGetMaxGflopsDeviceId() { return 0; }
inline int findCudaDevice(int, const char**) {
  cudaDeviceProp device;
  checkCudaErrors(cudaGetDeviceProperties(&device, 0));
  printf("GPU Device 0: \"%s\" with compute capability %d.%d\n\n", device.name, device.major, device.minor);
  return 0;
}
inline int findIntegratedGPU() { return -1; }
inline bool checkCudaCapabilities(int major, int minor) {
  cudaDeviceProp device;
  checkCudaErrors(cudaGetDeviceProperties(&device, 0));
  return device.major > major || (device.major == major && device.minor >= minor);
}
