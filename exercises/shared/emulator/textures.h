// Arrays, textures (objects, and the references that CUDA had before version 12) and surfaces.
//
// A texture reads as a GPU does it: coordinates beyond the edge, filters with 8 bits of fraction, numbers normalised to 1. Its
// reads are not counted: on a GPU they pass through units of their own.
#pragma once

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone,
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
  cudaChannelFormatKind f;
};
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
namespace emulator {
template <class T, class = void>
struct Channels {
  using Number = T;
};
template <class T>
struct Channels<T, std::void_t<decltype(T::x)>> {
  using Number = decltype(T::x);
};
template <class T>
constexpr int channels_of = sizeof(T) / sizeof(typename Channels<T>::Number);
}  // namespace emulator
template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Number = typename emulator::Channels<T>::Number;
  const int bits = 8 * sizeof(Number), count = emulator::channels_of<T>;
  const auto kind = !std::is_integral_v<Number>  ? cudaChannelFormatKindFloat
                    : std::is_signed_v<Number> ? cudaChannelFormatKindSigned
                                               : cudaChannelFormatKindUnsigned;
  return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0, kind};
}

// --- arrays ----------------------------------------------------------------------------------------------------------------
struct cudaArray {
  char* begin;
  cudaChannelFormatDesc format;
  cudaExtent size;  // in elements; 0 for a dimension that it lacks
  unsigned flags;
};
typedef const cudaArray* cudaArray_const_t;
enum {
  cudaArrayDefault,
  cudaArrayLayered = 1,
  cudaArraySurfaceLoadStore = 2,
  cudaArrayCubemap = 4,
  cudaArrayTextureGather = 8,
};
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent size, unsigned flags = 0);
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height = 0,
                            unsigned flags = 0);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* size, unsigned* flags, cudaArray_t array);
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t rows,
                                cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t rows,
                                  cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t rows,
                                     cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t rows, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy);

// --- objects ---------------------------------------------------------------------------------------------------------------
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D,
};
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
constexpr int cudaTextureType1D = 1, cudaTextureType2D = 2, cudaTextureType3D = 3;
constexpr int cudaTextureTypeCubemap = 0x0c, cudaTextureTypeCubemapLayered = 0xfc;
constexpr int cudaTextureType1DLayered = 0xf1, cudaTextureType2DLayered = 0xf2;
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource, const cudaTextureDesc* how,
                                    const cudaResourceViewDesc* view);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* how, cudaTextureObject_t texture);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);

namespace emulator {
// One channel of a texture at a place. Of its coordinates, `dimensions` are filtered; the next one is the layer.
double sample(cudaTextureObject_t texture, int dimensions, const float* place, int channel);
double fetch(cudaTextureObject_t texture, long index, int channel);
// The address of bytes of a surface; null if they are outside and the mode permits that.
void* find_in_surface(cudaSurfaceObject_t surface, long x, long y, long z, unsigned bytes, cudaSurfaceBoundaryMode mode,
                      void* caller);

template <class T>
EMULATOR_UNSEEN T sample_all(cudaTextureObject_t texture, int dimensions, float x, float y = 0, float z = 0) {
  using Number = typename Channels<T>::Number;
  const float place[] = {x, y, z};
  T result{};
  Number* channels = reinterpret_cast<Number*>(&result);
  for (int i = 0; i < channels_of<T>; ++i) channels[i] = Number(sample(texture, dimensions, place, i));
  return result;
}
// The largest coordinate chooses one of six faces, as the Guide says in "Cubemap Textures".
template <class T>
EMULATOR_UNSEEN T sample_cube(cudaTextureObject_t texture, float x, float y, float z, int layer = 0) {
  const float along_x = fabsf(x), along_y = fabsf(y), along_z = fabsf(z);
  const float largest = fmaxf(along_x, fmaxf(along_y, along_z));
  const auto on_face = [=](int face, float s, float t) {
    return sample_all<T>(texture, 2, (s / largest + 1) / 2, (t / largest + 1) / 2, float(6 * layer + face));
  };
  if (along_x >= along_y && along_x >= along_z) return on_face(x < 0, x < 0 ? z : -z, -y);
  if (along_y >= along_z) return on_face(2 + (y < 0), x, y < 0 ? -z : z);
  return on_face(4 + (z < 0), z < 0 ? -x : x, -y);
}
template <class T>
EMULATOR_UNSEEN T fetch_all(cudaTextureObject_t texture, long index) {
  using Number = typename Channels<T>::Number;
  T result{};
  for (int i = 0; i < channels_of<T>; ++i) reinterpret_cast<Number*>(&result)[i] = Number(fetch(texture, index, i));
  return result;
}

// What a reference returns: numbers normalised to 1 are floats.
template <class T, cudaTextureReadMode Mode>
struct Read {
  using Type = T;
};
template <class T>
struct Read<T, cudaReadModeNormalizedFloat> {
  using Types = std::tuple<float, float1, float2, float3, float4>;
  using Type = std::tuple_element_t<std::is_integral_v<T> ? 0 : channels_of<T>, Types>;
};
}  // namespace emulator

struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  cudaTextureReadMode readMode;
  cudaTextureObject_t bound;
};
cudaError_t cudaUnbindTexture(textureReference& reference);
cudaError_t cudaUnbindTexture(const textureReference* reference);
namespace emulator {
cudaError_t bind(textureReference& reference, const cudaResourceDesc& resource);
}
template <class T, int Dimensions = 1, cudaTextureReadMode Mode = cudaReadModeElementType>
struct texture : textureReference {
  texture(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
          cudaTextureAddressMode address = cudaAddressModeClamp)
      : textureReference{normalized, filter, {address, address, address}, cudaCreateChannelDesc<T>(), Mode, 0} {}
};
inline cudaError_t cudaBindTextureToArray(textureReference& reference, cudaArray_const_t array) {
  cudaResourceDesc resource{cudaResourceTypeArray, {}};
  resource.res.array.array = const_cast<cudaArray_t>(array);
  return emulator::bind(reference, resource);
}
inline cudaError_t cudaBindTextureToArray(textureReference& reference, cudaArray_const_t array, const cudaChannelFormatDesc&) {
  return cudaBindTextureToArray(reference, array);
}
inline cudaError_t cudaBindTexture(size_t* offset, textureReference& reference, const void* begin,
                                   const cudaChannelFormatDesc& format, size_t bytes = 0xffffffffu) {
  if (offset) *offset = 0;
  cudaResourceDesc resource{cudaResourceTypeLinear, {}};
  resource.res.linear = {const_cast<void*>(begin), format, bytes};
  return emulator::bind(reference, resource);
}
inline cudaError_t cudaBindTexture(size_t* offset, textureReference& reference, const void* begin, size_t bytes = 0xffffffffu) {
  return cudaBindTexture(offset, reference, begin, reference.channelDesc, bytes);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, textureReference& reference, const void* begin,
                                     const cudaChannelFormatDesc& format, size_t width, size_t height, size_t pitch) {
  if (offset) *offset = 0;
  cudaResourceDesc resource{cudaResourceTypePitch2D, {}};
  resource.res.pitch2D = {const_cast<void*>(begin), format, width, height, pitch};
  return emulator::bind(reference, resource);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, textureReference& reference, const void* begin, size_t width,
                                     size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, reference, begin, reference.channelDesc, width, height, pitch);
}

// --- functions of kernels --------------------------------------------------------------------------------------------------
#define EMULATOR_TEXTURE(NAME, PARAMETERS, CALL)                                                              \
  template <class T>                                                                                          \
  T NAME(cudaTextureObject_t object, EMULATOR_LIST PARAMETERS) {                                              \
    return emulator::CALL;                                                                                    \
  }                                                                                                           \
  template <class T>                                                                                          \
  void NAME(T* result, cudaTextureObject_t object, EMULATOR_LIST PARAMETERS) {                                \
    *result = emulator::CALL;                                                                                 \
  }                                                                                                           \
  template <class Element, int Dimensions, cudaTextureReadMode Mode>                                          \
  EMULATOR_UNSEEN typename emulator::Read<Element, Mode>::Type NAME(                                          \
      const texture<Element, Dimensions, Mode>& reference, EMULATOR_LIST PARAMETERS) {                        \
    using T = typename emulator::Read<Element, Mode>::Type;                                                   \
    const cudaTextureObject_t object = reference.bound;                                                       \
    return emulator::CALL;                                                                                    \
  }
#define EMULATOR_LIST(...) __VA_ARGS__
EMULATOR_TEXTURE(tex1Dfetch, (int index), fetch_all<T>(object, index))
EMULATOR_TEXTURE(tex1D, (float x), sample_all<T>(object, 1, x))
EMULATOR_TEXTURE(tex2D, (float x, float y), sample_all<T>(object, 2, x, y))
EMULATOR_TEXTURE(tex3D, (float x, float y, float z), sample_all<T>(object, 3, x, y, z))
EMULATOR_TEXTURE(tex1DLayered, (float x, int layer), sample_all<T>(object, 1, x, float(layer)))
EMULATOR_TEXTURE(tex2DLayered, (float x, float y, int layer), sample_all<T>(object, 2, x, y, float(layer)))
EMULATOR_TEXTURE(texCubemap, (float x, float y, float z), sample_cube<T>(object, x, y, z))
EMULATOR_TEXTURE(texCubemapLayered, (float x, float y, float z, int layer), sample_cube<T>(object, x, y, z, layer))
#undef EMULATOR_TEXTURE
#define EMULATOR_SURFACE(NAME, PARAMETERS, X, Y, Z)                                                   \
  template <class T>                                                                                  \
  EMULATOR_UNSEEN void NAME##write(T value, cudaSurfaceObject_t surface, EMULATOR_LIST PARAMETERS,    \
                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {             \
    void* place = emulator::find_in_surface(surface, X, Y, Z, sizeof(T), mode, EMULATOR_CALLER);      \
    if (place) memcpy(place, &value, sizeof(T));                                                      \
  }                                                                                                   \
  template <class T>                                                                                  \
  EMULATOR_UNSEEN void NAME##read(T* value, cudaSurfaceObject_t surface, EMULATOR_LIST PARAMETERS,    \
                                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {              \
    *value = T{};                                                                                     \
    void* place = emulator::find_in_surface(surface, X, Y, Z, sizeof(T), mode, EMULATOR_CALLER);      \
    if (place) memcpy(value, place, sizeof(T));                                                       \
  }                                                                                                   \
  template <class T>                                                                                  \
  EMULATOR_UNSEEN T NAME##read(cudaSurfaceObject_t surface, EMULATOR_LIST PARAMETERS,                 \
                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                 \
    T value{};                                                                                        \
    void* place = emulator::find_in_surface(surface, X, Y, Z, sizeof(T), mode, EMULATOR_CALLER);      \
    if (place) memcpy(&value, place, sizeof(T));                                                      \
    return value;                                                                                     \
  }
EMULATOR_SURFACE(surf1D, (int x), x, 0, 0)
EMULATOR_SURFACE(surf2D, (int x, int y), x, y, 0)
EMULATOR_SURFACE(surf3D, (int x, int y, int z), x, y, z)
EMULATOR_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
#undef EMULATOR_SURFACE
#undef EMULATOR_LIST
