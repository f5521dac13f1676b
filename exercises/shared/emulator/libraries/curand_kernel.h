// cuRAND in kernels: the states XORWOW, Philox 4x32-10 and MRG32k3a, and the distributions. It has no quasi-random states.
//
// Philox is the published generator. The others have independent, reproducible sequences, but not those of NVIDIA.
#pragma once
#include <cuda_runtime.h>

#define CURAND_2POW32_INV 2.3283064e-10f
#define CURAND_2POW32_INV_DOUBLE 2.3283064365386963e-10

namespace emulator::random {
// SplitMix64: every counter gives an independent number.
inline unsigned long long mix(unsigned long long x) {
  x = (x + 0x9e3779b97f4a7c15ull);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}
// Philox 4x32-10 of Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011).
inline void compute_philox(const unsigned counter[4], unsigned long long seed, unsigned result[4]) {
  unsigned a = counter[0], b = counter[1], c = counter[2], d = counter[3], key = unsigned(seed),
           other_key = unsigned(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = 0xD2511F53ull * a, second = 0xCD9E8D57ull * c;
    a = unsigned(second >> 32) ^ b ^ key, c = unsigned(first >> 32) ^ d ^ other_key;
    b = unsigned(second), d = unsigned(first);
    key += 0x9E3779B9u, other_key += 0xBB67AE85u;
  }
  result[0] = a, result[1] = b, result[2] = c, result[3] = d;
}
}  // namespace emulator::random

// A counter per state, mixed with the seed and the sequence. It has the size of NVIDIA's, so that memory traffic is alike.
struct curandStateXORWOW {  // without gaps: programs copy it
  unsigned long long seed, sequence, position;
  double kept_double;
  float kept_normal;
  short has_normal, has_double;
};
typedef curandStateXORWOW curandState, curandState_t, curandStateXORWOW_t;
struct curandStateMRG32k3a : curandStateXORWOW {};
typedef curandStateMRG32k3a curandStateMRG32k3a_t;
struct curandStatePhilox4_32_10 : curandStateXORWOW {};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
struct curandStateMtgp32 : curandStateXORWOW {};
typedef curandStateMtgp32 curandStateMtgp32_t;

template <class S>
auto curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, S* state)
    -> std::enable_if_t<std::is_base_of_v<curandStateXORWOW, S>> {
  state->seed = seed, state->sequence = sequence, state->position = offset;
  state->kept_normal = state->kept_double = 0;
  state->has_normal = state->has_double = 0;
}
inline unsigned curand(curandStateXORWOW* state) {
  return unsigned(
      emulator::random::mix(emulator::random::mix(state->seed ^ state->sequence << 20) + state->sequence + state->position++) >>
      32);
}
inline unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned long long block = state->position / 4;
  const unsigned counter[4] = {unsigned(block), unsigned(block >> 32), unsigned(state->sequence),
                               unsigned(state->sequence >> 32)};
  unsigned result[4];
  emulator::random::compute_philox(counter, state->seed, result);
  return result[state->position++ % 4];
}
template <class S>
uint4 curand4(S* state) {
  const unsigned a = curand(state), b = curand(state), c = curand(state), d = curand(state);
  return {a, b, c, d};
}
template <class S>
void skipahead(unsigned long long count, S* state) {
  state->position += count;
}
template <class S>
void skipahead_sequence(unsigned long long count, S* state) {
  state->sequence += count;
}

// --- distributions: uniform numbers are in (0, 1], as NVIDIA's are -----------------------------------------------------------
template <class S>
float curand_uniform(S* state) {
  return float(curand(state)) * CURAND_2POW32_INV + CURAND_2POW32_INV / 2;
}
template <class S>
double curand_uniform_double(S* state) {
  const unsigned high = curand(state), low = curand(state);
  return (double(high >> 6) * 0x1p27 + double(low >> 5)) * 0x1p-53 + 0x1p-54;
}
template <class S>
float2 curand_normal2(S* state) {  // Box and Muller
  const float radius = sqrtf(-2.0f * logf(curand_uniform(state))), angle = 6.2831853f * curand_uniform(state);
  return {radius * sinf(angle), radius * cosf(angle)};
}
template <class S>
double2 curand_normal2_double(S* state) {
  const double radius = sqrt(-2.0 * log(curand_uniform_double(state))),
               angle = 6.283185307179586 * curand_uniform_double(state);
  return {radius * sin(angle), radius * cos(angle)};
}
// Of each pair of normal numbers, the second is kept for the next call.
template <class S>
float curand_normal(S* state) {
  if (state->has_normal) return state->has_normal = 0, state->kept_normal;
  const float2 pair = curand_normal2(state);
  state->kept_normal = pair.y, state->has_normal = 1;
  return pair.x;
}
template <class S>
double curand_normal_double(S* state) {
  if (state->has_double) return state->has_double = 0, state->kept_double;
  const double2 pair = curand_normal2_double(state);
  state->kept_double = pair.y, state->has_double = 1;
  return pair.x;
}
template <class S>
float4 curand_uniform4(S* state) {
  const float a = curand_uniform(state), b = curand_uniform(state), c = curand_uniform(state), d = curand_uniform(state);
  return {a, b, c, d};
}
template <class S>
double2 curand_uniform2_double(S* state) {
  const double a = curand_uniform_double(state), b = curand_uniform_double(state);
  return {a, b};
}
template <class S>
float4 curand_normal4(S* state) {
  const float2 a = curand_normal2(state), b = curand_normal2(state);
  return {a.x, a.y, b.x, b.y};
}
template <class S>
float curand_log_normal(S* state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
template <class S>
double curand_log_normal_double(S* state, double mean, double deviation) {
  return exp(mean + deviation * curand_normal_double(state));
}
template <class S>
unsigned curand_poisson(S* state, double mean) {
  if (mean > 64) {  // near enough to a normal distribution
    const double number = round(mean + sqrt(mean) * curand_normal_double(state));
    return number > 0 ? unsigned(number) : 0;
  }
  unsigned count = 0;
  for (double product = curand_uniform_double(state); product > exp(-mean); product *= curand_uniform_double(state)) ++count;
  return count;
}

#include "curand.h"  // as NVIDIA's does
