/* A memory tracer that is loaded into the process: allocations, bytes, sizes, failures, and what is alive by caller. */
#define _GNU_SOURCE
#include "counters.h"

enum { MAX_BLOCKS = 65536 };
static struct {
  void *pointer;
  size_t bytes;
  const char *site;
} blocks[MAX_BLOCKS];

/* The place of a block, or a free place if it has none yet; -1 if all are taken. */
static int find(void *pointer) {
  unsigned start = (unsigned)((uintptr_t)pointer >> 8), empty = MAX_BLOCKS;
  for (unsigned step = 0; step < MAX_BLOCKS; step++) {
    unsigned place = (start + step) % MAX_BLOCKS;
    if (blocks[place].pointer == pointer) return place;
    if (!blocks[place].pointer && empty == MAX_BLOCKS) empty = place;
    if (!blocks[place].site) break; /* never used: the block cannot be further on */
  }
  return empty == MAX_BLOCKS ? -1 : (int)empty;
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
