// The host's functions of host_api.h: each call takes effect at once, in the order of the calls.
#pragma once
#include "graphs.hpp"
#include "launching.hpp"
#include "memory.hpp"
#include "variables.hpp"

#include <chrono>

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point at{};
  emulator::Clock clock{};
};

namespace emulator {
constexpr size_t PITCH = 512;  // bytes: a row of cudaMallocPitch begins at a multiple
constexpr int RESIDENT_BLOCKS = 32;
constexpr size_t SHARED_OF_MULTIPROCESSOR = 164 << 10;

// Memory of the host that cudaHostRegister has registered: kernels may use it, and its accesses are not checked.
inline std::map<Place, size_t> registered;
bool is_registered(Place place) {
  const auto next = registered.upper_bound(place);
  return next != registered.begin() && place - std::prev(next)->first < std::prev(next)->second;
}

enum Side { ON_HOST, ON_DEVICE, ON_BOTH };  // what cudaMemcpyKind may call an address
inline Side side_of(const void* pointer) {
  const Place place = Place(pointer);
  if (is_of_device(place) || is_registered(place)) return ON_BOTH;
  const Allocation* owner = arena.find(place);
  return !owner ? ON_HOST : owner->kind == DEVICE ? ON_DEVICE : ON_BOTH;
}
inline bool fits(Side side, bool wants_device) { return side == ON_BOTH || (side == ON_DEVICE) == wants_device; }
inline bool is_allocated(const void* pointer, size_t bytes) {
  return !bytes || !arena.holds(Place(pointer)) || arena.owns(Place(pointer), bytes);
}

// Note that one end of a copy leaves its allocation. CUDA refuses the copy, which few programs check.
inline void note_if_too_long(const void* pointer, size_t bytes, Kind kind, void* caller) {
  const Allocation* owner = arena.find(Place(pointer));
  if (owner && !is_allocated(pointer, bytes))
    note(owner->freed ? report_of_host().used_after_free : report_of_host().out_of_bounds, "copy", {{}, {}, caller, kind}, {},
         (long long)(Place(pointer) - owner->begin), (long long)bytes, (long long)owner->bytes);
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, bool waits, void* caller) {
  if (is_capturing(stream))
    return record(stream, cudaGraphNodeTypeMemcpy,
                  [=](cudaStream_t later) { return copy(to, from, bytes, kind, later, waits, caller); });
  if (is_lasting(last_error)) return last_error;
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault && !(fits(side_of(to), wants_to) && fits(side_of(from), wants_from)))
    return keep(cudaErrorInvalidValue);
  note_if_too_long(to, bytes, WRITE, caller);
  note_if_too_long(from, bytes, READ, caller);
  if (!is_allocated(to, bytes) || !is_allocated(from, bytes)) return keep(cudaErrorInvalidValue);
  order_copy(to, from, bytes, stream, waits, caller);
  memmove(to, from, bytes);
  arena.fill(Place(to), bytes);
  return cudaSuccess;
}

inline cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                             cudaMemcpyKind kind, cudaStream_t stream, bool waits,
                             void* caller = __builtin_return_address(0)) {
  if (width > to_pitch || width > from_pitch) return keep(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < rows; ++row) {
    char* const to_row = static_cast<char*>(to) + row * to_pitch;
    const char* const from_row = static_cast<const char*>(from) + row * from_pitch;
    const cudaError_t error = copy(to_row, from_row, width, kind, stream, waits, caller);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

inline cudaError_t fill(void* to, int value, size_t bytes, cudaStream_t stream, bool waits = false,
                        void* caller = __builtin_return_address(0)) {
  if (is_capturing(stream))
    return record(stream, cudaGraphNodeTypeMemset,
                  [=](cudaStream_t later) { return fill(to, value, bytes, later, waits, caller); });
  if (is_lasting(last_error)) return last_error;
  note_if_too_long(to, bytes, WRITE, caller);
  if (side_of(to) == ON_HOST || !is_allocated(to, bytes)) return keep(cudaErrorInvalidValue);
  order_copy(to, nullptr, bytes, stream, waits, caller);
  memset(to, value, bytes);
  arena.fill(Place(to), bytes);
  return cudaSuccess;
}

bool reach_from_library(const void* begin, size_t bytes, bool writes) {
  if (!captures.empty()) return keep(cudaErrorStreamCaptureUnsupported), false;
  wait_for(streams.all);  // which stream a library uses is not compared
  const bool is_there = !bytes || (side_of(begin) != ON_HOST && is_allocated(begin, bytes));
  if (is_there && writes) arena.fill(Place(begin), bytes);
  if (is_there) return true;
  keep(cudaErrorIllegalAddress);
  return false;
}

cudaError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t rows) {
  *pitch = (width + PITCH - 1) / PITCH * PITCH;
  return allocate(pointer, *pitch * rows, DEVICE);
}

const char* name_of_function(void* function) { return variables.name_of_function(Place(function)); }

cudaError_t count_resident_blocks(int* count, int block, size_t shared_bytes) {
  const int by_threads = RESIDENT_THREADS / std::max(1, (block + 31) / 32 * 32);
  const int by_memory = shared_bytes ? int(SHARED_OF_MULTIPROCESSOR / (shared_bytes + 1024)) : RESIDENT_BLOCKS;
  *count = block < 1 || block > int(MAX_THREADS) ? 0 : std::min({by_threads, by_memory, RESIDENT_BLOCKS});
  return cudaSuccess;
}

cudaError_t set_function_attribute(cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || size_t(value) > MAX_SHARED) return keep(cudaErrorInvalidValue);
  allowed_shared = std::max(allowed_shared, size_t(value));
  return cudaSuccess;
}

