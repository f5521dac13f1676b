// The non-template functions of CUDA's runtime and of device code.
#pragma once
#include "copies.hpp"
#include "launching.hpp"

#include <cstdarg>

namespace emulator {
cudaError_t keep(cudaError_t error) { return error == cudaSuccess || is_lasting(last_error) ? last_error : last_error = error; }

cudaError_t allocate(void** pointer, size_t bytes, MemoryKind kind) {
  *pointer = bytes ? arena.allocate(bytes, kind) : nullptr;
  if (bytes && !*pointer) refused_bytes = std::max(refused_bytes, bytes);
  return *pointer || !bytes ? cudaSuccess : last_error = cudaErrorMemoryAllocation;
}

cudaError_t allocate(void** pointer, size_t bytes) { return allocate(pointer, bytes, DEVICE); }

int lane() { return int(now.current % WARP); }
void count_bytes_only(bool on) { now.bytes_only = on; }

uint64_t take_from_lane(unsigned mask, uint64_t own, int from_lane, void* caller) {
  Fiber& fiber = threads.current();
  fiber.value = own, fiber.from = from_lane;
  threads.wait(AT_WARP, SHUFFLE, mask, caller);
  return fiber.value;
}

unsigned collect_votes(unsigned mask, bool own, void* caller) {
  Fiber& fiber = threads.current();
  fiber.value = own;
  threads.wait(AT_WARP, VOTE, mask, caller);
  return unsigned(fiber.value);
}

unsigned find_active(void* caller) {
  threads.wait(AT_WARP, CONVERGE, ~0u, caller);
  return unsigned(threads.current().value);
}

void* const* gather_addresses(void* own, void* caller) {
  threads.current().value = Place(own);
  threads.wait(AT_WARP, ADDRESSES, ~0u, caller);
  return threads.addresses + now.current / WARP * WARP;
}

void wait_for_grid(void* caller) {
  const uint64_t waiting = uint64_t(grid_size.x) * grid_size.y * grid_size.z * now.threads;
  if (waiting > MULTIPROCESSORS * RESIDENT_THREADS) {
    note(now.report->refused_launches, "cooperative", {}, {}, (long long)waiting, MULTIPROCESSORS * RESIDENT_THREADS, now.report->line);
    abandon_kernel(cudaErrorCooperativeLaunchTooLarge);
  }
  if (!now.cooperative) {
    note(now.report->barrier_divergence, "plain launch", here(caller, READ));
    abandon_kernel(cudaErrorLaunchFailure);
  }
  wait_for_all_copies();  // other blocks use their place
  threads.wait(AT_GRID, SYNC, ~0u, caller);
}

void leave_tile(void* caller) { threads.wait(AT_WARP, QUIET, ~0u, caller); }

int wait_for_block(bool own, void* caller) {
  threads.current().value = own;
  threads.wait(AT_BLOCK, SYNC, ~0u, caller);
  return threads.block_count;
}
}  // namespace emulator

#define CALLER __builtin_return_address(0)
void __syncthreads() { emulator::wait_for_block(false, CALLER); }
int __syncthreads_count(int predicate) { return emulator::wait_for_block(predicate, CALLER); }
int __syncthreads_and(int predicate) { return emulator::wait_for_block(!predicate, CALLER) == 0; }
int __syncthreads_or(int predicate) { return emulator::wait_for_block(predicate, CALLER) != 0; }
void __syncwarp(unsigned mask) { emulator::threads.wait(emulator::AT_WARP, emulator::SYNC, mask, CALLER); }
unsigned __ballot_sync(unsigned mask, int predicate) { return emulator::collect_votes(mask, predicate, CALLER); }
int __any_sync(unsigned mask, int predicate) { return emulator::collect_votes(mask, predicate, CALLER) != 0; }
int __all_sync(unsigned mask, int predicate) { return emulator::collect_votes(mask, !predicate, CALLER) == 0; }
unsigned __activemask() { return emulator::find_active(CALLER); }
void __threadfence() { emulator::note_fence(); }
void __threadfence_block() { emulator::handing.fence(); }
long long clock64() {
  static long long cycles = 0;
  emulator::now.varies = true;
  return cycles += 10;
}
#undef CALLER

cudaError_t cudaPeekAtLastError() { return emulator::last_error; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = emulator::last_error;
  if (!emulator::is_lasting(error)) emulator::last_error = cudaSuccess;
  return error;
}
namespace emulator {
inline cudaError_t find_lasting_error() { return is_lasting(last_error) ? last_error : cudaSuccess; }
}
cudaError_t cudaDeviceSynchronize() {
  if (!emulator::now.running) emulator::wait_for(emulator::streams.all);
  return emulator::find_lasting_error();
}

namespace emulator {
// The numbers of glibc's `rand` and `random`, which take a lock for each of them: many programs fill large arrays with them.
struct Random {
  uint32_t numbers[31] = {};
  unsigned next = 0;  // the oldest one, which is replaced by its sum with one of the later ones

