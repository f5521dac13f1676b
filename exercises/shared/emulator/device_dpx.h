// Products of halves with bytes (dp2a), and instructions for dynamic programming (DPX) on a register or on its halves.
#pragma once
#include "device_math.h"

namespace emulator {
// What `f` makes of each pair of lanes. Lanes smaller than an int are passed as an int, and its result is cut to a lane.
template <class Lane, class F>
unsigned map_lanes(unsigned a, unsigned b, F f) {
  constexpr unsigned BITS = 8 * sizeof(Lane);
  unsigned result = 0;
  for (unsigned first = 0; first < 32; first += BITS)
    result |= unsigned(std::make_unsigned_t<Lane>(f(+Lane(a >> first), +Lane(b >> first)))) << first;
  return result;
}
}  // namespace emulator

// The product of the two halves of `a` with the low or the high two bytes of `b`.
#define EMULATOR_DP2A(NAME, T, HALF, BYTE, FIRST)                                                                    \
  inline T NAME(T a, T b, T sum) {                                                                                   \
    for (int place = 0; place < 2; ++place)                                                                          \
      sum += T(HALF(a >> 16 * place)) * T(BYTE(b >> (FIRST + 8 * place)));                                           \
    return sum;                                                                                                      \
  }
EMULATOR_DP2A(__dp2a_lo, int, int16_t, int8_t, 0)
EMULATOR_DP2A(__dp2a_hi, int, int16_t, int8_t, 16)
EMULATOR_DP2A(__dp2a_lo, unsigned, uint16_t, uint8_t, 0)
EMULATOR_DP2A(__dp2a_hi, unsigned, uint16_t, uint8_t, 16)
#undef EMULATOR_DP2A

// DPX: the least or greatest of two or three numbers, or of a sum and a number (`add`), and not below 0 (`relu`). `vib` also says
// whether the first of the two was chosen, for halves first of the high ones.
#define EMULATOR_DPX(NAME, T, LANE)                                                                                           \
  inline T __vimin_##NAME(T a, T b) {                                                                                         \
    return T(emulator::map_lanes<LANE>(a, b, [](auto x, auto y) { return x < y ? x : y; }));                                  \
  }                                                                                                                           \
  inline T __vimax_##NAME(T a, T b) {                                                                                         \
    return T(emulator::map_lanes<LANE>(a, b, [](auto x, auto y) { return x < y ? y : x; }));                                  \
  }                                                                                                                           \
  inline T __vimin3_##NAME(T a, T b, T c) { return __vimin_##NAME(__vimin_##NAME(a, b), c); }                                 \
  inline T __vimax3_##NAME(T a, T b, T c) { return __vimax_##NAME(__vimax_##NAME(a, b), c); }                                 \
  inline T __viaddmin_##NAME(T a, T b, T c) {                                                                                 \
    return __vimin_##NAME(T(emulator::map_lanes<LANE>(a, b, [](auto x, auto y) { return x + y; })), c);                       \
  }                                                                                                                           \
  inline T __viaddmax_##NAME(T a, T b, T c) {                                                                                 \
    return __vimax_##NAME(T(emulator::map_lanes<LANE>(a, b, [](auto x, auto y) { return x + y; })), c);                       \
  }
#define EMULATOR_DPX_SIGNED(NAME, T)                                                                                          \
  inline T __vimin_##NAME##_relu(T a, T b) { return __vimax_##NAME(__vimin_##NAME(a, b), 0); }                                \
  inline T __vimax_##NAME##_relu(T a, T b) { return __vimax_##NAME(__vimax_##NAME(a, b), 0); }                                \
  inline T __vimin3_##NAME##_relu(T a, T b, T c) { return __vimax_##NAME(__vimin3_##NAME(a, b, c), 0); }                      \
  inline T __vimax3_##NAME##_relu(T a, T b, T c) { return __vimax_##NAME(__vimax3_##NAME(a, b, c), 0); }                      \
  inline T __viaddmin_##NAME##_relu(T a, T b, T c) { return __vimax_##NAME(__viaddmin_##NAME(a, b, c), 0); }                  \
  inline T __viaddmax_##NAME##_relu(T a, T b, T c) { return __vimax_##NAME(__viaddmax_##NAME(a, b, c), 0); }
#define EMULATOR_DPX_CHOICE(NAME, T)                                                                                          \
  inline T __vibmin_##NAME(T a, T b, bool* is_first) { return *is_first = a <= b, a <= b ? a : b; }                           \
  inline T __vibmax_##NAME(T a, T b, bool* is_first) { return *is_first = a >= b, a >= b ? a : b; }
#define EMULATOR_DPX_CHOICES(NAME, LANE)                                                                                      \
  inline unsigned __vibmin_##NAME(unsigned a, unsigned b, bool* is_high, bool* is_low) {                                      \
    *is_high = LANE(a >> 16) <= LANE(b >> 16), *is_low = LANE(a) <= LANE(b);                                                  \
    return __vimin_##NAME(a, b);                                                                                              \
  }                                                                                                                           \
  inline unsigned __vibmax_##NAME(unsigned a, unsigned b, bool* is_high, bool* is_low) {                                      \
    *is_high = LANE(a >> 16) >= LANE(b >> 16), *is_low = LANE(a) >= LANE(b);                                                  \
    return __vimax_##NAME(a, b);                                                                                              \
  }
EMULATOR_DPX(s32, int, int)
EMULATOR_DPX(u32, unsigned, unsigned)
EMULATOR_DPX(s16x2, unsigned, int16_t)
EMULATOR_DPX(u16x2, unsigned, uint16_t)
EMULATOR_DPX_SIGNED(s32, int)
EMULATOR_DPX_SIGNED(s16x2, unsigned)
EMULATOR_DPX_CHOICE(s32, int)
EMULATOR_DPX_CHOICE(u32, unsigned)
EMULATOR_DPX_CHOICES(s16x2, int16_t)
EMULATOR_DPX_CHOICES(u16x2, uint16_t)
#undef EMULATOR_DPX_CHOICES
#undef EMULATOR_DPX_CHOICE
#undef EMULATOR_DPX_SIGNED
#undef EMULATOR_DPX