// Devices that a program sees: EMULATOR_DEVICES. They share the memory, the default stream and the clock of one.
inline int current_device = 0;
inline int count_devices() {
  static const int count = getenv("EMULATOR_DEVICES") ? std::max(1, atoi(getenv("EMULATOR_DEVICES"))) : 1;
  return count;
}
inline cudaError_t check_device(int device) {
  return device >= 0 && device < count_devices() ? cudaSuccess : keep(cudaErrorInvalidDevice);
}
inline cudaError_t check_peer(int device, int peer) {
  return device == peer ? keep(cudaErrorInvalidDevice) : check_device(peer);
}

inline cudaDeviceProp describe_device() {
  cudaDeviceProp device{};
  strcpy(device.name, "gpucourse emulator (a CPU)");
  device.totalGlobalMem = MAX_LIVE_BYTES;
  device.sharedMemPerBlock = SHARED_LIMIT, device.sharedMemPerBlockOptin = MAX_SHARED;
  device.sharedMemPerMultiprocessor = SHARED_OF_MULTIPROCESSOR, device.reservedSharedMemPerBlock = 1024;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.warpSize = WARP;
  device.memPitch = 0x7fffffff, device.totalConstMem = 65536;
  device.maxThreadsPerBlock = MAX_THREADS, device.maxThreadsPerMultiProcessor = RESIDENT_THREADS;
  device.maxThreadsDim[0] = device.maxThreadsDim[1] = MAX_THREADS, device.maxThreadsDim[2] = 64;
  device.maxGridSize[0] = 0x7fffffff, device.maxGridSize[1] = device.maxGridSize[2] = 65535;
  device.clockRate = 1410000, device.memoryClockRate = 1215000, device.memoryBusWidth = 5120;  // kHz, kHz, bits: an A100's
  device.major = 8, device.minor = 0, device.l2CacheSize = 40 << 20;
  device.multiProcessorCount = MULTIPROCESSORS, device.maxBlocksPerMultiProcessor = RESIDENT_BLOCKS;
  device.textureAlignment = PITCH, device.texturePitchAlignment = 32, device.surfaceAlignment = PITCH;
  device.maxTexture1D = device.maxTexture2D[0] = device.maxTexture2D[1] = 131072;
  for (int& side : device.maxTexture3D) side = 16384;
  device.deviceOverlap = device.canMapHostMemory = device.concurrentKernels = device.unifiedAddressing = 1;
  device.asyncEngineCount = 3, device.streamPrioritiesSupported = device.managedMemory = device.concurrentManagedAccess = 1;
  device.globalL1CacheSupported = device.localL1CacheSupported = device.cooperativeLaunch = device.memoryPoolsSupported = 1;
  device.hostRegisterSupported = device.canUseHostPointerForRegisteredMem = 1, device.singleToDoublePrecisionPerfRatio = 2;
  return device;
}

