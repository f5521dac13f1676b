// Arrays, textures and surfaces.
#pragma once
#include "hooks.hpp"

namespace emulator {
inline size_t bytes_of(const cudaChannelFormatDesc& format) { return size_t(format.x + format.y + format.z + format.w) / 8; }
inline size_t at_least_one(size_t count) { return count ? count : 1; }
inline size_t pitch_of(const cudaArray& array) { return array.size.width * bytes_of(array.format); }
inline char* find_in_array(const cudaArray& array, size_t x_bytes, size_t y, size_t z = 0) {
  return array.begin + (z * at_least_one(array.size.height) + y) * pitch_of(array) + x_bytes;
}

struct Texture {
  const char* begin;
  cudaChannelFormatDesc format;
  size_t size[3], pitch;  // in elements, and bytes of a row
  bool is_layered;
  cudaTextureDesc how;
  cudaResourceDesc resource{};

  double read(const char* element, int channel) const;
  double read_at(const long* index, int dimensions, int channel) const;
};

double widen_half(unsigned bits) {
  const int exponent = int(bits >> 10 & 31), fraction = int(bits & 1023), sign = bits & 0x8000u ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

double Texture::read(const char* element, int channel) const {
  const int bits[] = {format.x, format.y, format.z, format.w};
  if (channel > 3 || !bits[channel]) return 0;
  for (int i = 0; i < channel; ++i) element += bits[i] / 8;
  uint64_t raw = 0;
  memcpy(&raw, element, size_t(bits[channel]) / 8);
  if (format.f == cudaChannelFormatKindFloat) {
    float value;
    memcpy(&value, element, 4);
    return bits[channel] == 16 ? widen_half(unsigned(raw)) : value;
  }
  const int unused = 64 - bits[channel];
  const bool is_signed = format.f == cudaChannelFormatKindSigned;
  const double value = is_signed ? double(int64_t(raw << unused) >> unused) : double(raw);
  if (how.readMode == cudaReadModeElementType) return value;
  return std::max(-1.0, value / (ldexp(1, bits[channel] - is_signed) - 1));
}

// The index that is read for one beyond the edge, or -1 if the border's colour is read.
inline long move_inside(long index, long size, cudaTextureAddressMode mode, bool normalized) {
  if (index >= 0 && index < size) return index;
  if (mode == cudaAddressModeBorder) return -1;
  if (mode == cudaAddressModeClamp || !normalized) return index < 0 ? 0 : size - 1;
  const long turn = mode == cudaAddressModeMirror ? 2 * size : size, inside = (index % turn + turn) % turn;
  return inside < size ? inside : turn - 1 - inside;
}

double Texture::read_at(const long* index, int dimensions, int channel) const {
  size_t inside[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    if (i >= dimensions && !(is_layered && i == 2)) continue;
    const auto mode = i < dimensions ? how.addressMode[i] : cudaAddressModeClamp;
    const long moved = move_inside(index[i], long(size[i]), mode, how.normalizedCoords);
    if (moved < 0) return how.borderColor[channel & 3];
    inside[i] = size_t(moved);
  }
  return read(begin + (inside[2] * size[1] + inside[1]) * pitch + inside[0] * bytes_of(format), channel);
}

// As the Guide says in "Texture Fetching": a filter's fractions have 8 bits.
double sample(cudaTextureObject_t object, int dimensions, const float* place, int channel) {
  const auto* texture = reinterpret_cast<const Texture*>(object);
  if (!texture) return 0;
  const bool is_linear = texture->how.filterMode == cudaFilterModeLinear;
  long first[3] = {0, 0, texture->is_layered ? long(place[dimensions]) : 0};
  double fraction[3] = {0, 0, 0};
  for (int i = 0; i < dimensions; ++i) {
    double x = place[i];
    if (texture->how.normalizedCoords) x *= double(texture->size[i]);
    x = std::min(std::max(x, -1e9), 1e9) - (is_linear ? 0.5 : 0.0);
    first[i] = long(floor(x));
    if (is_linear) fraction[i] = nearbyint((x - floor(x)) * 256) / 256;
  }
  double sum = 0;
  for (int corner = 0; corner < (is_linear ? 1 << dimensions : 1); ++corner) {
    long index[3] = {first[0], first[1], first[2]};
    double weight = 1;
    for (int i = 0; i < dimensions; ++i) {
      index[i] += corner >> i & 1;
      weight *= corner >> i & 1 ? fraction[i] : 1 - fraction[i];
    }
    if (weight != 0) sum += weight * texture->read_at(index, dimensions, channel);
  }
  return sum;
}

double fetch(cudaTextureObject_t object, long index, int channel) {
  const auto* texture = reinterpret_cast<const Texture*>(object);
  if (!texture || index < 0 || size_t(index) >= texture->size[0]) return 0;
  return texture->read(texture->begin + size_t(index) * bytes_of(texture->format), channel);
}

void* find_in_surface(cudaSurfaceObject_t surface, long x, long y, long z, unsigned bytes, cudaSurfaceBoundaryMode mode,
                      void* caller) {
  const auto* array = reinterpret_cast<const cudaArray*>(surface);
  const long ends[] = {long(pitch_of(*array)), long(at_least_one(array->size.height)), long(at_least_one(array->size.depth))};
  long place[] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    const long last = ends[i] - (i == 0 ? long(bytes) : 1);
    if (place[i] >= 0 && place[i] <= last) continue;
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) {
      note(now.report->out_of_bounds, "surface", here(caller, WRITE), {}, place[i], bytes, ends[i]);
      abandon_kernel(cudaErrorIllegalAddress);
    }
    place[i] = place[i] < 0 ? 0 : last;
  }
  return find_in_array(*array, size_t(place[0]), size_t(place[1]), size_t(place[2]));
}

