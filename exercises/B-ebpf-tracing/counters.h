/* Counters of a library that is loaded before another one (LD_PRELOAD); the program that started the process reads them.

   add(5, "bytes %s", "cudaMalloc") adds 5 to the counter "bytes cudaMalloc"; a counter begins at 0, and -5 subtracts 5.
   NEXT("cudaFree", int(void *)) declares `next`: the function of that name and type in the libraries that come after this one.
   name_of(address) is the name of the function that contains an address; power(n) is log2(n), rounded down.

   TRACE_COUNTERS is the descriptor of an open file of SLOTS slots, each a key of KEY bytes and a number. */
#ifndef COUNTERS_H
#define COUNTERS_H
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 4096, KEY = 120 };
typedef struct {
  char key[KEY];
  uint64_t number;
} Slot;

static Slot *slots;
static int lock;

__attribute__((constructor)) static void open_counters(void) {
  const char *text = getenv("TRACE_COUNTERS");
  void *place = text ? mmap(0, SLOTS * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(text), 0) : MAP_FAILED;
  if (place != MAP_FAILED) slots = place;
}

__attribute__((format(printf, 2, 3), unused)) static void add(uint64_t number, const char *format, ...) {
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

__attribute__((unused)) static int power(uint64_t number) { return 63 - __builtin_clzll(number | 1); }

__attribute__((unused)) static const char *name_of(const void *address) {
  static __thread char text[24];
  Dl_info info;
  if (dladdr(address, &info) && info.dli_sname) return info.dli_sname;
  snprintf(text, sizeof text, "%p", address);
  return text;
}

#define NEXT(name, type)           \
  static __typeof__(type) *next;   \
  if (!next) next = (__typeof__(type) *)dlsym(RTLD_NEXT, name)
#endif