  explicit Random(unsigned seed) {
    int32_t word = seed ? int32_t(seed) : 1;
    for (unsigned i = 0; i < 31; ++i) {
      numbers[(i + 28) % 31] = uint32_t(word);
      word = 16807 * (word % 127773) - 2836 * (word / 127773);
      if (word < 0) word += INT_MAX;
    }
    for (int i = 0; i < 310; ++i) take();
  }

  int take() {
    uint32_t& number = numbers[next];
    number += numbers[next < 3 ? next + 28 : next - 3];
    next = next == 30 ? 0 : next + 1;
    return int(number >> 1);
  }
};
inline Random random{1};
}  // namespace emulator

// assembly.py makes these of `malloc`, `free`, `new`, `delete`, `assert`, `rand`, `srand` and `printf` in the learner's program. A
// kernel gets memory of the device.
extern "C" {
long emulator_rand() { return emulator::random.take(); }
void emulator_srand(unsigned seed) { emulator::random = emulator::Random(seed); }
void* emulator_malloc(size_t bytes) { return emulator::now.inside ? emulator::heap.allocate(bytes) : malloc(bytes); }
void emulator_free(void* pointer) {
  if (!emulator::arena.holds(emulator::Place(pointer))) free(pointer);
}
void* emulator_new(size_t bytes) { return emulator::now.inside ? emulator::heap.allocate(bytes) : ::operator new(bytes); }
void emulator_delete(void* pointer) {
  if (!emulator::arena.holds(emulator::Place(pointer))) ::operator delete(pointer);
}
int emulator_puts(const char* words) { return emulator::now.varies = true, puts(words); }
int emulator_putchar(int letter) { return emulator::now.varies = true, putchar(letter); }
int emulator_putc(int letter, FILE* file) { return emulator::now.varies = true, putc(letter, file); }
int emulator_printf(const char* format, ...) {
  emulator::now.varies = true;
  va_list values;
  va_start(values, format);
  const int count = vprintf(format, values);
  va_end(values);
  return count;
}
// A failed assert of a kernel ends the kernel, and the host gets the error.
[[noreturn]] void emulator_assert_fail(const char* condition, const char* file, unsigned line, const char* function) {
  if (!emulator::now.inside) __assert_fail(condition, file, line, function);
  const auto [x, y, z] = block_index;
  fflush(stdout);
  fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function, x, y, z,
          thread_index.x, thread_index.y, thread_index.z, condition);
  emulator::abandon_kernel(cudaErrorAssert);
}
}

cudaError_t cudaFree(void* pointer) {
  const emulator::Allocation* owner = emulator::arena.find(emulator::Place(pointer));
  if (owner && owner->freed)
    emulator::note(emulator::report_of_host().used_after_free, "free", {{}, {}, __builtin_return_address(0), emulator::READ});
  if (!emulator::now.running) emulator::wait_for(emulator::streams.all);  // as cudaFree does
  if (!pointer || emulator::arena.release(emulator::Place(pointer))) return cudaSuccess;
  return emulator::keep(cudaErrorInvalidValue);
}

namespace emulator {
struct ErrorWords {
  cudaError_t error;
  const char *name, *words;
};
#define EMULATOR_ERROR(NAME, WORDS) {NAME, #NAME, WORDS}
constexpr ErrorWords ERRORS[] = {
    EMULATOR_ERROR(cudaSuccess, "no error"),
    EMULATOR_ERROR(cudaErrorInvalidValue, "invalid argument"),
    EMULATOR_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    EMULATOR_ERROR(cudaErrorInitializationError, "initialization error"),
    EMULATOR_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    EMULATOR_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    EMULATOR_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    EMULATOR_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    EMULATOR_ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    EMULATOR_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    EMULATOR_ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    EMULATOR_ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    EMULATOR_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    EMULATOR_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    EMULATOR_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    EMULATOR_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    EMULATOR_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    EMULATOR_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    EMULATOR_ERROR(cudaErrorNotReady, "device not ready"),
    EMULATOR_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    EMULATOR_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    EMULATOR_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    EMULATOR_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    EMULATOR_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    EMULATOR_ERROR(cudaErrorAssert, "device-side assert triggered"),
    EMULATOR_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    EMULATOR_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    EMULATOR_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    EMULATOR_ERROR(cudaErrorNotSupported, "operation not supported"),
    EMULATOR_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    EMULATOR_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef EMULATOR_ERROR
const ErrorWords& describe(cudaError_t error) {
  for (const ErrorWords& known : ERRORS)
    if (known.error == error) return known;
  static const ErrorWords unknown{error, "unrecognized error code", "unrecognized error code"};
  return unknown;
}
}  // namespace emulator
const char* cudaGetErrorString(cudaError_t error) { return emulator::describe(error).words; }
const char* cudaGetErrorName(cudaError_t error) { return emulator::describe(error).name; }
