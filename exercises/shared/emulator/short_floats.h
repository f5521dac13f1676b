// Floating-point numbers of 16 bits, and pairs of them. Operations are done in float and rounded once.
//
// cuda_fp16.h and cuda_bf16.h define the encodings, and the functions whose names contain the type. All other functions are
// friends here: C++ finds them by the type of their arguments, and compiles only those that a program calls.
#pragma once
#include "cuda_runtime.h"

#define EMULATOR_INLINE __attribute__((always_inline)) inline

namespace emulator {
template <class Coding>
struct ShortBits {
  unsigned short x;
};

enum class Rounding { NEAREST, TO_ZERO, DOWN, UP };

template <class Coding>
struct ShortFloat {
  uint16_t bits;

  ShortFloat() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  EMULATOR_INLINE ShortFloat(Number value) : bits(Coding::round(float(value))) {}
  template <class Other>
  EMULATOR_INLINE explicit ShortFloat(ShortFloat<Other> value) : ShortFloat(float(value)) {}
  EMULATOR_INLINE ShortFloat(ShortBits<Coding> raw) : bits(raw.x) {}
  EMULATOR_INLINE operator float() const { return Coding::widen(bits); }
  EMULATOR_INLINE operator ShortBits<Coding>() const { return {bits}; }
  static ShortFloat from_bits(uint16_t bits) { return ShortFloat(ShortBits<Coding>{bits}); }

  // The nearest number in this direction.
  EMULATOR_UNSEEN static ShortFloat round(float value, Rounding direction) {
    const uint16_t nearest = Coding::round(value);
    const float wide = Coding::widen(nearest);
    const bool is_negative = nearest & 0x8000u;
    const bool is_too_high = wide > value && (direction == Rounding::DOWN || (direction == Rounding::TO_ZERO && !is_negative));
    const bool is_too_low = wide < value && (direction == Rounding::UP || (direction == Rounding::TO_ZERO && is_negative));
    if (!is_too_high && !is_too_low) return from_bits(nearest);
    if ((nearest & 0x7fffu) == 0) return from_bits(is_too_high ? 0x8001u : 1u);
    return from_bits(uint16_t(is_too_high == is_negative ? nearest + 1 : nearest - 1));
  }

  EMULATOR_INLINE ShortFloat& operator+=(ShortFloat other) { return *this = *this + other; }
  EMULATOR_INLINE ShortFloat& operator-=(ShortFloat other) { return *this = *this - other; }
  EMULATOR_INLINE ShortFloat& operator*=(ShortFloat other) { return *this = *this * other; }
  EMULATOR_INLINE ShortFloat& operator/=(ShortFloat other) { return *this = *this / other; }
  EMULATOR_INLINE ShortFloat& operator++() { return *this = *this + ShortFloat(1.0f); }
  EMULATOR_INLINE ShortFloat& operator--() { return *this = *this - ShortFloat(1.0f); }

#define EMULATOR_TWO(NAME, RESULT) \
  friend EMULATOR_INLINE ShortFloat NAME(ShortFloat a_, ShortFloat b_) { \
    const float a = a_, b = b_;                                          \
    return RESULT;                                                       \
  }
  EMULATOR_TWO(operator+, a + b)
  EMULATOR_TWO(operator-, a - b)
  EMULATOR_TWO(operator*, a * b)
  EMULATOR_TWO(operator/, a / b)
  EMULATOR_TWO(__hadd, a + b)
  EMULATOR_TWO(__hsub, a - b)
  EMULATOR_TWO(__hmul, a * b)
  EMULATOR_TWO(__hdiv, a / b)
  EMULATOR_TWO(__hadd_rn, a + b)
  EMULATOR_TWO(__hsub_rn, a - b)
  EMULATOR_TWO(__hmul_rn, a * b)
  EMULATOR_TWO(__hadd_sat, __saturatef(a + b))
  EMULATOR_TWO(__hsub_sat, __saturatef(a - b))
  EMULATOR_TWO(__hmul_sat, __saturatef(a * b))
  EMULATOR_TWO(__hmax, fmaxf(a, b))
  EMULATOR_TWO(__hmin, fminf(a, b))
  EMULATOR_TWO(__hmax_nan, a != a || b != b ? NAN : fmaxf(a, b))
  EMULATOR_TWO(__hmin_nan, a != a || b != b ? NAN : fminf(a, b))
  EMULATOR_TWO(max, fmaxf(a, b))
  EMULATOR_TWO(min, fminf(a, b))
#undef EMULATOR_TWO
#define EMULATOR_ONE(NAME, RESULT) \
  friend EMULATOR_INLINE ShortFloat NAME(ShortFloat a_) { \
    const float a = a_;                                   \
    return RESULT;                                        \
  }
  EMULATOR_ONE(operator+, a)
  EMULATOR_ONE(operator-, -a)
  EMULATOR_ONE(__hneg, -a)
  EMULATOR_ONE(__habs, fabsf(a))
  EMULATOR_ONE(hsqrt, sqrtf(a))
  EMULATOR_ONE(hrsqrt, 1.0f / sqrtf(a))
  EMULATOR_ONE(hrcp, 1.0f / a)
  EMULATOR_ONE(hexp, expf(a))
  EMULATOR_ONE(hexp2, exp2f(a))
  EMULATOR_ONE(hexp10, powf(10.0f, a))
  EMULATOR_ONE(hlog, logf(a))
  EMULATOR_ONE(hlog2, log2f(a))
  EMULATOR_ONE(hlog10, log10f(a))
  EMULATOR_ONE(hsin, sinf(a))
  EMULATOR_ONE(hcos, cosf(a))
  EMULATOR_ONE(htanh, tanhf(a))
  EMULATOR_ONE(hfloor, floorf(a))
  EMULATOR_ONE(hceil, ceilf(a))
  EMULATOR_ONE(htrunc, truncf(a))
  EMULATOR_ONE(hrint, nearbyintf(a))
#undef EMULATOR_ONE
  friend EMULATOR_INLINE ShortFloat __hfma(ShortFloat a, ShortFloat b, ShortFloat c) { return fmaf(a, b, c); }
  friend EMULATOR_INLINE ShortFloat __hfma_sat(ShortFloat a, ShortFloat b, ShortFloat c) { return __saturatef(fmaf(a, b, c)); }
  friend EMULATOR_INLINE ShortFloat __hfma_relu(ShortFloat a, ShortFloat b, ShortFloat c) { return fmaxf(fmaf(a, b, c), 0.0f); }

