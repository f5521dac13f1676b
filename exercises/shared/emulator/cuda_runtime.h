// CUDA's runtime for kernels that run on a CPU. A kernel's file includes this header; with nvcc it gets NVIDIA's.
//
// Files that include it are compiled with -fsanitize=thread: the compiler then calls a hook (hooks.hpp) at each access except to
// local variables. Functions marked EMULATOR_UNSEEN get no hooks, nor do built-in variables, because they are `extern const`.
// CUDA's qualifiers are not macros: cuda_source.py rewrites them once the preprocessor has run.
#pragma once
#define __CUDA_RUNTIME_H__  // headers of programs look for these two names of NVIDIA's
#define __DRIVER_TYPES_H__
#include <cassert>
#include <climits>
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
#define EMULATOR_FAST __attribute__((no_sanitize("thread"), noinline, optimize("O3")))  // loops of CUDA's libraries

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

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidTexture = 18,
  cudaErrorInvalidTextureBinding = 19,
  cudaErrorInvalidChannelDescriptor = 20,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidSurface = 37,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorMissingConfiguration = 52,
  cudaErrorSyncDepthExceeded = 68,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorInvalidPtx = 218,
  cudaErrorOperatingSystem = 304,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorAssert = 710,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorUnknown = 999,
};
typedef cudaError cudaError_t;
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
  bool cooperative = false;
  bool has_pointer = false;  // to the kernel, in the call
};
bool is_inside_kernel();
void* begin_child(size_t bytes);
void end_child(const char* name, const Setup& setup, void (*body)(void*), void* call, Range arguments);
void run(const char* name, const Setup& setup, void (*body)(void*), void* call, Range arguments);
// Whether the stream's operations become nodes of a graph (graphs.hpp), and such a node.
bool is_capturing(CUstream_st* stream);
void record_closure(CUstream_st* stream, void (*run)(void* closure, CUstream_st* stream), void* closure);

bool is_on_device(const void* place);

// Whether C++ passes the address of a copy. A function may take it as a reference then, and nothing is copied or destroyed: each
// thread gets the bits of the copy that the host has made, as on a GPU.
template <class T>
constexpr bool IS_PASSED_BY_ADDRESS = std::is_class_v<T> && !(std::is_trivially_destructible_v<T> &&
    std::is_copy_constructible_v<T> == std::is_trivially_copy_constructible_v<T> &&
    std::is_move_constructible_v<T> == std::is_trivially_move_constructible_v<T>);
template <class P>
using Passed = std::conditional_t<IS_PASSED_BY_ADDRESS<P>, P&, P>;

template <class T>
struct Bits {
  alignas(T) unsigned char bytes[sizeof(T)];
  operator T&() { return *reinterpret_cast<T*>(bytes); }
};

template <class T>
__attribute__((no_sanitize("thread"), always_inline)) inline T& thread_copy(T& given) {
  return given;
}
template <class T>
__attribute__((no_sanitize("thread"), always_inline)) inline Bits<T> thread_copy(Bits<T>& given) {
  return given;
}

// A copy of an argument, in the type P of the kernel's parameter. P is an rvalue reference if the parameter is not known: it may
// be a reference, so an object in memory of the device is not copied.
template <class P>
struct Argument {
  using T = std::decay_t<P>;
  T copy, *original = nullptr;
  template <class A, class = std::enable_if_t<!std::is_same_v<std::decay_t<A>, Argument>>>
  Argument(A&& given) : copy(static_cast<A&&>(given)) {
    if constexpr (std::is_rvalue_reference_v<P> && std::is_class_v<T> && std::is_same_v<A, T&>)
      if (is_on_device(&given)) original = &given;
  }
  __attribute__((no_sanitize("thread"), always_inline)) decltype(auto) get() {
    if constexpr (IS_PASSED_BY_ADDRESS<P>)
      return reinterpret_cast<Bits<T>&>(copy);
    else
      return original ? *original : copy;
  }
};
template <class P>
struct Argument<P&> {
  P& original;
  Argument(P& given) : original(given) {}
  __attribute__((no_sanitize("thread"), always_inline)) P& get() { return original; }
};

// A literal 0 among the arguments (cuda_source.py): a number, or a null pointer.
struct Zero {
  template <class T>
  operator T() const {
    return T(0);
  }
};

