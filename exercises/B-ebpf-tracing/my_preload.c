/* Your part of B.3 if you cannot use bpftrace: a memory tracer that is loaded into the process (LD_PRELOAD).
   With root and bpftrace, write my_trace.bt instead: one of the two is enough.

   As delivered it counts the calls of four functions, and sums nothing. Turn it into a tracer of memory only, with
   cudaMalloc and cudaFree and no other function of the runtime, that keeps these counters (counters.h: add)
     allocations      how many calls of cudaMalloc got memory
     bytes            how many bytes they got
     size N           how many blocks have 2^N to 2^(N+1) - 1 bytes
     failed CODE      how many calls failed, by the code that they returned (2: no memory is left)
     alive FUNCTION   the bytes that are still alive, by the function that asked for them
   __builtin_return_address(0) is the address to which a function returns, and name_of() names the function that contains an
   address. cudaFree gets an address and no size: what must you store when a block is allocated?

   Try it: gpucourse try B.3      Reading: modules/B-ebpf-tracing/lesson-3-tracer.md, "The same without root" */
#define _GNU_SOURCE
#include "counters.h"

typedef struct {
  unsigned x, y, z;
} dim3;

int cudaMalloc(void **pointer, size_t bytes) {
  NEXT("cudaMalloc", int(void **, size_t));
  add(1, "calls cudaMalloc");
  return next(pointer, bytes);
}

int cudaFree(void *pointer) {
  NEXT("cudaFree", int(void *));
  add(1, "calls cudaFree");
  return next(pointer);
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  NEXT("cudaMemcpy", int(void *, const void *, size_t, int));
  add(1, "calls cudaMemcpy");
  return next(to, from, bytes, kind);
}

int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  NEXT("cudaLaunchKernel", int(const void *, dim3, dim3, void **, size_t, void *));
  add(1, "calls cudaLaunchKernel");
  return next(kernel, grid, block, arguments, shared, stream);
}
