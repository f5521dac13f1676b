// Half-precision numbers: 1 sign bit, 5 of exponent, 10 of fraction.
#pragma once
#include "short_floats.h"

namespace emulator {
struct HalfCoding {
  // Round to nearest, ties to even.
  EMULATOR_UNSEEN static uint16_t round(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return uint16_t(sign | 0x7e00u);   // not a number
    if (size >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // from 65,520 on: infinity
    if (size < 0x38800000u) {                                  // below 2^-14 the spacing is 2^-24
      float magnitude;
      memcpy(&magnitude, &size, 4);
      return uint16_t(sign | uint32_t(nearbyintf(magnitude * 16777216.0f)));
    }
    const uint32_t rounded = size + 0xfffu + (size >> 13 & 1u);
    return uint16_t(sign | ((rounded - 0x38000000u) >> 13));
  }

  EMULATOR_UNSEEN static float widen(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * float(fraction) / 16777216.0f;
    const uint32_t wide = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float value;
    memcpy(&value, &wide, 4);
    return value;
  }
};
}  // namespace emulator

typedef emulator::ShortFloat<emulator::HalfCoding> __half;
typedef emulator::ShortPair<__half> __half2;
typedef emulator::ShortBits<emulator::HalfCoding> __half_raw;
typedef __half half;
typedef __half2 half2;
EMULATOR_SHORT_FLOATS(__half, __half2, half, half2)
