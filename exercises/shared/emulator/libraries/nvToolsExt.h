// NVTX: ranges and marks for a profiler, which the emulator does not have.
#pragma once
#include <cstdint>

typedef int nvtxRangeId_t;
typedef void* nvtxDomainHandle_t;
enum { NVTX_VERSION = 3, NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1 };
struct nvtxEventAttributes_t {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
  } message;
};
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE uint16_t(sizeof(nvtxEventAttributes_t))
inline int nvtxRangePushA(const char*) { return 0; }
inline int nvtxRangePush(const char*) { return 0; }
inline int nvtxRangePushEx(const nvtxEventAttributes_t*) { return 0; }
inline int nvtxRangePop() { return 0; }
inline nvtxRangeId_t nvtxRangeStartA(const char*) { return 0; }
inline nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t*) { return 0; }
inline void nvtxRangeEnd(nvtxRangeId_t) {}
inline void nvtxMarkA(const char*) {}
inline void nvtxMark(const char*) {}
inline void nvtxMarkEx(const nvtxEventAttributes_t*) {}
inline void nvtxNameOsThreadA(uint32_t, const char*) {}
inline void nvtxNameCudaStreamA(struct CUstream_st*, const char*) {}
inline void nvtxNameCudaDeviceA(int, const char*) {}
inline void nvtxNameCudaEventA(struct CUevent_st*, const char*) {}