inline cudaError_t describe_texture(Texture& texture, const cudaResourceDesc& resource, const cudaTextureDesc& how) {
  const auto& [array, linear, pitched] = std::tie(resource.res.array.array, resource.res.linear, resource.res.pitch2D);
  switch (resource.resType) {
    case cudaResourceTypeArray:
      if (!array) return keep(cudaErrorInvalidValue);
      texture = {array->begin,
                 array->format,
                 {array->size.width, at_least_one(array->size.height), at_least_one(array->size.depth)},
                 pitch_of(*array),
                 bool(array->flags & (cudaArrayLayered | cudaArrayCubemap)),
                 how};
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      const Allocation* owner = arena.find(Place(linear.devPtr));
      const size_t element = bytes_of(linear.desc);
      if (!owner || !element) return keep(cudaErrorInvalidValue);
      const size_t bytes = std::min(linear.sizeInBytes, owner->begin + owner->bytes - Place(linear.devPtr));
      texture = {static_cast<char*>(linear.devPtr), linear.desc, {bytes / element, 1, 1}, bytes, false, how};
      return cudaSuccess;
    }
    case cudaResourceTypePitch2D: {
      const size_t rows_before = at_least_one(pitched.height) - 1, row = pitched.width * bytes_of(pitched.desc);
      if (!arena.owns(Place(pitched.devPtr), rows_before * pitched.pitchInBytes + row)) return keep(cudaErrorInvalidValue);
      const char* begin = static_cast<char*>(pitched.devPtr);
      texture = {begin, pitched.desc, {pitched.width, pitched.height, 1}, pitched.pitchInBytes, false, how};
      return cudaSuccess;
    }
    default: return keep(cudaErrorNotSupported);
  }
}

cudaError_t bind(textureReference& reference, const cudaResourceDesc& resource) {
  cudaTextureDesc how{};
  memcpy(how.addressMode, reference.addressMode, sizeof how.addressMode);
  how.filterMode = reference.filterMode, how.readMode = reference.readMode, how.normalizedCoords = reference.normalized;
  cudaUnbindTexture(reference);
  return cudaCreateTextureObject(&reference.bound, &resource, &how, nullptr);
}
}  // namespace emulator

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent size, unsigned flags) {
  using emulator::at_least_one;
  const size_t count = size.width * at_least_one(size.height) * at_least_one(size.depth);
  if (!array || !format || !count) return emulator::keep(cudaErrorInvalidValue);
  void* begin = nullptr;
  if (const cudaError_t error = emulator::allocate(&begin, count * emulator::bytes_of(*format))) return error;
  *array = new cudaArray{static_cast<char*>(begin), *format, size, flags};
  return cudaSuccess;
}
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned flags) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return cudaSuccess;
  const cudaError_t error = cudaFree(array->begin);
  delete array;
  return error;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(array));
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* size, unsigned* flags, cudaArray_t array) {
  if (!array) return emulator::keep(cudaErrorInvalidResourceHandle);
  if (format) *format = array->format;
  if (size) *size = array->size;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpy(emulator::find_in_array(*to, x, y), from, bytes, kind);
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpy(to, emulator::find_in_array(*from, x, y), bytes, kind);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t rows,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  if (x + width > emulator::pitch_of(*to)) return emulator::keep(cudaErrorInvalidValue);
  return emulator::copy_rows(emulator::find_in_array(*to, x, y), emulator::pitch_of(*to), from, pitch, width, rows, kind, stream,
                             !stream);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t rows,
                                cudaMemcpyKind kind) {
  return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, rows, kind, nullptr);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  if (x + width > emulator::pitch_of(*from)) return emulator::keep(cudaErrorInvalidValue);
  return emulator::copy_rows(to, pitch, emulator::find_in_array(*from, x, y), emulator::pitch_of(*from), width, rows, kind, stream,
                             !stream);
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t rows,
                                  cudaMemcpyKind kind) {
  return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, rows, kind, nullptr);
}

