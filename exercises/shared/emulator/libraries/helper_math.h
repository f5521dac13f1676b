// helper_math.h of NVIDIA's samples: arithmetic of CUDA's vectors, component by component, and geometry of float vectors.
#pragma once
#include <cuda_runtime.h>

#define EMULATOR_OPERATOR2(V, T, O)                                      \
  inline V operator O(V a, V b) { return {T(a.x O b.x), T(a.y O b.y)}; } \
  inline V operator O(V a, T b) { return {T(a.x O b), T(a.y O b)}; }     \
  inline V operator O(T a, V b) { return {T(a O b.x), T(a O b.y)}; }     \
  inline void operator O## = (V & a, V b) { a = a O b; }                 \
  inline void operator O## = (V & a, T b) { a = a O b; }
#define EMULATOR_OPERATOR3(V, T, O)                                                    \
  inline V operator O(V a, V b) { return {T(a.x O b.x), T(a.y O b.y), T(a.z O b.z)}; } \
  inline V operator O(V a, T b) { return {T(a.x O b), T(a.y O b), T(a.z O b)}; }       \
  inline V operator O(T a, V b) { return {T(a O b.x), T(a O b.y), T(a O b.z)}; }       \
  inline void operator O## = (V & a, V b) { a = a O b; }                               \
  inline void operator O## = (V & a, T b) { a = a O b; }
#define EMULATOR_OPERATOR4(V, T, O)                                                                  \
  inline V operator O(V a, V b) { return {T(a.x O b.x), T(a.y O b.y), T(a.z O b.z), T(a.w O b.w)}; } \
  inline V operator O(V a, T b) { return {T(a.x O b), T(a.y O b), T(a.z O b), T(a.w O b)}; }         \
  inline V operator O(T a, V b) { return {T(a O b.x), T(a O b.y), T(a O b.z), T(a O b.w)}; }         \
  inline void operator O## = (V & a, V b) { a = a O b; }                                             \
  inline void operator O## = (V & a, T b) { a = a O b; }
