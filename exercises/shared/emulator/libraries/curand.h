// cuRAND's functions of the host, which fill memory of the device (or of the host, with curandCreateGeneratorHost).
//
// Numbers have the right distribution and follow from the seed, but are not the numbers of NVIDIA's generators.
#pragma once
#include <host_access.h>
#include <curand_kernel.h>

#define CURAND_H_  // NVIDIA's helper_cuda.h looks at it
#define CURAND_VERSION 10400
enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999,
};
typedef curandStatus curandStatus_t;
enum curandRngType {
  CURAND_RNG_TEST = 0,
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
  CURAND_RNG_QUASI_SOBOL64 = 203,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204,
};
typedef curandRngType curandRngType_t;
enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_QUASI_DEFAULT = 201,
};
typedef curandOrdering curandOrdering_t;
struct curandGenerator_st {
  bool of_host;
  curandStatePhilox4_32_10 state;
};
typedef curandGenerator_st* curandGenerator_t;

inline curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  if (type >= CURAND_RNG_QUASI_DEFAULT) {
    fprintf(stderr, "the emulator's cuRAND has no quasi-random generators: use CURAND_RNG_PSEUDO_DEFAULT\n");
    return CURAND_STATUS_TYPE_ERROR;
  }
  *generator = new curandGenerator_st{false, {}};
  curand_init(0, 0, 0, &(*generator)->state);
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  const curandStatus_t status = curandCreateGenerator(generator, type);
  if (!status) (*generator)->of_host = true;
  return status;
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  curand_init(seed, 0, 0, &generator->state);
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  return generator->state.position = offset, CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) { return CURAND_STATUS_SUCCESS; }
inline curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t) { return CURAND_STATUS_SUCCESS; }
inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }
inline curandStatus_t curandGetVersion(int* version) { return *version = CURAND_VERSION, CURAND_STATUS_SUCCESS; }

namespace emulator::random {
template <class T, class F>
EMULATOR_FAST curandStatus_t fill(curandGenerator_t generator, T* values, size_t count, const F& take) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (!generator->of_host && !reach_from_library(values, count * sizeof(T), true)) return CURAND_STATUS_LAUNCH_FAILURE;
  for (size_t i = 0; i < count; ++i) values[i] = T(take(&generator->state));
  return CURAND_STATUS_SUCCESS;
}
// Normal numbers are made in pairs, and as on a GPU an odd count of them is refused.
template <class T, class F>
curandStatus_t fill_pairs(curandGenerator_t generator, T* values, size_t count, const F& take) {
  return count % 2 ? CURAND_STATUS_LENGTH_NOT_MULTIPLE : fill(generator, values, count, take);
}
}  // namespace emulator::random

inline curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* values, size_t count) {
  return emulator::random::fill(generator, values, count, [](auto* state) { return curand(state); });
}
inline curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* values, size_t count) {
  return emulator::random::fill(generator, values, count,
                                [](auto* state) { return (unsigned long long)(curand(state)) << 32 | curand(state); });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* values, size_t count) {
  return emulator::random::fill(generator, values, count, [](auto* state) { return curand_uniform(state); });
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* values, size_t count) {
  return emulator::random::fill(generator, values, count, [](auto* state) { return curand_uniform_double(state); });
}
inline curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* values, size_t count, float mean,
                                           float deviation) {
  return emulator::random::fill_pairs(generator, values, count,
                                      [=](auto* state) { return mean + deviation * curand_normal(state); });
}
inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* values, size_t count, double mean,
                                                 double deviation) {
  return emulator::random::fill_pairs(generator, values, count,
                                      [=](auto* state) { return mean + deviation * curand_normal_double(state); });
}
inline curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* values, size_t count, float mean,
                                              float deviation) {
  return emulator::random::fill_pairs(generator, values, count,
                                      [=](auto* state) { return curand_log_normal(state, mean, deviation); });
}
inline curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* values, size_t count, double mean,
                                                    double deviation) {
  return emulator::random::fill_pairs(generator, values, count,
                                      [=](auto* state) { return curand_log_normal_double(state, mean, deviation); });
}
inline curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* values, size_t count, double mean) {
  return emulator::random::fill(generator, values, count, [=](auto* state) { return curand_poisson(state, mean); });
}
