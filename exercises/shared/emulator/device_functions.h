// What device code may call: barriers, shuffles, votes, atomics, and small functions of numbers.
#pragma once
#include "cuda_runtime.h"

void __syncthreads();
int __syncthreads_count(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_or(int predicate);
void __syncwarp(unsigned mask = 0xffffffffu);
unsigned __ballot_sync(unsigned mask, int predicate);
int __any_sync(unsigned mask, int predicate);
int __all_sync(unsigned mask, int predicate);
unsigned __activemask();
void __threadfence();
void __threadfence_block();

namespace emulator {
int lane();
// The value that another lane of `mask` brings to the same shuffle. Memory is not ordered by it, as on a GPU.
uint64_t take_from_lane(unsigned mask, uint64_t own, int from_lane, void* caller);
void check_atomic(void* place, unsigned bytes, void* caller);

template <class T>
EMULATOR_UNSEEN T shuffle(unsigned mask, T value, int from_lane, void* caller) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = take_from_lane(mask, bits, from_lane, caller);
  memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace emulator

#define EMULATOR_CALLER __builtin_return_address(0)

template <class T>
EMULATOR_UNSEEN T __shfl_sync(unsigned mask, T value, int from_lane, int width = 32) {
  const int first = emulator::lane() & ~(width - 1);
  return emulator::shuffle(mask, value, first + (from_lane & (width - 1)), EMULATOR_CALLER);
}
template <class T>
EMULATOR_UNSEEN T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const int own = emulator::lane(), inside = (own & (width - 1)) + int(distance);
  return emulator::shuffle(mask, value, inside < width ? own + int(distance) : own, EMULATOR_CALLER);
}
template <class T>
EMULATOR_UNSEEN T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const int own = emulator::lane(), inside = (own & (width - 1)) - int(distance);
  return emulator::shuffle(mask, value, inside >= 0 ? own - int(distance) : own, EMULATOR_CALLER);
}
template <class T>
EMULATOR_UNSEEN T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int own = emulator::lane(), from = own ^ bits;
  return emulator::shuffle(mask, value, from < (own | (width - 1)) + 1 ? from : own, EMULATOR_CALLER);
}

// Atomic functions: threads change only at accesses and barriers, so reading and writing is one step here.
#define EMULATOR_ATOMIC(NAME, RESULT)                                      \
  template <class T, class V>                                              \
  EMULATOR_UNSEEN T NAME(T* place, V given) {                              \
    emulator::check_atomic(place, sizeof(T), EMULATOR_CALLER);             \
    const T old = *place, value = T(given);                                \
    *place = T(RESULT);                                                    \
    return old;                                                            \
  }
EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicSub, old - value)
EMULATOR_ATOMIC(atomicExch, value)
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, old < value ? value : old)
EMULATOR_ATOMIC(atomicAnd, old & value)
EMULATOR_ATOMIC(atomicOr, old | value)
EMULATOR_ATOMIC(atomicXor, old ^ value)
EMULATOR_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef EMULATOR_ATOMIC

template <class T, class C, class V>
EMULATOR_UNSEEN T atomicCAS(T* place, C expected, V given) {
  emulator::check_atomic(place, sizeof(T), EMULATOR_CALLER);
  const T old = *place;
  if (old == T(expected)) *place = T(given);
  return old;
}

template <class T>
T __ldg(const T* place) {
  return *place;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __int_as_float(int x) {
  float value;
  memcpy(&value, &x, 4);
  return value;
}
inline int __float_as_int(float x) {
  int value;
  memcpy(&value, &x, 4);
  return value;
}
