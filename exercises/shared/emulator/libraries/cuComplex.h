// Complex numbers of CUDA: pairs of real numbers, and functions for them.
#pragma once
#include <cuda_runtime.h>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define EMULATOR_COMPLEX(T, PAIR, F, LONG)                                                         \
  inline PAIR make_##LONG(T real, T imaginary) { return {real, imaginary}; }                       \
  inline T cuCreal##F(PAIR a) { return a.x; }                                                      \
  inline T cuCimag##F(PAIR a) { return a.y; }                                                      \
  inline PAIR cuConj##F(PAIR a) { return {a.x, -a.y}; }                                            \
  inline PAIR cuCadd##F(PAIR a, PAIR b) { return {a.x + b.x, a.y + b.y}; }                         \
  inline PAIR cuCsub##F(PAIR a, PAIR b) { return {a.x - b.x, a.y - b.y}; }                         \
  inline PAIR cuCmul##F(PAIR a, PAIR b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  inline PAIR cuCfma##F(PAIR a, PAIR b, PAIR c) { return cuCadd##F(cuCmul##F(a, b), c); }          \
  inline PAIR cuCdiv##F(PAIR a, PAIR b) {                                                          \
    const T square = b.x * b.x + b.y * b.y;                                                        \
    return {(a.x * b.x + a.y * b.y) / square, (a.y * b.x - a.x * b.y) / square};                   \
  }                                                                                                \
  inline T cuCabs##F(PAIR a) { return T(hypot(double(a.x), double(a.y))); }
EMULATOR_COMPLEX(float, cuFloatComplex, f, cuFloatComplex)
EMULATOR_COMPLEX(double, cuDoubleComplex, , cuDoubleComplex)
#undef EMULATOR_COMPLEX
inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return {float(a.x), float(a.y)}; }