  // Comparisons are false when a number is a NaN; those with a "u" (unordered) are true then.
#define EMULATOR_COMPARED(NAME, SIGN)                                                                    \
  friend EMULATOR_INLINE bool operator SIGN(ShortFloat a, ShortFloat b) { return float(a) SIGN float(b); } \
  friend EMULATOR_INLINE bool __h##NAME(ShortFloat a, ShortFloat b) {                                      \
    return !__hisnan(a) && !__hisnan(b) && float(a) SIGN float(b);                                         \
  }                                                                                                        \
  friend EMULATOR_INLINE bool __h##NAME##u(ShortFloat a, ShortFloat b) {                                   \
    return __hisnan(a) || __hisnan(b) || float(a) SIGN float(b);                                           \
  }
  EMULATOR_COMPARED(eq, ==)
  EMULATOR_COMPARED(ne, !=)
  EMULATOR_COMPARED(lt, <)
  EMULATOR_COMPARED(le, <=)
  EMULATOR_COMPARED(gt, >)
  EMULATOR_COMPARED(ge, >=)
#undef EMULATOR_COMPARED
  friend EMULATOR_INLINE bool __hisnan(ShortFloat a) { return float(a) != float(a); }
  friend EMULATOR_INLINE int __hisinf(ShortFloat a) { return float(a) == INFINITY ? 1 : float(a) == -INFINITY ? -1 : 0; }
};

template <class Number>
struct alignas(4) ShortPair {
  Number x, y;

  ShortPair() = default;
  EMULATOR_INLINE ShortPair(Number x_, Number y_) : x(x_), y(y_) {}
  EMULATOR_INLINE ShortPair& operator+=(ShortPair other) { return *this = *this + other; }
  EMULATOR_INLINE ShortPair& operator-=(ShortPair other) { return *this = *this - other; }
  EMULATOR_INLINE ShortPair& operator*=(ShortPair other) { return *this = *this * other; }
  EMULATOR_INLINE ShortPair& operator/=(ShortPair other) { return *this = *this / other; }

#define EMULATOR_TWO(NAME, EACH) \
  friend EMULATOR_INLINE ShortPair NAME(ShortPair a, ShortPair b) { return {EACH(a.x, b.x), EACH(a.y, b.y)}; }
  EMULATOR_TWO(operator+, __hadd)
  EMULATOR_TWO(operator-, __hsub)
  EMULATOR_TWO(operator*, __hmul)
  EMULATOR_TWO(operator/, __hdiv)
  EMULATOR_TWO(__hadd2, __hadd)
  EMULATOR_TWO(__hsub2, __hsub)
  EMULATOR_TWO(__hmul2, __hmul)
  EMULATOR_TWO(__h2div, __hdiv)
  EMULATOR_TWO(__hadd2_rn, __hadd)
  EMULATOR_TWO(__hsub2_rn, __hsub)
  EMULATOR_TWO(__hmul2_rn, __hmul)
  EMULATOR_TWO(__hadd2_sat, __hadd_sat)
  EMULATOR_TWO(__hsub2_sat, __hsub_sat)
  EMULATOR_TWO(__hmul2_sat, __hmul_sat)
  EMULATOR_TWO(__hmax2, __hmax)
  EMULATOR_TWO(__hmin2, __hmin)
  EMULATOR_TWO(__hmax2_nan, __hmax_nan)
  EMULATOR_TWO(__hmin2_nan, __hmin_nan)
#undef EMULATOR_TWO
#define EMULATOR_ONE(NAME, EACH) \
  friend EMULATOR_INLINE ShortPair NAME(ShortPair a) { return {EACH(a.x), EACH(a.y)}; }
  EMULATOR_ONE(operator+, +)
  EMULATOR_ONE(operator-, -)
  EMULATOR_ONE(__hneg2, __hneg)
  EMULATOR_ONE(__habs2, __habs)
  EMULATOR_ONE(h2sqrt, hsqrt)
  EMULATOR_ONE(h2rsqrt, hrsqrt)
  EMULATOR_ONE(h2rcp, hrcp)
  EMULATOR_ONE(h2exp, hexp)
  EMULATOR_ONE(h2exp2, hexp2)
  EMULATOR_ONE(h2exp10, hexp10)
  EMULATOR_ONE(h2log, hlog)
  EMULATOR_ONE(h2log2, hlog2)
  EMULATOR_ONE(h2log10, hlog10)
  EMULATOR_ONE(h2sin, hsin)
  EMULATOR_ONE(h2cos, hcos)
  EMULATOR_ONE(h2tanh, htanh)
  EMULATOR_ONE(h2floor, hfloor)
  EMULATOR_ONE(h2ceil, hceil)
  EMULATOR_ONE(h2trunc, htrunc)
  EMULATOR_ONE(h2rint, hrint)
#undef EMULATOR_ONE
#define EMULATOR_THREE(NAME, EACH) \
  friend EMULATOR_INLINE ShortPair NAME(ShortPair a, ShortPair b, ShortPair c) { \
    return {EACH(a.x, b.x, c.x), EACH(a.y, b.y, c.y)};                            \
  }
  EMULATOR_THREE(__hfma2, __hfma)
  EMULATOR_THREE(__hfma2_sat, __hfma_sat)
  EMULATOR_THREE(__hfma2_relu, __hfma_relu)
#undef EMULATOR_THREE

  // Compared number by number: as 1.0 or 0.0 each, as one answer for both, and as a mask of 16 bits each.
#define EMULATOR_COMPARED(NAME, SIGN)                                                                                     \
  friend EMULATOR_INLINE bool operator SIGN(ShortPair a, ShortPair b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); } \
  EMULATOR_COMPARED_BY(NAME)                                                                                              \
  EMULATOR_COMPARED_BY(NAME##u)
#define EMULATOR_COMPARED_BY(NAME)                                                        \
  friend EMULATOR_INLINE ShortPair __h##NAME##2(ShortPair a, ShortPair b) {               \
    return {__h##NAME(a.x, b.x), __h##NAME(a.y, b.y)};                                    \
  }                                                                                       \
  friend EMULATOR_INLINE bool __hb##NAME##2(ShortPair a, ShortPair b) {                   \
    return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y);                                    \
  }                                                                                       \
  friend EMULATOR_INLINE unsigned __h##NAME##2_mask(ShortPair a, ShortPair b) {           \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0); \
  }
  EMULATOR_COMPARED(eq, ==)
  EMULATOR_COMPARED(ne, !=)
  EMULATOR_COMPARED(lt, <)
  EMULATOR_COMPARED(le, <=)
  EMULATOR_COMPARED(gt, >)
  EMULATOR_COMPARED(ge, >=)
#undef EMULATOR_COMPARED
#undef EMULATOR_COMPARED_BY
  friend EMULATOR_INLINE ShortPair __hisnan2(ShortPair a) { return {__hisnan(a.x), __hisnan(a.y)}; }
  friend EMULATOR_INLINE ShortPair __hcmadd(ShortPair a, ShortPair b, ShortPair c) {  // complex numbers: a b + c
    return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
  }
  friend EMULATOR_INLINE float __low2float(ShortPair a) { return a.x; }
  friend EMULATOR_INLINE float __high2float(ShortPair a) { return a.y; }
  friend EMULATOR_INLINE ShortPair __lowhigh2highlow(ShortPair a) { return {a.y, a.x}; }
};
}  // namespace emulator

// The functions whose names contain the type: __float2half, __float2bfloat16.
#define EMULATOR_SHORT_FLOATS(T, PAIR, NAME, NAMES)                                                                         \
  EMULATOR_INLINE T __float2##NAME(float x) { return x; }                                                                   \
  EMULATOR_INLINE T __double2##NAME(double x) { return x; }                                                                 \
  EMULATOR_INLINE T __float2##NAME##_rn(float x) { return x; }                                                              \
  EMULATOR_INLINE T __float2##NAME##_rz(float x) { return T::round(x, emulator::Rounding::TO_ZERO); }                       \
  EMULATOR_INLINE T __float2##NAME##_rd(float x) { return T::round(x, emulator::Rounding::DOWN); }                          \
  EMULATOR_INLINE T __float2##NAME##_ru(float x) { return T::round(x, emulator::Rounding::UP); }                            \
  EMULATOR_INLINE float __##NAME##2float(T x) { return x; }                                                                 \
  EMULATOR_SHORT_INTEGERS(T, NAME, int, int, int)                                                                           \
  EMULATOR_SHORT_INTEGERS(T, NAME, unsigned, uint, uint)                                                                    \
  EMULATOR_SHORT_INTEGERS(T, NAME, short, short, int)                                                                       \
  EMULATOR_SHORT_INTEGERS(T, NAME, unsigned short, ushort, uint)                                                            \
  EMULATOR_SHORT_INTEGERS(T, NAME, long long, ll, ll)                                                                       \
  EMULATOR_SHORT_INTEGERS(T, NAME, unsigned long long, ull, ull)                                                            \
  EMULATOR_INLINE short __##NAME##_as_short(T x) { return short(x.bits); }                                                  \
  EMULATOR_INLINE unsigned short __##NAME##_as_ushort(T x) { return x.bits; }                                               \
  EMULATOR_INLINE T __short_as_##NAME(short bits) { return T::from_bits(uint16_t(bits)); }                                  \
  EMULATOR_INLINE T __ushort_as_##NAME(unsigned short bits) { return T::from_bits(bits); }                                  \
  EMULATOR_INLINE PAIR make_##NAMES(T x, T y) { return {x, y}; }                                                            \
  EMULATOR_INLINE PAIR __halves2##NAMES(T x, T y) { return {x, y}; }                                                        \
  EMULATOR_INLINE PAIR __##NAME##2##NAMES(T x) { return {x, x}; }                                                           \
  EMULATOR_INLINE PAIR __float2##NAMES##_rn(float x) { return {x, x}; }                                                     \
  EMULATOR_INLINE PAIR __floats2##NAMES##_rn(float x, float y) { return {x, y}; }                                           \
  EMULATOR_INLINE PAIR __float22##NAMES##_rn(float2 x) { return {x.x, x.y}; }                                               \
  EMULATOR_INLINE float2 __##NAMES##2float2(PAIR x) { return {float(x.x), float(x.y)}; }                                    \
  EMULATOR_INLINE T __low2##NAME(PAIR x) { return x.x; }                                                                    \
  EMULATOR_INLINE T __high2##NAME(PAIR x) { return x.y; }                                                                   \
  EMULATOR_INLINE PAIR __low2##NAMES(PAIR x) { return {x.x, x.x}; }                                                         \
  EMULATOR_INLINE PAIR __high2##NAMES(PAIR x) { return {x.y, x.y}; }                                                        \
  EMULATOR_INLINE PAIR __lows2##NAMES(PAIR a, PAIR b) { return {a.x, b.x}; }                                                \
  EMULATOR_INLINE PAIR __highs2##NAMES(PAIR a, PAIR b) { return {a.y, b.y}; }
#define EMULATOR_SHORT_INTEGERS(T, NAME, INTEGER, WORD, WIDE)                                                                \
  EMULATOR_INLINE T __##WORD##2##NAME##_rn(INTEGER x) { return x; }                                                         \
  EMULATOR_INLINE T __##WORD##2##NAME##_rz(INTEGER x) { return T::round(float(x), emulator::Rounding::TO_ZERO); }           \
  EMULATOR_INLINE T __##WORD##2##NAME##_rd(INTEGER x) { return T::round(float(x), emulator::Rounding::DOWN); }              \
  EMULATOR_INLINE T __##WORD##2##NAME##_ru(INTEGER x) { return T::round(float(x), emulator::Rounding::UP); }                \
  EMULATOR_INLINE INTEGER __##NAME##2##WORD##_rn(T x) { return (INTEGER)__float2##WIDE##_rn(x); }                           \
  EMULATOR_INLINE INTEGER __##NAME##2##WORD##_rz(T x) { return (INTEGER)__float2##WIDE##_rz(x); }                           \
  EMULATOR_INLINE INTEGER __##NAME##2##WORD##_rd(T x) { return (INTEGER)__float2##WIDE##_rd(x); }                           \
  EMULATOR_INLINE INTEGER __##NAME##2##WORD##_ru(T x) { return (INTEGER)__float2##WIDE##_ru(x); }