// Both return a kernel: of any parameters, if its name means one function; and the one that has these parameters.
struct OnlyKernel {
  template <class... P>
  auto operator()(void (*kernel)(P...)) const {
    return kernel;
  }
};
template <class... P>
struct KernelWith {
  auto operator()(void (*kernel)(P...)) const { return kernel; }
};

// A launch is rewritten to `emulator::launch("name", a function that calls the kernel, one that lets OnlyKernel or KernelWith find
// it, grid, block, ...)(arguments)`.
template <class F, class Find>
struct Launch {
  const char* name;
  F call_kernel;
  Find find;
  Setup setup;

  // A call of the kernel, with the copies of its arguments.
  template <class K, class... P>
  struct Call {
    K call_kernel;
    std::tuple<Argument<P>...> copies;

    static void make(void* what) __attribute__((no_sanitize("thread"))) {
      auto* call = static_cast<Call*>(what);
      std::apply([call](auto&... given) EMULATOR_UNSEEN { call->call_kernel(thread_copy(given.get())...); }, call->copies);
    }
  };

  template <class... A>
  void operator()(A&&... arguments) const {
    if constexpr (std::is_invocable_v<Find, OnlyKernel>)
      convert(find(OnlyKernel()), static_cast<A&&>(arguments)...);
    else if constexpr (std::is_invocable_v<Find, KernelWith<std::decay_t<A>...>>)
      convert(find(KernelWith<std::decay_t<A>...>()), static_cast<A&&>(arguments)...);
    else
      start<std::decay_t<A>&&...>(call_kernel, static_cast<A&&>(arguments)...);
  }

 private:
  template <class... P, class... A>
  void convert(void (*kernel)(P...), A&&... arguments) const {
    if constexpr (!std::is_invocable_v<void (*)(P...), A...>)  // the call has an error, or lacks arguments with defaults
      start<std::decay_t<A>&&...>(call_kernel, static_cast<A&&>(arguments)...);
    else if constexpr ((IS_PASSED_BY_ADDRESS<P> || ...))
      start<P...>(reinterpret_cast<void (*)(Passed<P>...)>(kernel), static_cast<A&&>(arguments)...);
    else
      start<P...>(call_kernel, static_cast<A&&>(arguments)...);
  }

  // The arguments are copied before the kernel runs, as on a GPU, and each thread copies their bits from there.
  template <class... P, class K, class... A>
  void start(K call_kernel, A&&... arguments) const {
    Call<K, P...> call{call_kernel, {static_cast<A&&>(arguments)...}};
    if (is_inside_kernel()) {
      auto* kept = new (begin_child(sizeof call)) auto(call);
      return end_child(name, setup, kept->make, kept, {&kept->copies, sizeof kept->copies});
    }
    if (!is_capturing(setup.stream)) return run(name, setup, call.make, &call, {&call.copies, sizeof call.copies});
    auto later = [launch = *this, call](CUstream_st* stream) {
      auto new_call = call;  // a graph may be launched many times
      Setup in_graph = launch.setup;
      in_graph.stream = stream;
      run(launch.name, in_graph, new_call.make, &new_call, {&new_call.copies, sizeof new_call.copies});
    };
    using Later = decltype(later);
    record_closure(setup.stream, [](void* closure, CUstream_st* stream) { (*static_cast<Later*>(closure))(stream); }, new Later(later));
  }
};

template <class F, class Find>
Launch<F, Find> launch(const char* name, F call_kernel, Find find, dim3 grid, dim3 block, size_t shared_bytes = 0,
                       CUstream_st* stream = nullptr, const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {name, call_kernel, find, {grid, block, shared_bytes, stream, file, line, false, !std::is_empty_v<F>}};
}
template <class... P, class... S>
auto launch_pointer(const char* name, void (*kernel)(P...), S... setup) {
  const auto call = [kernel](auto&... given) EMULATOR_UNSEEN { kernel(given...); };
  return launch(name, call, [kernel](auto finder) { return finder(kernel); }, setup...);
}
}  // namespace emulator

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return emulator::allocate(reinterpret_cast<void**>(pointer), bytes);
}

#include "host_api.h"

#include "device_functions.h"
#include "textures.h"
