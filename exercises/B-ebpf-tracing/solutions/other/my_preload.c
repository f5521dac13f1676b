/* Another way: a list of the blocks that are alive, newest first. */
#define _GNU_SOURCE
#include "counters.h"

typedef struct Block {
  struct Block *older;
  void *pointer;
  uint64_t bytes;
  void *caller;
} Block;
static Block *newest;

static void note(void *pointer, uint64_t bytes, void *caller) {
  Block *block = malloc(sizeof *block);
  *block = (Block){newest, pointer, bytes, caller};
  newest = block;
  add(1, "allocations");
  add(bytes, "bytes");
  add(bytes, "alive %s", name_of(caller));
  add(1, "size %d", power(bytes));
}

int cudaMalloc(void **pointer, size_t bytes) {
  NEXT("cudaMalloc", int(void **, size_t));
  int code = next(pointer, bytes);
  if (code == 0) note(*pointer, bytes, __builtin_return_address(0));
  else add(1, "failed %d", code);
  return code;
}

int cudaFree(void *pointer) {
  NEXT("cudaFree", int(void *));
  for (Block **link = &newest; *link; link = &(*link)->older) {
    Block *block = *link;
    if (block->pointer != pointer) continue;
    add(-block->bytes, "alive %s", name_of(block->caller));
    *link = block->older;
    free(block);
    break;
  }
  return next(pointer);
}
