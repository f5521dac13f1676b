/* A tracer that does not need root: loaded before the CUDA runtime (LD_PRELOAD), it counts each call and passes it on.

   Its counters (counters.h), key and meaning:
     calls NAME, bytes NAME, failed NAME CODE     of a runtime function
     ns NAME N, size N                            calls that took 2^N to 2^(N+1) - 1 ns; blocks of 2^N to 2^(N+1) - 1 bytes
     kernel NAME, site_calls NAME, site_bytes NAME    launches of a kernel; blocks that a function of the program asked for */
#define _GNU_SOURCE
#include "counters.h"
#include <time.h>

typedef struct {
  unsigned x, y, z;
} dim3;

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static int end(const char *name, uint64_t began, int code, size_t bytes) {
  uint64_t took = now() - began;
  add(1, "calls %s", name);
  add(1, "ns %s %d", name, power(took));
  if (code) add(1, "failed %s %d", name, code);
  else if (bytes) add(bytes, "bytes %s", name);
  return code;
}

int cudaMalloc(void **pointer, size_t bytes) {
  NEXT("cudaMalloc", int(void **, size_t));
  uint64_t began = now();
  int code = next(pointer, bytes);
  if (!code) {
    const char *site = name_of(__builtin_return_address(0));
    add(1, "site_calls %s", site);
    add(bytes, "site_bytes %s", site);
    add(1, "size %d", power(bytes));
  }
  return end("cudaMalloc", began, code, bytes);
}

int cudaFree(void *pointer) {
  NEXT("cudaFree", int(void *));
  uint64_t began = now();
  return end("cudaFree", began, next(pointer), 0);
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  NEXT("cudaMemcpy", int(void *, const void *, size_t, int));
  uint64_t began = now();
  return end("cudaMemcpy", began, next(to, from, bytes, kind), bytes);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
  NEXT("cudaMemcpyAsync", int(void *, const void *, size_t, int, void *));
  uint64_t began = now();
  return end("cudaMemcpyAsync", began, next(to, from, bytes, kind, stream), bytes);
}

int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  NEXT("cudaLaunchKernel", int(const void *, dim3, dim3, void **, size_t, void *));
  add(1, "kernel %s", name_of(kernel));
  uint64_t began = now();
  return end("cudaLaunchKernel", began, next(kernel, grid, block, arguments, shared, stream), 0);
}

int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  NEXT("__cudaLaunchKernel", int(void *, dim3, dim3, void **, size_t, void *));
  add(1, "kernel %s", name_of(kernel));
  uint64_t began = now();
  return end("__cudaLaunchKernel", began, next(kernel, grid, block, arguments, shared, stream), 0);
}

int cudaLaunchKernelExC(const void *configuration, const void *kernel, void **arguments) {
  NEXT("cudaLaunchKernelExC", int(const void *, const void *, void **));
  add(1, "kernel %s", name_of(kernel));
  uint64_t began = now();
  return end("cudaLaunchKernelExC", began, next(configuration, kernel, arguments), 0);
}

int cudaGraphLaunch(void *graph, void *stream) {
  NEXT("cudaGraphLaunch", int(void *, void *));
  uint64_t began = now();
  return end("cudaGraphLaunch", began, next(graph, stream), 0);
}

int cudaDeviceSynchronize(void) {
  NEXT("cudaDeviceSynchronize", int(void));
  uint64_t began = now();
  return end("cudaDeviceSynchronize", began, next(), 0);
}
