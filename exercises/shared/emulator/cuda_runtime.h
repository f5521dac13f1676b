// CUDA's runtime for kernels that run on a CPU. A kernel's file includes this header; with nvcc it gets NVIDIA's.
//
// Files that include it are compiled with -fsanitize=thread: the compiler then calls a hook (hooks.hpp) at each access except to
// local variables. Functions marked EMULATOR_UNSEEN get no hooks, nor do built-in variables, because they are `extern const`.
// CUDA's qualifiers are no macros: cuda_source.py rewrites them once the preprocessor has run.
#pragma once
#include <cassert>
#include <math.h>  // not <cmath>: nvcc has exp(float) and its like outside of std
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdlib.h>
#include <cstring>
#include <ctime>
#include <limits>
#include <new>
#include <tuple>

#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define EMULATOR_UNSEEN __attribute__((no_sanitize("thread"), noinline))

#include "vector_types.h"

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
};
#ifndef EMULATOR_ITSELF
extern const uint3 threadIdx, blockIdx, blockDim, gridDim;  // of a type without a constructor: otherwise reads would get a hook
extern "C" char emulator_dynamic_memory[];
constexpr int warpSize = 32;
#endif

struct CUstream_st;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorAssert = 710,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaDeviceSynchronize();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* to, int value, size_t bytes);

namespace emulator {
cudaError_t allocate(void** pointer, size_t bytes);
struct Range {
  const void* begin;
  size_t bytes;
};
struct Setup {
  dim3 grid, block;
  size_t shared_bytes;
  CUstream_st* stream;
  const char* file;
  unsigned line;
};
bool is_inside_kernel();
void* begin_child(size_t bytes);
void end_child(const char* name, const Setup& setup, void (*body)(void*), void* call, Range arguments);
void run(const char* name, const Setup& setup, void (*body)(void*), void* call, Range arguments);

// A launch is rewritten to `emulator::launch("name", a function that calls the kernel, grid, block, ...)(arguments)`.
template <class F>
struct Launch {
  const char* name;
  F call_kernel;
  Setup setup;

  // The arguments are copied before the kernel runs, as on a GPU, and each thread copies them from there.
  template <class... A>
  void operator()(A&&... arguments) const {
    struct Call {
      F call_kernel;
      std::tuple<std::decay_t<A>...> copies;
    };
    Call call{call_kernel, {static_cast<A&&>(arguments)...}};
    auto body = [](void* what) __attribute__((no_sanitize("thread"))) {
      std::apply(static_cast<Call*>(what)->call_kernel, static_cast<Call*>(what)->copies);
    };
    if (!is_inside_kernel()) return run(name, setup, body, &call, {&call.copies, sizeof call.copies});
    Call* kept = new (begin_child(sizeof call)) Call(call);
    end_child(name, setup, body, kept, {&kept->copies, sizeof kept->copies});
  }
};

template <class F>
Launch<F> launch(const char* name, F call_kernel, dim3 grid, dim3 block, size_t shared_bytes = 0,
                 CUstream_st* stream = nullptr, const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {name, call_kernel, {grid, block, shared_bytes, stream, file, line}};
}
}  // namespace emulator

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return emulator::allocate(reinterpret_cast<void**>(pointer), bytes);
}

#include "host_api.h"

#include "device_functions.h"