inline int read_attribute(cudaDeviceAttr attribute) {
  const cudaDeviceProp device = describe_device();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return device.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: return device.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimZ: return device.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return device.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: return device.maxGridSize[1];
    case cudaDevAttrMaxSharedMemoryPerBlock: return int(device.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return int(device.sharedMemPerBlockOptin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return int(device.sharedMemPerMultiprocessor);
    case cudaDevAttrTotalConstantMemory: return int(device.totalConstMem);
    case cudaDevAttrWarpSize: return device.warpSize;
    case cudaDevAttrMaxPitch: return int(device.memPitch);
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: return device.regsPerBlock;
    case cudaDevAttrClockRate: return device.clockRate;
    case cudaDevAttrMemoryClockRate: return device.memoryClockRate;
    case cudaDevAttrGlobalMemoryBusWidth: return device.memoryBusWidth;
    case cudaDevAttrTextureAlignment: return int(device.textureAlignment);
    case cudaDevAttrSurfaceAlignment: return int(device.surfaceAlignment);
    case cudaDevAttrTexturePitchAlignment: return int(device.texturePitchAlignment);
    case cudaDevAttrMaxTexture1DWidth: return device.maxTexture1D;
    case cudaDevAttrMaxTexture2DWidth: case cudaDevAttrMaxTexture2DHeight: return device.maxTexture2D[0];
    case cudaDevAttrMaxTexture3DWidth: case cudaDevAttrMaxTexture3DHeight: case cudaDevAttrMaxTexture3DDepth:
      return device.maxTexture3D[0];
    case cudaDevAttrReservedSharedMemoryPerBlock: return int(device.reservedSharedMemPerBlock);
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return device.singleToDoublePrecisionPerfRatio;
    case cudaDevAttrGlobalL1CacheSupported: case cudaDevAttrLocalL1CacheSupported: case cudaDevAttrHostRegisterSupported: return 1;
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return 1;
    case cudaDevAttrMultiProcessorCount: return device.multiProcessorCount;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return device.maxBlocksPerMultiProcessor;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return device.maxThreadsPerMultiProcessor;
    case cudaDevAttrL2CacheSize: return device.l2CacheSize;
    case cudaDevAttrAsyncEngineCount: return device.asyncEngineCount;
    case cudaDevAttrComputeCapabilityMajor: return device.major;
    case cudaDevAttrComputeCapabilityMinor: return device.minor;
    case cudaDevAttrGpuOverlap: case cudaDevAttrCanMapHostMemory: case cudaDevAttrConcurrentKernels: return 1;
    case cudaDevAttrUnifiedAddressing: case cudaDevAttrStreamPrioritiesSupported: case cudaDevAttrManagedMemory: return 1;
    case cudaDevAttrConcurrentManagedAccess: case cudaDevAttrCooperativeLaunch: return 1;
    case cudaDevAttrMemoryPoolsSupported: return 1;
    default: return 0;
  }
}
}  // namespace emulator

using emulator::keep;
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = emulator::describe_device();
  return emulator::check_device(device);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  *value = emulator::read_attribute(attribute);
  return emulator::check_device(device);
}
cudaError_t cudaGetDevice(int* device) { return *device = emulator::current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  const cudaError_t error = emulator::check_device(device);
  if (error == cudaSuccess) emulator::current_device = device;
  return error;
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return emulator::check_device(device); }
cudaError_t cudaSetValidDevices(int* devices, int count) { return count > 0 ? cudaSetDevice(*devices) : cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned* flags) { return *flags = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = emulator::count_devices(), cudaSuccess; }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadExit() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  constexpr size_t DEFAULTS[] = {1 << 10, 1 << 20, 8 << 20, 2, 2048, 128, 0};
  return *value = DEFAULTS[limit], cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* configuration) {
  return *configuration = cudaFuncCachePreferNone, cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* configuration) {
  return *configuration = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  snprintf(text, size_t(length), "0000:00:00.0");
  return emulator::check_device(device);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char*) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  *value = attribute != cudaDevP2PAttrPerformanceRank;
  return emulator::check_peer(device, peer);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const cudaError_t error = emulator::check_device(peer);
  return *can = error == cudaSuccess && device != peer, error;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) { return emulator::check_peer(emulator::current_device, peer); }
cudaError_t cudaDeviceDisablePeerAccess(int peer) { return emulator::check_peer(emulator::current_device, peer); }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* unused, size_t* total) {
  *total = emulator::MAX_LIVE_BYTES, *unused = *total - emulator::arena.live;
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return keep(cudaErrorNotSupported); }
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) { return keep(cudaErrorNotSupported); }
cudaError_t cudaIpcCloseMemHandle(void*) { return keep(cudaErrorNotSupported); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) { return keep(cudaErrorNotSupported); }
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) { return keep(cudaErrorNotSupported); }

