// What -fsanitize=thread calls instead of the compiler's atomics: std::atomic of host code, and the guards of statics.
#pragma once
#include <cstdint>

extern "C" {
#define EMULATOR_HOST_ATOMICS(BITS, T)                                                                                    \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                 \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }                 \
  T __tsan_atomic##BITS##_exchange(volatile T* p, T v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }       \
  T __tsan_atomic##BITS##_fetch_add(volatile T* p, T v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }       \
  T __tsan_atomic##BITS##_fetch_sub(volatile T* p, T v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }       \
  T __tsan_atomic##BITS##_fetch_and(volatile T* p, T v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }       \
  T __tsan_atomic##BITS##_fetch_or(volatile T* p, T v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }         \
  T __tsan_atomic##BITS##_fetch_xor(volatile T* p, T v, int) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }       \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* p, T* expected, T v, int, int) {                          \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }                                                                                                                       \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* p, T* expected, T v, int, int) {                            \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }
EMULATOR_HOST_ATOMICS(8, uint8_t)
EMULATOR_HOST_ATOMICS(16, uint16_t)
EMULATOR_HOST_ATOMICS(32, uint32_t)
EMULATOR_HOST_ATOMICS(64, uint64_t)
#undef EMULATOR_HOST_ATOMICS
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
