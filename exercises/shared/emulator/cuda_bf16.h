// bfloat16 numbers: the upper 16 bits of a float, so 1 sign bit, 8 of exponent, 7 of fraction.
#pragma once
#include "short_floats.h"

namespace emulator {
struct Bfloat16Coding {
  // Round to nearest, ties to even.
  EMULATOR_UNSEEN static uint16_t round(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;  // not a number
    return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }

  EMULATOR_UNSEEN static float widen(uint16_t bits) {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
  }
};
}  // namespace emulator

typedef emulator::ShortFloat<emulator::Bfloat16Coding> __nv_bfloat16;
typedef emulator::ShortPair<__nv_bfloat16> __nv_bfloat162;
typedef emulator::ShortBits<emulator::Bfloat16Coding> __nv_bfloat16_raw;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
EMULATOR_SHORT_FLOATS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
