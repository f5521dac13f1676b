/* A stand-in for NVIDIA's CUDA runtime: it executes no kernels, and allocates host memory up to a limit.

   It has the functions that engine.c calls, with their real signatures and error codes, so that a tracer sees what it would see
   on a GPU. STAND_IN_MEMORY is the limit in bytes. */
#include <stdlib.h>
#include <string.h>

typedef int cudaError_t;
typedef struct {
  unsigned x, y, z;
} dim3;

enum { SUCCESS = 0, INVALID_VALUE = 1, MEMORY_ALLOCATION = 2, HEAD = 256 }; /* HEAD bytes before each block hold its size */

static size_t used;

static size_t limit(void) {
  static size_t bytes;
  if (!bytes) {
    const char *text = getenv("STAND_IN_MEMORY");
    bytes = text ? strtoull(text, 0, 10) : (size_t)15 << 30;
  }
  return bytes;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  char *block = bytes > limit() - used ? 0 : malloc(HEAD + bytes);
  if (!block) {
    *pointer = 0;
    return MEMORY_ALLOCATION;
  }
  *(size_t *)block = bytes;
  used += bytes;
  *pointer = block + HEAD;
  return SUCCESS;
}

cudaError_t cudaFree(void *pointer) {
  if (pointer) {
    used -= *(size_t *)((char *)pointer - HEAD);
    free((char *)pointer - HEAD);
  }
  return SUCCESS;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  if (kind < 0 || kind > 4) return INVALID_VALUE;
  memcpy(to, from, bytes);
  return SUCCESS;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  (void)arguments, (void)shared, (void)stream;
  return kernel && grid.x && block.x ? SUCCESS : INVALID_VALUE;
}

cudaError_t cudaDeviceSynchronize(void) { return SUCCESS; }