// Widths and places are in elements for an array, and in bytes for memory.
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  const cudaArray* array = copy->srcArray ? copy->srcArray : copy->dstArray;
  const size_t element = array ? emulator::bytes_of(array->format) : 1, width = copy->extent.width * element;
  auto find_row = [&](cudaArray_t of, cudaPitchedPtr memory, cudaPos place, size_t row, size_t slice) {
    if (of) return emulator::find_in_array(*of, place.x * element, place.y + row, place.z + slice);
    return static_cast<char*>(memory.ptr) + ((place.z + slice) * memory.ysize + place.y + row) * memory.pitch + place.x;
  };
  for (cudaArray_t of : {copy->srcArray, copy->dstArray}) {
    const size_t x = (of == copy->srcArray ? copy->srcPos : copy->dstPos).x;
    if (of && (x + copy->extent.width) * element > emulator::pitch_of(*of)) return emulator::keep(cudaErrorInvalidValue);
  }
  for (size_t slice = 0; slice < copy->extent.depth; ++slice)
    for (size_t row = 0; row < copy->extent.height; ++row) {
      char* to = find_row(copy->dstArray, copy->dstPtr, copy->dstPos, row, slice);
      const char* from = find_row(copy->srcArray, copy->srcPtr, copy->srcPos, row, slice);
      if (const cudaError_t error = emulator::copy(to, from, width, copy->kind, stream, !stream)) return error;
    }
  return cudaSuccess;
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) { return cudaMemcpy3DAsync(copy, nullptr); }

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource, const cudaTextureDesc* how,
                                    const cudaResourceViewDesc*) {
  emulator::Texture texture{};
  if (const cudaError_t error = emulator::describe_texture(texture, *resource, how ? *how : cudaTextureDesc{})) return error;
  texture.resource = *resource;
  *object = cudaTextureObject_t(new emulator::Texture(texture));
  emulator::has_handles = true;
  return cudaSuccess;
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture) {
  if (!texture) return emulator::keep(cudaErrorInvalidValue);
  return *resource = reinterpret_cast<emulator::Texture*>(texture)->resource, cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* how, cudaTextureObject_t texture) {
  if (!texture) return emulator::keep(cudaErrorInvalidValue);
  return *how = reinterpret_cast<emulator::Texture*>(texture)->how, cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  delete reinterpret_cast<emulator::Texture*>(texture);
  return cudaSuccess;
}
cudaError_t cudaUnbindTexture(textureReference& reference) {
  const cudaTextureObject_t bound = reference.bound;
  reference.bound = 0;
  return cudaDestroyTextureObject(bound);
}
cudaError_t cudaUnbindTexture(const textureReference* reference) {
  return cudaUnbindTexture(const_cast<textureReference&>(*reference));
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource) {
  if (resource->resType != cudaResourceTypeArray || !resource->res.array.array) return emulator::keep(cudaErrorInvalidValue);
  *surface = cudaSurfaceObject_t(resource->res.array.array);
  emulator::has_handles = true;
  return cudaSuccess;
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface) {
  *resource = {};
  resource->res.array.array = reinterpret_cast<cudaArray_t>(surface);
  return surface ? cudaSuccess : emulator::keep(cudaErrorInvalidValue);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) { return cudaSuccess; }
