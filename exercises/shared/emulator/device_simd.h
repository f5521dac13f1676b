// SIMD intrinsics: the same operation on each of the four bytes, or the two halves, of a register.
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
template <class Lane>
int saturate_lane(int x) {
  return saturate_to<Lane>(x);
}
}  // namespace emulator

// RESULT has the lanes x and y, of the signed or unsigned type Lane.
#define EMULATOR_SIMD_OF(NAME, LANE, RESULT)                                  \
  inline unsigned NAME(unsigned a, unsigned b) {                              \
    using Lane = LANE;                                                        \
    return emulator::map_lanes<Lane>(a, b, [](auto x, auto y) { return RESULT; }); \
  }
#define EMULATOR_SIMD(NAME, SIGN, RESULT)                \
  EMULATOR_SIMD_OF(__v##NAME##2, SIGN##int16_t, RESULT)  \
  EMULATOR_SIMD_OF(__v##NAME##4, SIGN##int8_t, RESULT)
#define EMULATOR_SIMD_UNARY(NAME, RESULT)                                                                                      \
  inline unsigned __v##NAME##2(unsigned a) {                                                                                   \
    using Lane = int16_t;                                                                                                      \
    return emulator::map_lanes<Lane>(a, a, [](auto x, auto) { return RESULT; });                                                 \
  }                                                                                                                            \
  inline unsigned __v##NAME##4(unsigned a) {                                                                                   \
    using Lane = int8_t;                                                                                                       \
    return emulator::map_lanes<Lane>(a, a, [](auto x, auto) { return RESULT; });                                                 \
  }
#define EMULATOR_SIMD_COMPARED(NAME, SIGN, CONDITION)  \
  EMULATOR_SIMD(cmp##NAME, SIGN, CONDITION ? -1 : 0)   \
  EMULATOR_SIMD(set##NAME, SIGN, CONDITION ? 1 : 0)
#define EMULATOR_SIMD_SUM(NAME, LANE)                                                                                \
  inline unsigned NAME(unsigned a, unsigned b) {                                                                     \
    unsigned sum = 0;                                                                                                \
    emulator::map_lanes<LANE>(a, b, [&sum](auto x, auto y) { return sum += unsigned(x < y ? y - x : x - y), 0; });     \
    return sum;                                                                                                      \
  }
EMULATOR_SIMD_UNARY(abs, x < 0 ? -x : x)
EMULATOR_SIMD_UNARY(absss, emulator::saturate_lane<Lane>(x < 0 ? -x : x))
EMULATOR_SIMD_UNARY(neg, -x)
EMULATOR_SIMD_UNARY(negss, emulator::saturate_lane<Lane>(-x))
EMULATOR_SIMD(add, , x + y)
EMULATOR_SIMD(addss, , emulator::saturate_lane<Lane>(x + y))
EMULATOR_SIMD(addus, u, emulator::saturate_lane<Lane>(x + y))
EMULATOR_SIMD(sub, , x - y)
EMULATOR_SIMD(subss, , emulator::saturate_lane<Lane>(x - y))
EMULATOR_SIMD(subus, u, emulator::saturate_lane<Lane>(x - y))
EMULATOR_SIMD(avgs, , (x + y + (x + y >= 0)) >> 1)
EMULATOR_SIMD(avgu, u, (x + y + 1) >> 1)
EMULATOR_SIMD(haddu, u, (x + y) >> 1)
EMULATOR_SIMD(absdiffs, , x < y ? y - x : x - y)
EMULATOR_SIMD(absdiffu, u, x < y ? y - x : x - y)
EMULATOR_SIMD(mins, , x < y ? x : y)
EMULATOR_SIMD(minu, u, x < y ? x : y)
EMULATOR_SIMD(maxs, , x < y ? y : x)
EMULATOR_SIMD(maxu, u, x < y ? y : x)
EMULATOR_SIMD_COMPARED(eq, , x == y)
EMULATOR_SIMD_COMPARED(ne, , x != y)
EMULATOR_SIMD_COMPARED(ges, , x >= y)
EMULATOR_SIMD_COMPARED(geu, u, x >= y)
EMULATOR_SIMD_COMPARED(gts, , x > y)
EMULATOR_SIMD_COMPARED(gtu, u, x > y)
EMULATOR_SIMD_COMPARED(les, , x <= y)
EMULATOR_SIMD_COMPARED(leu, u, x <= y)
EMULATOR_SIMD_COMPARED(lts, , x < y)
EMULATOR_SIMD_COMPARED(ltu, u, x < y)
EMULATOR_SIMD_SUM(__vsads2, int16_t)
EMULATOR_SIMD_SUM(__vsadu2, uint16_t)
EMULATOR_SIMD_SUM(__vsads4, int8_t)
EMULATOR_SIMD_SUM(__vsadu4, uint8_t)
#undef EMULATOR_SIMD_SUM
#undef EMULATOR_SIMD_COMPARED
#undef EMULATOR_SIMD_UNARY
#undef EMULATOR_SIMD
#undef EMULATOR_SIMD_OF

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
