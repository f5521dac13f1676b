// CUDA's vectors of two to four numbers, with CUDA's alignment. A GPU moves up to 16 bytes in one access, and so does the
// assignment here: g++'s own assignment of an aggregate makes one access per number, or none that gets a hook.
#pragma once

#define EMULATOR_MOVED_WHOLE(NAME, BYTES)                                                          \
  __attribute__((always_inline)) inline NAME& operator=(const NAME& other) {                       \
    typedef unsigned char Whole __attribute__((vector_size(BYTES), may_alias));                    \
    *reinterpret_cast<Whole*>(this) = *reinterpret_cast<const Whole*>(&other);                     \
    return *this;                                                                                  \
  }
#define EMULATOR_VECTORS(T, NAME, BYTES)                                                           \
  struct alignas(2 * BYTES) NAME##2 {                                                              \
    T x, y;                                                                                        \
    EMULATOR_MOVED_WHOLE(NAME##2, 2 * BYTES)                                                       \
  };                                                                                               \
  struct NAME##3 {                                                                                 \
    T x, y, z;                                                                                     \
  };                                                                                               \
  struct alignas(4 * BYTES) NAME##4 {                                                              \
    T x, y, z, w;                                                                                  \
    EMULATOR_MOVED_WHOLE(NAME##4, 4 * BYTES)                                                       \
  };                                                                                               \
  constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                    \
  constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                            \
  constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMULATOR_VECTORS(signed char, char, 1)
EMULATOR_VECTORS(unsigned char, uchar, 1)
EMULATOR_VECTORS(short, short, 2)
EMULATOR_VECTORS(unsigned short, ushort, 2)
EMULATOR_VECTORS(int, int, 4)
EMULATOR_VECTORS(unsigned, uint, 4)
EMULATOR_VECTORS(float, float, 4)
#undef EMULATOR_VECTORS
struct alignas(16) double2 {
  double x, y;
  EMULATOR_MOVED_WHOLE(double2, 16)
};
constexpr double2 make_double2(double x, double y) { return {x, y}; }
