// CUDA's vectors of one to four numbers, with CUDA's alignment. A GPU moves up to 16 bytes in one access. So does g++'s own
// assignment (-fno-tree-sra keeps it whole), except for vectors of 32 bytes, which are moved in two halves here.
#pragma once

#define EMULATOR_MOVED_TWICE(NAME)                                                                 \
  __attribute__((always_inline)) inline NAME& operator=(const NAME& other) {                       \
    typedef unsigned char Half __attribute__((vector_size(16), may_alias));                        \
    const Half *from = reinterpret_cast<const Half*>(&other), second = from[1];                    \
    Half* to = reinterpret_cast<Half*>(this);                                                      \
    to[0] = from[0], to[1] = second;                                                               \
    return *this;                                                                                  \
  }
#define EMULATOR_VECTORS_BUT_4(T, NAME, BYTES)                                                     \
  struct NAME##1 {                                                                                 \
    T x;                                                                                           \
  };                                                                                               \
  struct alignas(2 * BYTES) NAME##2 {                                                              \
    T x, y;                                                                                        \
  };                                                                                               \
  struct NAME##3 {                                                                                 \
    T x, y, z;                                                                                     \
  };                                                                                               \
  constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                                            \
  constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                    \
  constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                            \
  constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define EMULATOR_VECTORS(T, NAME, BYTES)                                                           \
  struct alignas(4 * BYTES) NAME##4 {                                                              \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  EMULATOR_VECTORS_BUT_4(T, NAME, BYTES)
#define EMULATOR_LONG_VECTORS(T, NAME)                                                             \
  struct alignas(16) NAME##4 {                                                                     \
    T x, y, z, w;                                                                                  \
    EMULATOR_MOVED_TWICE(NAME##4)                                                                  \
  };                                                                                               \
  EMULATOR_VECTORS_BUT_4(T, NAME, 8)

EMULATOR_VECTORS(signed char, char, 1)
EMULATOR_VECTORS(unsigned char, uchar, 1)
EMULATOR_VECTORS(short, short, 2)
EMULATOR_VECTORS(unsigned short, ushort, 2)
EMULATOR_VECTORS(int, int, 4)
EMULATOR_VECTORS(unsigned, uint, 4)
EMULATOR_VECTORS(float, float, 4)
EMULATOR_LONG_VECTORS(long, long)
EMULATOR_LONG_VECTORS(unsigned long, ulong)
EMULATOR_LONG_VECTORS(long long, longlong)
EMULATOR_LONG_VECTORS(unsigned long long, ulonglong)
EMULATOR_LONG_VECTORS(double, double)
#undef EMULATOR_VECTORS
#undef EMULATOR_LONG_VECTORS
#undef EMULATOR_VECTORS_BUT_4