#define EMULATOR_OPERATORS(NAME, T, O) \
  EMULATOR_OPERATOR2(NAME##2, T, O)    \
  EMULATOR_OPERATOR3(NAME##3, T, O)    \
  EMULATOR_OPERATOR4(NAME##4, T, O)
EMULATOR_OPERATORS(float, float, +)
EMULATOR_OPERATORS(float, float, -)
EMULATOR_OPERATORS(float, float, *)
EMULATOR_OPERATORS(float, float, /)
EMULATOR_OPERATORS(int, int, +)
EMULATOR_OPERATORS(int, int, -)
EMULATOR_OPERATORS(int, int, *)
EMULATOR_OPERATORS(uint, unsigned, +)
EMULATOR_OPERATORS(uint, unsigned, -)
EMULATOR_OPERATORS(uint, unsigned, *)
#undef EMULATOR_OPERATORS
#undef EMULATOR_OPERATOR2
#undef EMULATOR_OPERATOR3
#undef EMULATOR_OPERATOR4

#define EMULATOR_MAKERS(NAME, T)                                                                                    \
  inline NAME##2 make_##NAME##2(T s) { return {s, s}; }                                                             \
  inline NAME##3 make_##NAME##3(T s) { return {s, s, s}; }                                                          \
  inline NAME##4 make_##NAME##4(T s) { return {s, s, s, s}; }                                                       \
  inline NAME##2 make_##NAME##2(NAME##3 a) { return {a.x, a.y}; }                                                   \
  inline NAME##2 make_##NAME##2(NAME##4 a) { return {a.x, a.y}; }                                                   \
  inline NAME##3 make_##NAME##3(NAME##2 a) { return {a.x, a.y, T(0)}; }                                             \
  inline NAME##3 make_##NAME##3(NAME##2 a, T z) { return {a.x, a.y, z}; }                                           \
  inline NAME##3 make_##NAME##3(NAME##4 a) { return {a.x, a.y, a.z}; }                                              \
  inline NAME##4 make_##NAME##4(NAME##3 a) { return {a.x, a.y, a.z, T(0)}; }                                        \
  inline NAME##4 make_##NAME##4(NAME##3 a, T w) { return {a.x, a.y, a.z, w}; }                                      \
  inline NAME##2 min(NAME##2 a, NAME##2 b) { return {min(a.x, b.x), min(a.y, b.y)}; }                               \
  inline NAME##3 min(NAME##3 a, NAME##3 b) { return {min(a.x, b.x), min(a.y, b.y), min(a.z, b.z)}; }                \
  inline NAME##4 min(NAME##4 a, NAME##4 b) { return {min(a.x, b.x), min(a.y, b.y), min(a.z, b.z), min(a.w, b.w)}; } \
  inline NAME##2 max(NAME##2 a, NAME##2 b) { return {max(a.x, b.x), max(a.y, b.y)}; }                               \
  inline NAME##3 max(NAME##3 a, NAME##3 b) { return {max(a.x, b.x), max(a.y, b.y), max(a.z, b.z)}; }                \
  inline NAME##4 max(NAME##4 a, NAME##4 b) { return {max(a.x, b.x), max(a.y, b.y), max(a.z, b.z), max(a.w, b.w)}; } \
  inline T dot(NAME##2 a, NAME##2 b) { return a.x * b.x + a.y * b.y; }                                              \
  inline T dot(NAME##3 a, NAME##3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }                                  \
  inline T dot(NAME##4 a, NAME##4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }                      \
  inline T clamp(T x, T low, T high) { return max(low, min(x, high)); }                                             \
  inline NAME##2 clamp(NAME##2 a, T low, T high) { return {clamp(a.x, low, high), clamp(a.y, low, high)}; }         \
  inline NAME##3 clamp(NAME##3 a, T low, T high) {                                                                  \
    return {clamp(a.x, low, high), clamp(a.y, low, high), clamp(a.z, low, high)};                                   \
  }                                                                                                                 \
  inline NAME##4 clamp(NAME##4 a, T low, T high) {                                                                  \
    return {clamp(a.x, low, high), clamp(a.y, low, high), clamp(a.z, low, high), clamp(a.w, low, high)};            \
  }
EMULATOR_MAKERS(float, float)
EMULATOR_MAKERS(int, int)
EMULATOR_MAKERS(uint, unsigned)
#undef EMULATOR_MAKERS
inline float2 make_float2(int2 a) { return {float(a.x), float(a.y)}; }
inline float3 make_float3(int3 a) { return {float(a.x), float(a.y), float(a.z)}; }
inline float4 make_float4(int4 a) { return {float(a.x), float(a.y), float(a.z), float(a.w)}; }
inline int2 make_int2(float2 a) { return {int(a.x), int(a.y)}; }
inline int3 make_int3(float3 a) { return {int(a.x), int(a.y), int(a.z)}; }
inline int4 make_int4(float4 a) { return {int(a.x), int(a.y), int(a.z), int(a.w)}; }

inline float lerp(float a, float b, float t) { return a + t * (b - a); }
inline float fracf(float x) { return x - floorf(x); }
inline float smoothstep(float a, float b, float x) {
  const float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}
#define EMULATOR_GEOMETRY(V)                                        \
  inline V operator-(V a) { return a * -1.0f; }                     \
  inline V lerp(V a, V b, float t) { return a + t * (b - a); }      \
  inline float length(V a) { return sqrtf(dot(a, a)); }             \
  inline V normalize(V a) { return a * (1.0f / sqrtf(dot(a, a))); } \
  inline V reflect(V a, V normal) { return a - 2.0f * normal * dot(normal, a); }
EMULATOR_GEOMETRY(float2)
EMULATOR_GEOMETRY(float3)
EMULATOR_GEOMETRY(float4)
#undef EMULATOR_GEOMETRY
inline int2 operator-(int2 a) { return {-a.x, -a.y}; }
inline int3 operator-(int3 a) { return {-a.x, -a.y, -a.z}; }
inline int4 operator-(int4 a) { return {-a.x, -a.y, -a.z, -a.w}; }
inline float3 cross(float3 a, float3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

#define EMULATOR_FOR_EACH(F)                                     \
  inline float2 F(float2 a) { return {F(a.x), F(a.y)}; }         \
  inline float3 F(float3 a) { return {F(a.x), F(a.y), F(a.z)}; } \
  inline float4 F(float4 a) { return {F(a.x), F(a.y), F(a.z), F(a.w)}; }
EMULATOR_FOR_EACH(floorf)
EMULATOR_FOR_EACH(fracf)
EMULATOR_FOR_EACH(fabs)
#undef EMULATOR_FOR_EACH
inline float2 fminf(float2 a, float2 b) { return min(a, b); }
inline float3 fminf(float3 a, float3 b) { return min(a, b); }
inline float4 fminf(float4 a, float4 b) { return min(a, b); }
inline float2 fmaxf(float2 a, float2 b) { return max(a, b); }
inline float3 fmaxf(float3 a, float3 b) { return max(a, b); }
inline float4 fmaxf(float4 a, float4 b) { return max(a, b); }
