// What programs need of helper_functions.h and helper_image.h of NVIDIA's samples: timers, options, comparisons and images.
#pragma once
#include "helper_string.h"
#include "helper_timer.h"

#include <cmath>
#include <fstream>
#include <type_traits>

// Whether the values differ by at most `epsilon` of the reference, as lengths of vectors.
inline bool sdkCompareL2fe(const float* reference, const float* values, unsigned count, float epsilon) {
  double error = 0, size = 0;
  for (unsigned i = 0; i < count; ++i) {
    error += double(reference[i] - values[i]) * (reference[i] - values[i]);
    size += double(reference[i]) * reference[i];
  }
  return size > 0 && std::sqrt(error / size) < epsilon;
}
// Whether at most a share `threshold` of the values differs by more than `epsilon`.
template <class T, class E>
bool compareData(const T* reference, const T* values, unsigned count, E epsilon, float threshold) {
  unsigned different = 0;
  for (unsigned i = 0; i < count; ++i) different += !(std::fabs(double(reference[i]) - double(values[i])) <= double(epsilon));
  return different <= threshold * float(count);
}
template <class T>
bool compareArrays(const T* reference, const T* values, unsigned count) {
  return compareData(reference, values, count, 0, 0.0f);
}

namespace emulator {
// The pixels of a binary PGM (P5) or PPM (P6) file, as new memory; null if the file is not one.
inline unsigned char* read_image(const char* path, unsigned* width, unsigned* height, unsigned* channels) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  unsigned numbers[3] = {};
  file >> magic;
  for (unsigned& number : numbers) {
    while ((file >> std::ws) && file.peek() == '#') file.ignore(1 << 20, '\n');
    file >> number;
  }
  file.get();
  if (!file || (magic != "P5" && magic != "P6") || numbers[2] > 255) return nullptr;
  *width = numbers[0], *height = numbers[1], *channels = magic == "P5" ? 1 : 3;
  const size_t bytes = size_t(*width) * *height * *channels;
  auto* pixels = static_cast<unsigned char*>(malloc(bytes));
  if (pixels && file.read(reinterpret_cast<char*>(pixels), std::streamsize(bytes))) return pixels;
  free(pixels);
  return nullptr;
}
inline bool write_image(const char* path, const unsigned char* pixels, unsigned width, unsigned height, unsigned channels) {
  std::ofstream file(path, std::ios::binary);
  file << (channels == 1 ? "P5\n" : "P6\n") << width << "\n" << height << "\n255\n";
  return bool(file.write(reinterpret_cast<const char*>(pixels), std::streamsize(size_t(width) * height * channels)));
}
}  // namespace emulator

// Gray values: from 0 to 1 as float, and bytes otherwise.
template <class T>
bool sdkLoadPGM(const char* path, T** values, unsigned* width, unsigned* height) {
  unsigned channels = 0;
  unsigned char* pixels = emulator::read_image(path, width, height, &channels);
  if (!pixels || channels != 1) return false;
  const size_t count = size_t(*width) * *height;
  if (!*values) *values = static_cast<T*>(malloc(count * sizeof(T)));
  for (size_t i = 0; i < count; ++i) (*values)[i] = std::is_floating_point<T>::value ? T(pixels[i] / 255.0f) : T(pixels[i]);
  free(pixels);
  return true;
}
template <class T>
bool sdkSavePGM(const char* path, T* values, unsigned width, unsigned height) {
  std::string pixels;
  for (size_t i = 0; i < size_t(width) * height; ++i)
    pixels += char(std::is_floating_point<T>::value ? (unsigned char)(values[i] * 255) : (unsigned char)(values[i]));
  return emulator::write_image(path, reinterpret_cast<const unsigned char*>(pixels.data()), width, height, 1);
}
inline bool sdkLoadPPM4ub(const char* path, unsigned char** values, unsigned* width, unsigned* height) {
  unsigned channels = 0;
  unsigned char* pixels = emulator::read_image(path, width, height, &channels);
  if (!pixels || channels != 3) return false;
  const size_t count = size_t(*width) * *height;
  *values = static_cast<unsigned char*>(calloc(count, 4));
  for (size_t i = 0; i < count; ++i) memcpy(*values + 4 * i, pixels + 3 * i, 3);
  free(pixels);
  return true;
}
inline bool sdkSavePPM4ub(const char* path, unsigned char* values, unsigned width, unsigned height) {
  std::string pixels;
  for (size_t i = 0; i < size_t(width) * height; ++i) pixels.append(reinterpret_cast<const char*>(values + 4 * i), 3);
  return emulator::write_image(path, reinterpret_cast<const unsigned char*>(pixels.data()), width, height, 3);
}
