// Half-precision numbers, by the compiler's own type.
#pragma once
#include "cuda_runtime.h"

typedef _Float16 __half;
typedef __half half;
struct alignas(4) half2 {
  half x, y;
  EMULATOR_MOVED_WHOLE(half2, 4)
};
inline float __half2float(half x) { return float(x); }
inline half __float2half(float x) { return half(x); }
inline half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
inline float2 __half22float2(half2 x) { return {float(x.x), float(x.y)}; }