// --- streams and events ----------------------------------------------------------------------------------------------------
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  *stream = new CUstream_st{flags, priority, emulator::streams.count++};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUstream_st& waited_for = emulator::streams.find(stream);
  emulator::streams.begin(waited_for);
  emulator::wait_for(waited_for.clock);
  return emulator::find_lasting_error();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) { return *priority = stream->priority, cudaSuccess; }
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) { return *flags = stream->flags, cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto captured = emulator::captured_events.find(event);
  if (stream && captured != emulator::captured_events.end())
    emulator::captures[stream] = captured->second;
  else if (event)
    emulator::streams.find(stream).clock.join(event->clock);
  return emulator::find_lasting_error();
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* data, unsigned) {
  emulator::streams.begin(emulator::streams.find(stream));
  emulator::streams.calls_host = true;
  call(stream, emulator::find_lasting_error(), data);
  emulator::streams.calls_host = false;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* data) {
  if (emulator::is_capturing(stream))
    return emulator::record(stream, cudaGraphNodeTypeHost, [=](cudaStream_t) { return call(data), cudaSuccess; });
  emulator::streams.begin(emulator::streams.find(stream));
  emulator::streams.calls_host = true;
  call(data);
  emulator::streams.calls_host = false;
  return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st{flags};
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!event) return keep(cudaErrorInvalidResourceHandle);
  if (emulator::is_capturing(stream)) {
    emulator::captured_events[event] = emulator::captures[stream];
    return emulator::record(stream, cudaGraphNodeTypeEventRecord, [=](cudaStream_t later) { return cudaEventRecord(event, later); });
  }
  event->recorded = true, event->at = std::chrono::steady_clock::now();
  emulator::streams.begin(emulator::streams.find(stream));
  event->clock = emulator::streams.current;
  return emulator::find_lasting_error();
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) { return cudaEventRecord(event, stream); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event) emulator::wait_for(event->clock);
  return emulator::find_lasting_error();
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start || !end || !start->recorded || !end->recorded || ((start->flags | end->flags) & cudaEventDisableTiming))
    return keep(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

// --- memory ----------------------------------------------------------------------------------------------------------------
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  if (emulator::is_registered(emulator::Place(pointer))) return keep(cudaErrorHostMemoryAlreadyRegistered);
  emulator::registered[emulator::Place(pointer)] = bytes;
  emulator::has_handles = true;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* pointer) {
  return emulator::registered.erase(emulator::Place(pointer)) ? cudaSuccess : keep(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetFlags(unsigned* flags, void*) { return *flags = 0, cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const emulator::Allocation* owner = emulator::arena.find(emulator::Place(pointer));
  constexpr cudaMemoryType TYPES[] = {cudaMemoryTypeDevice, cudaMemoryTypeManaged, cudaMemoryTypeHost};
  void* place = const_cast<void*>(pointer);
  *attributes = {owner ? TYPES[owner->kind] : cudaMemoryTypeUnregistered, 0, owner ? place : nullptr,
                 owner && owner->kind == emulator::DEVICE ? nullptr : place};
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool waits = emulator::side_of(to) != emulator::ON_DEVICE || emulator::side_of(from) != emulator::ON_DEVICE;
  return emulator::copy(to, from, bytes, kind, nullptr, waits);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return emulator::copy(to, from, bytes, kind, stream, false);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return emulator::copy(to, from, bytes, cudaMemcpyDefault, nullptr, true);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return emulator::copy(to, from, bytes, cudaMemcpyDefault, stream, false);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                         cudaMemcpyKind kind) {
  return emulator::copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, nullptr, true);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return emulator::copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, stream, false);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return emulator::fill(to, value, bytes, nullptr, emulator::side_of(to) != emulator::ON_DEVICE);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return emulator::fill(to, value, bytes, stream);
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream) {
  for (size_t row = 0; row < rows; ++row)
    if (const cudaError_t error = emulator::fill(static_cast<char*>(to) + row * pitch, value, width, stream)) return error;
  return cudaSuccess;
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t rows) {
  return cudaMemset2DAsync(to, pitch, value, width, rows, nullptr);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  pointer->xsize = extent.width, pointer->ysize = extent.height;
  return emulator::allocate_pitched(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    char* begin = static_cast<char*>(to.ptr) + slice * to.pitch * to.ysize;
    if (const cudaError_t error = cudaMemset2DAsync(begin, to.pitch, value, extent.width, extent.height, stream)) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) { return cudaMemset3DAsync(to, value, extent, nullptr); }
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }
