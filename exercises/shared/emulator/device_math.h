// Arithmetic functions of device code: CUDA's names for what C++ has, intrinsics with their rounding, and integers bit by bit.
//
// The fast intrinsics (__expf, __sinf) return what the exact functions return: their error on a GPU is not emulated.
#pragma once
#include <type_traits>

#include "packed_integers.h"

namespace emulator {
template <class To, class From>
EMULATOR_UNSEEN To reinterpret_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
T saturate_to(double x) {  // as conversions of a GPU do: beyond the range of T, the nearest number
  if (x != x) return 0;
  if (x <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return T(x);
}
}  // namespace emulator

// --- min and max of every pair of arithmetic types, in their common type (std::common_type) ----------------------------------
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return T(fmin(T(a), T(b)));
  return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return T(fmax(T(a), T(b)));
  return T(a) < T(b) ? T(b) : T(a);
}
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// --- functions that the C library lacks ----------------------------------------------------------------------------------------
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline float sinpif(float x) { return float(sinpi(x)); }
inline float cospif(float x) { return float(cospi(x)); }
inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdff(float x) { return float(normcdf(x)); }
inline double erfcx(double x) { return exp(x * x) * erfc(x); }
inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }

// --- intrinsics: exact functions instead of fast ones ------------------------------------------------------------------------
#define EMULATOR_UNARY(NAME, EXACT) \
  inline float NAME(float x) { return EXACT; }
EMULATOR_UNARY(__expf, expf(x))
EMULATOR_UNARY(__exp10f, exp2f(x * 3.32192809488736f))
EMULATOR_UNARY(__logf, logf(x))
EMULATOR_UNARY(__log2f, log2f(x))
EMULATOR_UNARY(__log10f, log10f(x))
EMULATOR_UNARY(__sinf, sinf(x))
EMULATOR_UNARY(__cosf, cosf(x))
EMULATOR_UNARY(__tanf, tanf(x))
EMULATOR_UNARY(__saturatef, fminf(fmaxf(x, 0.0f), 1.0f))
EMULATOR_UNARY(__frsqrt_rn, 1.0f / sqrtf(x))
#undef EMULATOR_UNARY
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = sinf(x), *cosine = cosf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
namespace emulator::rounding {
enum Mode { rn, rz, ru, rd };  // to the nearest number, to zero, up, down
// The exact result in this rounding, from the nearest number and the sign of `rest`, the exact result minus that number.
template <Mode MODE, class T>
T round(T nearest, T rest) {
  const bool is_up = MODE == ru || (MODE == rz && nearest < 0), is_down = MODE == rd || (MODE == rz && nearest > 0);
  if (is_up && rest > 0) return std::nextafter(nearest, T(INFINITY));
  return is_down && rest < 0 ? std::nextafter(nearest, -T(INFINITY)) : nearest;
}
// Knuth's sum without an error: the rest is exact.
template <class T>
T rest_of_sum(T a, T b) {
  const T sum = a + b, b_part = sum - a;
  return (a - (sum - b_part)) + (b - b_part);
}
template <Mode MODE, class T>
T add(T a, T b) {
  return round<MODE>(a + b, rest_of_sum(a, b));
}
template <Mode MODE, class T>
T multiply(T a, T b) {
  if constexpr (MODE == rn) return a * b;  // without a call of fma, which is slow
  return round<MODE>(a * b, std::fma(a, b, -(a * b)));
}
template <Mode MODE, class T>
T divide(T a, T b) {
  if constexpr (MODE == rn) return a / b;
  const T rest = std::fma(-(a / b), b, a);
  return round<MODE>(a / b, b > 0 ? rest : -rest);
}
template <Mode MODE, class T>
T multiply_add(T a, T b, T c) {
  const T nearest = std::fma(a, b, c), product = a * b;
  if constexpr (MODE == rn) return nearest;
  return round<MODE>(nearest, (product + c - nearest) + rest_of_sum(product, c) + std::fma(a, b, -product));
}
template <Mode MODE, class T>
T root(T x) {
  const T nearest = std::sqrt(x);
  if constexpr (MODE == rn) return nearest;
  return round<MODE>(nearest, std::fma(-nearest, nearest, x));
}
}  // namespace emulator::rounding
#define EMULATOR_ROUNDED(T, LETTER, FMA, SUFFIX)                                                                               \
  inline T __##LETTER##add_##SUFFIX(T a, T b) { return emulator::rounding::add<emulator::rounding::SUFFIX>(a, b); }            \
  inline T __##LETTER##sub_##SUFFIX(T a, T b) { return emulator::rounding::add<emulator::rounding::SUFFIX>(a, -b); }           \
  inline T __##LETTER##mul_##SUFFIX(T a, T b) { return emulator::rounding::multiply<emulator::rounding::SUFFIX>(a, b); }       \
  inline T __##LETTER##div_##SUFFIX(T a, T b) { return emulator::rounding::divide<emulator::rounding::SUFFIX>(a, b); }         \
  inline T __##LETTER##rcp_##SUFFIX(T a) { return emulator::rounding::divide<emulator::rounding::SUFFIX>(T(1), a); }           \
  inline T __##LETTER##sqrt_##SUFFIX(T a) { return emulator::rounding::root<emulator::rounding::SUFFIX>(a); }                  \
  inline T __##FMA##_##SUFFIX(T a, T b, T c) { return emulator::rounding::multiply_add<emulator::rounding::SUFFIX>(a, b, c); }
