/* A memory tracer that is loaded into the process: allocations, bytes, sizes, failures, and what is alive by caller. */
#define _GNU_SOURCE
#include "counters.h"

enum { MOST = 65536 };
static struct {
  void *pointer;
  size_t bytes;
  const char *site;
} blocks[MOST];

/* The place of a block, or a free place if it has none yet; -1 if all are taken. */
static int find(void *pointer) {
  unsigned start = (unsigned)((uintptr_t)pointer >> 8), empty = MOST;
  for (unsigned step = 0; step < MOST; step++) {
    unsigned place = (start + step) % MOST;
    if (blocks[place].pointer == pointer) return place;
    if (!blocks[place].pointer && empty == MOST) empty = place;
    if (!blocks[place].site) break; /* never used: the block cannot be further on */
  }
  return empty == MOST ? -1 : (int)empty;
}

int cudaMalloc(void **pointer, size_t bytes) {
  NEXT("cudaMalloc", int(void **, size_t));
  int code = next(pointer, bytes);
  if (code) {
    add(1, "failed %d", code);
    return code;
  }
  int place = find(*pointer);
  add(1, "allocations");
  add(bytes, "bytes");
  add(1, "size %d", power(bytes));
  if (place < 0) return code;
  blocks[place].pointer = *pointer;
  blocks[place].bytes = bytes;
  blocks[place].site = name_of(__builtin_return_address(0));
  add(bytes, "alive %s", blocks[place].site);
  return code;
}

int cudaFree(void *pointer) {
  NEXT("cudaFree", int(void *));
  int place = pointer ? find(pointer) : -1;
  if (place >= 0 && blocks[place].pointer == pointer) {
    add(-blocks[place].bytes, "alive %s", blocks[place].site);
    blocks[place].pointer = 0;
  }
  return next(pointer);
}
