// Half-precision numbers: 1 sign bit, 5 of exponent, 10 of fraction. Operations are done in float and rounded once, which is exact.
#pragma once
#include "cuda_runtime.h"

#define EMULATOR_INLINE __attribute__((always_inline)) inline

namespace emulator {
// Round to nearest, ties to even.
EMULATOR_UNSEEN inline uint16_t round_to_half(float value) {
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

EMULATOR_UNSEEN inline float widen_half(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * float(fraction) / 16777216.0f;
  const uint32_t wide = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}
}  // namespace emulator

struct __half {
  uint16_t bits;
  __half() = default;
  __half(const __half&) = default;
  EMULATOR_INLINE __half(float value) : bits(emulator::round_to_half(value)) {}
  EMULATOR_INLINE __half(double value) : __half(float(value)) {}
  EMULATOR_INLINE __half(int value) : __half(float(value)) {}
  EMULATOR_INLINE operator float() const { return emulator::widen_half(bits); }
  EMULATOR_INLINE __half& operator=(const __half& other) {
    bits = other.bits;
    return *this;
  }
  EMULATOR_INLINE __half& operator+=(__half other) { return *this = __half(float(*this) + float(other)); }
  EMULATOR_INLINE __half& operator-=(__half other) { return *this = __half(float(*this) - float(other)); }
  EMULATOR_INLINE __half& operator*=(__half other) { return *this = __half(float(*this) * float(other)); }
};
typedef __half half;
EMULATOR_INLINE half operator+(half a, half b) { return float(a) + float(b); }
EMULATOR_INLINE half operator-(half a, half b) { return float(a) - float(b); }
EMULATOR_INLINE half operator*(half a, half b) { return float(a) * float(b); }
EMULATOR_INLINE half operator/(half a, half b) { return float(a) / float(b); }

struct alignas(4) half2 {
  half x, y;
  EMULATOR_MOVED_WHOLE(half2, 4)
};
EMULATOR_INLINE float __half2float(half x) { return float(x); }
EMULATOR_INLINE half __float2half(float x) { return half(x); }
EMULATOR_INLINE half __hadd(half a, half b) { return a + b; }
EMULATOR_INLINE half __hmul(half a, half b) { return a * b; }
EMULATOR_INLINE half __hfma(half a, half b, half c) { return half(fmaf(float(a), float(b), float(c))); }
EMULATOR_INLINE half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
EMULATOR_INLINE float2 __half22float2(half2 x) { return {float(x.x), float(x.y)}; }