#define EMULATOR_ROUNDINGS(T, LETTER, FMA)                                                                                     \
  EMULATOR_ROUNDED(T, LETTER, FMA, rn)                                                                                         \
  EMULATOR_ROUNDED(T, LETTER, FMA, rz)                                                                                         \
  EMULATOR_ROUNDED(T, LETTER, FMA, ru)                                                                                         \
  EMULATOR_ROUNDED(T, LETTER, FMA, rd)
EMULATOR_ROUNDINGS(float, f, fmaf)
EMULATOR_ROUNDINGS(double, d, fma)
#undef EMULATOR_ROUNDINGS
#undef EMULATOR_ROUNDED

// --- conversions -------------------------------------------------------------------------------------------------------------
#define EMULATOR_CONVERTED(FROM, NAME, TO, TEXT)                                                      \
  inline TO __##NAME##2##TEXT##_rn(FROM x) { return emulator::saturate_to<TO>(nearbyint(double(x))); } \
  inline TO __##NAME##2##TEXT##_rz(FROM x) { return emulator::saturate_to<TO>(trunc(double(x))); }     \
  inline TO __##NAME##2##TEXT##_rd(FROM x) { return emulator::saturate_to<TO>(floor(double(x))); }     \
  inline TO __##NAME##2##TEXT##_ru(FROM x) { return emulator::saturate_to<TO>(ceil(double(x))); }
EMULATOR_CONVERTED(float, float, int, int)
EMULATOR_CONVERTED(float, float, unsigned, uint)
EMULATOR_CONVERTED(float, float, long long, ll)
EMULATOR_CONVERTED(float, float, unsigned long long, ull)
EMULATOR_CONVERTED(double, double, int, int)
EMULATOR_CONVERTED(double, double, unsigned, uint)
EMULATOR_CONVERTED(double, double, long long, ll)
EMULATOR_CONVERTED(double, double, unsigned long long, ull)
#undef EMULATOR_CONVERTED
namespace emulator::rounding {
template <Mode MODE, class T, class From>
T convert(From x) {
  return round<MODE>(T(x), T((long double)x - (long double)T(x)));  // which has all bits of a `long long`
}
}  // namespace emulator::rounding
#define EMULATOR_FLOATED_BY(FROM, NAME, T, MODE) \
  inline T __##NAME##2##T##_##MODE(FROM x) { return emulator::rounding::convert<emulator::rounding::MODE, T>(x); }
#define EMULATOR_FLOATED(FROM, NAME, T)   \
  EMULATOR_FLOATED_BY(FROM, NAME, T, rn)  \
  EMULATOR_FLOATED_BY(FROM, NAME, T, rz)  \
  EMULATOR_FLOATED_BY(FROM, NAME, T, ru)  \
  EMULATOR_FLOATED_BY(FROM, NAME, T, rd)
EMULATOR_FLOATED(int, int, float)
EMULATOR_FLOATED(unsigned, uint, float)
EMULATOR_FLOATED(long long, ll, float)
EMULATOR_FLOATED(unsigned long long, ull, float)
EMULATOR_FLOATED(double, double, float)
EMULATOR_FLOATED(int, int, double)
EMULATOR_FLOATED(unsigned, uint, double)
EMULATOR_FLOATED(long long, ll, double)
EMULATOR_FLOATED(unsigned long long, ull, double)
#undef EMULATOR_FLOATED
#undef EMULATOR_FLOATED_BY
inline float __int_as_float(int x) { return emulator::reinterpret_bits<float>(x); }
inline int __float_as_int(float x) { return emulator::reinterpret_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulator::reinterpret_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator::reinterpret_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulator::reinterpret_bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulator::reinterpret_bits<long long>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)(unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

// --- integers ----------------------------------------------------------------------------------------------------------------
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline int __mul24(int a, int b) { return int((long long)(a << 8 >> 8) * (b << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned sum) { return unsigned(a < b ? b - a : a - b) + sum; }
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return (a < b ? b - a : a - b) + sum; }
inline int __hadd(int a, int b) { return int(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return int(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b) >> 1); }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selectors) {
  const unsigned long long bytes = (unsigned long long)high << 32 | low;
  unsigned chosen = 0;
  for (int place = 0; place < 4; ++place) chosen |= unsigned(bytes >> (8 * (selectors >> 4 * place & 7)) & 255) << 8 * place;
  return chosen;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned count) {
  return unsigned(((unsigned long long)high << 32 | low) << (count & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned count) {
  return unsigned(((unsigned long long)high << 32 | low) >> (count & 31));
}
inline int __dp4a(int a, int b, int sum) {
  for (int place = 0; place < 4; ++place) sum += int(int8_t(a >> 8 * place)) * int(int8_t(b >> 8 * place));
  return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int place = 0; place < 4; ++place) sum += (a >> 8 * place & 255) * (b >> 8 * place & 255);
  return sum;
}
inline int __dp4a(char4 a, char4 b, int sum) {
  return __dp4a(emulator::reinterpret_bits<int>(a), emulator::reinterpret_bits<int>(b), sum);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned sum) {
  return __dp4a(emulator::reinterpret_bits<unsigned>(a), emulator::reinterpret_bits<unsigned>(b), sum);
}
