// Floating-point numbers of 8 bits: 4 of exponent and 3 of fraction (E4M3, without infinity), or 5 and 2 (E5M2).
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };

namespace emulator {
EMULATOR_UNSEEN inline float widen_fp8(uint8_t bits, __nv_fp8_interpretation_t coding) {
  const int fraction_bits = coding == __NV_E4M3 ? 3 : 2, bias = coding == __NV_E4M3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (coding == __NV_E4M3 ? (bits & 0x7f) == 0x7f : exponent == 31 && fraction) return NAN;
  if (coding == __NV_E5M2 && exponent == 31) return sign * INFINITY;
  const int whole = exponent ? fraction + (1 << fraction_bits) : fraction;
  return sign * ldexpf(float(whole), (exponent ? exponent : 1) - bias - fraction_bits);
}

// Round to nearest, ties to even. A number that is too large becomes the largest one, or, without saturation, infinity or NaN.
EMULATOR_UNSEEN inline uint8_t round_fp8(double value, __nv_saturation_t saturation, __nv_fp8_interpretation_t coding) {
  const bool is_e4m3 = coding == __NV_E4M3;
  const int fraction_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15, largest = is_e4m3 ? 0x7e : 0x7b;
  if (std::isnan(value)) return 0x7f;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const double size = std::fabs(value);
  if (size == 0) return uint8_t(sign);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int step = std::max(exponent - 1, 1 - bias) - fraction_bits;  // of the spacing, a power of two
  const double steps = std::isinf(size) ? INFINITY : std::nearbyint(std::ldexp(size, -step));
  // The bits count the numbers from zero on, 2^fraction_bits of them for each exponent.
  const double bits = steps + double(step + bias + fraction_bits - 1) * (1 << fraction_bits);
  if (bits <= largest) return uint8_t(sign | int(bits));
  return uint8_t(sign | (saturation == __NV_SATFINITE ? largest : largest + 1));
}

template <__nv_fp8_interpretation_t Coding>
struct Fp8 {
  __nv_fp8_storage_t __x;

  Fp8() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  explicit Fp8(Number value) : __x(round_fp8(double(value), __NV_SATFINITE, Coding)) {}
  explicit Fp8(__half value) : Fp8(float(value)) {}
  explicit Fp8(__nv_bfloat16 value) : Fp8(float(value)) {}
  operator float() const { return widen_fp8(__x, Coding); }
};
}  // namespace emulator

typedef emulator::Fp8<__NV_E4M3> __nv_fp8_e4m3;
typedef emulator::Fp8<__NV_E5M2> __nv_fp8_e5m2;

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation, __nv_fp8_interpretation_t coding) {
  return emulator::round_fp8(value, saturation, coding);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturation, __nv_fp8_interpretation_t coding) {
  return emulator::round_fp8(value, saturation, coding);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t coding) {
  return __half(emulator::widen_fp8(bits, coding));
}
