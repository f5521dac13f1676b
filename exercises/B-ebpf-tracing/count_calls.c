/* A tracer for everybody: loaded before the CUDA runtime (LD_PRELOAD), it counts a call and hands it on.

   TRACE_COUNTERS is the number of an open file of SLOTS slots, which whoever started this process reads while it runs. A slot
   is a key of KEY bytes and a number; key and meaning:
     calls NAME, bytes NAME, failed NAME CODE     of a call of the runtime
     ns NAME N, size N                            calls that took 2^N to 2^(N+1) - 1 ns; blocks of 2^N bytes to 2^(N+1) - 1
     kernel NAME, site_calls NAME, site_bytes NAME    launches of a kernel; blocks that a function of the program asked for */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SLOTS = 4096, KEY = 120 };
typedef struct {
  char key[KEY];
  uint64_t number;
} Slot;
typedef struct {
  unsigned x, y, z;
} dim3;

static Slot *slots;
static int lock;

__attribute__((constructor)) static void open_counters(void) {
  const char *text = getenv("TRACE_COUNTERS");
  void *place = text ? mmap(0, SLOTS * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(text), 0) : MAP_FAILED;
  if (place != MAP_FAILED) slots = place;
}

__attribute__((format(printf, 2, 3))) static void add(uint64_t number, const char *format, ...) {
  char key[KEY] = {0};
  va_list words;
  va_start(words, format);
  vsnprintf(key, KEY, format, words);
  va_end(words);
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *at = key; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) continue;
  for (unsigned step = 0; slots && step < SLOTS; step++) {
    Slot *slot = slots + (hash + step) % SLOTS;
    if (!slot->key[0]) memcpy(slot->key, key, KEY);
    if (!strcmp(slot->key, key)) {
      slot->number += number;
      break;
    }
  }
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static int power(uint64_t number) { return 63 - __builtin_clzll(number | 1); }

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static const char *name_of(const void *address) {
  static __thread char text[24];
  Dl_info info;
  if (dladdr(address, &info) && info.dli_sname) return info.dli_sname;
  snprintf(text, sizeof text, "%p", address);
  return text;
}

static int end(const char *name, uint64_t began, int code, size_t bytes) {
  uint64_t took = now() - began;
  add(1, "calls %s", name);
  add(1, "ns %s %d", name, power(took));
  if (code) add(1, "failed %s %d", name, code);
  else if (bytes) add(bytes, "bytes %s", name);
  return code;
}

#define NEXT(name, type)         \
  static __typeof__(type) *next; \
  if (!next) next = (__typeof__(type) *)dlsym(RTLD_NEXT, name)

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
