// cuFFT on the CPU: transforms of any length in one to three dimensions, in batches, complex or real, in float or double.
//
// Callbacks that load and store the elements are called on the CPU as well.
// A length is split by its smallest prime factor (Cooley and Tukey); a prime is summed directly. No transform is scaled.
#pragma once
#include <host_access.h>
#include <complex>
#include <cuComplex.h>
#include <cuda_runtime.h>
#include <library_types.h>
#include <map>
#include <vector>

#define _CUFFT_H_  // NVIDIA's helper_cuda.h looks at it
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
#define CUFFT_VERSION 12000
enum cufftResult {
  CUFFT_SUCCESS,
  CUFFT_INVALID_PLAN,
  CUFFT_ALLOC_FAILED,
  CUFFT_INVALID_TYPE,
  CUFFT_INVALID_VALUE,
  CUFFT_INTERNAL_ERROR,
  CUFFT_EXEC_FAILED,
  CUFFT_SETUP_FAILED,
  CUFFT_INVALID_SIZE,
  CUFFT_UNALIGNED_DATA,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_LICENSE_ERROR,
  CUFFT_NOT_SUPPORTED = 16,
  CUFFT_MISSING_DEPENDENCY = 17,
  CUFFT_NVRTC_FAILURE = 18,
  CUFFT_NVJITLINK_FAILURE = 19,
  CUFFT_NVSHMEM_FAILURE = 20,
};
typedef cufftResult cufftResult_t;
enum cufftType { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29, CUFFT_D2Z = 0x6a, CUFFT_Z2D = 0x6c, CUFFT_Z2Z = 0x69 };
typedef cufftType cufftType_t;
typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

namespace emulator::fourier {
// Where the elements of a batch are: the `sizes` of their array, a step between elements and one between transforms.
struct Layout {
  std::vector<int> sizes;
  int step;
  size_t distance;
};
struct Callback {
  void *function = nullptr, *info = nullptr;
};
struct Plan {
  cufftType type;
  std::vector<int> sizes;  // the slowest dimension first
  Layout in, out;
  int count;
  Callback load = {}, store = {};
};
inline std::map<cufftHandle, Plan> plans;
inline cufftHandle next_handle = 1;

inline size_t multiply(const std::vector<int>& sizes) {
  size_t product = 1;
  for (const int size : sizes) product *= size_t(size);
  return product;
}

// Transforms `count` values that are `step` apart into `out`.
template <class T>
EMULATOR_FAST void transform(const std::complex<T>* in, size_t step, std::complex<T>* out, int count,
                             const std::complex<T>* roots, int root_step) {
  if (count == 1) return void(*out = *in);
  int factor = 2;
  while (factor * factor <= count && count % factor) ++factor;
  if (count % factor) factor = count;
  const int rest = count / factor;
  for (int part = 0; part < factor; ++part)
    transform(in + size_t(part) * step, step * size_t(factor), out + part * rest, rest, roots, root_step * factor);
  std::vector<std::complex<T>> parts(factor), sums(factor);
  for (int i = 0; i < rest; ++i) {
    for (int part = 0; part < factor; ++part)
      parts[part] = out[i + part * rest] * roots[size_t(root_step) * (size_t(i) * part % count)];
    for (int k = 0; k < factor; ++k) {
      std::complex<T> sum = parts[0];
      for (int part = 1; part < factor; ++part)
        sum += parts[part] * roots[size_t(root_step) * (size_t(k) * part * rest % count)];
      sums[k] = sum;
    }
    for (int k = 0; k < factor; ++k) out[i + k * rest] = sums[k];
  }
}

// Transforms a dense array along all its dimensions.
template <class T>
EMULATOR_FAST void transform_all(std::vector<std::complex<T>>& values, const std::vector<int>& sizes, int direction) {
  size_t step = values.size();
  for (const int size : sizes) {
    const size_t outer = step;
    step /= size_t(size);
    std::vector<std::complex<T>> roots(size), line(size);
    for (int i = 0; i < size; ++i)
      roots[i] = std::complex<T>(std::polar(1.0, direction * 2 * 3.14159265358979323846 * i / size));
    for (size_t first = 0; first < values.size(); ++first) {
      if (first % outer >= step) continue;
      transform(&values[first], step, line.data(), size, roots.data(), 1);
      for (int i = 0; i < size; ++i) values[first + size_t(i) * step] = line[i];
    }
  }
}

// Where element `index` of a dense array of `sizes` is in a layout.
inline size_t place(size_t index, const std::vector<int>& sizes, const Layout& layout) {
  size_t result = 0, stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    result += index % size_t(sizes[d]) * stride;
    index /= size_t(sizes[d]);
    stride *= size_t(layout.sizes[d]);
  }
  return result * size_t(layout.step);
}
inline std::vector<int> halve(std::vector<int> sizes) {  // a real array has a spectrum of which half is kept
  sizes.back() = sizes.back() / 2 + 1;
  return sizes;
}
inline size_t length(const Plan& plan, const Layout& layout, const std::vector<int>& sizes) {
  return size_t(plan.count - 1) * layout.distance + place(multiply(sizes) - 1, sizes, layout) + 1;
}

template <class I>
I load(const Callback& callback, const I* in, size_t at) {
  if (!callback.function) return in[at];
  return reinterpret_cast<I (*)(void*, size_t, void*, void*)>(callback.function)(const_cast<I*>(in), at, callback.info, nullptr);
}
template <class O>
void store(const Callback& callback, O* out, size_t at, O value) {
  if (!callback.function) return void(out[at] = value);
  reinterpret_cast<void (*)(void*, size_t, O, void*, void*)>(callback.function)(out, at, value, callback.info, nullptr);
}

template <class T, class I, class O>
EMULATOR_FAST cufftResult run(cufftHandle handle, cufftType type, const I* in, O* out, int direction) {
  const auto entry = plans.find(handle);
  if (entry == plans.end()) return CUFFT_INVALID_PLAN;
  const Plan& plan = entry->second;
  if (plan.type != type) return CUFFT_INVALID_TYPE;
  constexpr bool from_real = sizeof(I) == sizeof(T), to_real = sizeof(O) == sizeof(T);
  const std::vector<int> half = halve(plan.sizes), &in_sizes = to_real ? half : plan.sizes,
                         &out_sizes = from_real ? half : plan.sizes;
  if (!reach_from_library(in, length(plan, plan.in, in_sizes) * sizeof(I), false) ||
      !reach_from_library(out, length(plan, plan.out, out_sizes) * sizeof(O), true))
    return CUFFT_EXEC_FAILED;
  const size_t count = multiply(plan.sizes), row = size_t(plan.sizes.back()), half_row = size_t(half.back());
  std::vector<std::complex<T>> values(count);
  for (int batch = 0; batch < plan.count; ++batch) {
    const size_t from = size_t(batch) * plan.in.distance, to = size_t(batch) * plan.out.distance;
    for (size_t i = 0; i < multiply(in_sizes); ++i) {
      const I value = load(plan.load, in, from + place(i, in_sizes, plan.in));
      if constexpr (from_real)
        values[i] = value;
      else
        values[to_real ? i / half_row * row + i % half_row : i] = {value.x, value.y};
    }
    if constexpr (to_real)  // the other half is the conjugate at the opposite place in every dimension
      for (size_t i = 0; i < count; ++i) {
        if (i % row < half_row) continue;
        size_t opposite = 0, rest = i, stride = 1;
        for (size_t d = plan.sizes.size(); d-- > 0; stride *= size_t(plan.sizes[d]), rest /= size_t(plan.sizes[d]))
          opposite += (size_t(plan.sizes[d]) - rest % size_t(plan.sizes[d])) % size_t(plan.sizes[d]) * stride;
        values[i] = std::conj(values[opposite]);
      }
    transform_all(values, plan.sizes, direction);
    for (size_t i = 0; i < multiply(out_sizes); ++i) {
      const std::complex<T> value = values[from_real ? i / half_row * row + i % half_row : i];
      const size_t at = to + place(i, out_sizes, plan.out);
      if constexpr (to_real)
        store(plan.store, out, at, O(value.real()));
      else
        store(plan.store, out, at, O{value.real(), value.imag()});
    }
  }
  return CUFFT_SUCCESS;
}
}  // namespace emulator::fourier

inline cufftResult cufftCreate(cufftHandle* handle) { return *handle = emulator::fourier::next_handle++, CUFFT_SUCCESS; }
inline cufftResult cufftDestroy(cufftHandle handle) {
  return emulator::fourier::plans.erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
inline cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* sizes, int* in_sizes, int in_step, int in_distance,
                                     int* out_sizes, int out_step, int out_distance, cufftType type, int count, size_t* bytes) {
  using namespace emulator::fourier;
  if (rank < 1 || rank > 3 || count < 1) return CUFFT_INVALID_VALUE;
  const std::vector<int> all(sizes, sizes + rank), half = halve(all);
  for (const int size : all)
    if (size < 1) return CUFFT_INVALID_SIZE;
  const bool from_real = type == CUFFT_R2C || type == CUFFT_D2Z, to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
  const std::vector<int>&in = to_real ? half : all, &out = from_real ? half : all;
  const auto lay_out = [=](const std::vector<int>& dense, const int* embedded, int step, int distance) -> Layout {
    if (!embedded) return {dense, 1, multiply(dense)};
    return {std::vector<int>(embedded, embedded + rank), step, size_t(distance)};
  };
  *bytes = 0;  // of work space
  plans[handle] = {type, all, lay_out(in, in_sizes, in_step, in_distance), lay_out(out, out_sizes, out_step, out_distance),
                   count};
  return CUFFT_SUCCESS;
}
inline cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* sizes, long long* in_sizes, long long in_step,
                                       long long in_distance, long long* out_sizes, long long out_step, long long out_distance,
                                       cufftType type, long long count, size_t* bytes) {
  std::vector<int> ints[3];
  const long long* const all[] = {sizes, in_sizes, out_sizes};
  for (int i = 0; i < 3; ++i)
    if (all[i]) ints[i].assign(all[i], all[i] + rank);
  return cufftMakePlanMany(handle, rank, ints[0].data(), in_sizes ? ints[1].data() : nullptr, int(in_step), int(in_distance),
                           out_sizes ? ints[2].data() : nullptr, int(out_step), int(out_distance), type, int(count), bytes);
}
// The type follows from those of the input and the output; half precision is refused.
inline cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* sizes, long long* in_sizes, long long in_step,
                                       long long in_distance, cudaDataType in_type, long long* out_sizes, long long out_step,
                                       long long out_distance, cudaDataType out_type, long long count, size_t* bytes,
                                       cudaDataType) {
  const std::map<std::pair<cudaDataType, cudaDataType>, cufftType> types = {
      {{CUDA_C_32F, CUDA_C_32F}, CUFFT_C2C}, {{CUDA_R_32F, CUDA_C_32F}, CUFFT_R2C}, {{CUDA_C_32F, CUDA_R_32F}, CUFFT_C2R},
      {{CUDA_C_64F, CUDA_C_64F}, CUFFT_Z2Z}, {{CUDA_R_64F, CUDA_C_64F}, CUFFT_D2Z}, {{CUDA_C_64F, CUDA_R_64F}, CUFFT_Z2D}};
  const auto type = types.find({in_type, out_type});
  if (type == types.end()) return CUFFT_NOT_SUPPORTED;
  return cufftMakePlanMany64(handle, rank, sizes, in_sizes, in_step, in_distance, out_sizes, out_step, out_distance, type->second,
                             count, bytes);
}
inline cufftResult cufftPlanMany(cufftHandle* handle, int rank, int* sizes, int* in_sizes, int in_step, int in_distance,
                                 int* out_sizes, int out_step, int out_distance, cufftType type, int count) {
  size_t bytes;
  cufftCreate(handle);
  return cufftMakePlanMany(*handle, rank, sizes, in_sizes, in_step, in_distance, out_sizes, out_step, out_distance, type, count,
                           &bytes);
}
inline cufftResult cufftMakePlan1d(cufftHandle handle, int x, cufftType type, int count, size_t* bytes) {
  return cufftMakePlanMany(handle, 1, &x, nullptr, 1, 0, nullptr, 1, 0, type, count, bytes);
}
inline cufftResult cufftMakePlan2d(cufftHandle handle, int x, int y, cufftType type, size_t* bytes) {
  int sizes[] = {x, y};
  return cufftMakePlanMany(handle, 2, sizes, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}
inline cufftResult cufftMakePlan3d(cufftHandle handle, int x, int y, int z, cufftType type, size_t* bytes) {
  int sizes[] = {x, y, z};
  return cufftMakePlanMany(handle, 3, sizes, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}
inline cufftResult cufftPlan1d(cufftHandle* handle, int x, cufftType type, int count) {
  size_t bytes;
  cufftCreate(handle);
  return cufftMakePlan1d(*handle, x, type, count, &bytes);
}
inline cufftResult cufftPlan2d(cufftHandle* handle, int x, int y, cufftType type) {
  size_t bytes;
  cufftCreate(handle);
  return cufftMakePlan2d(*handle, x, y, type, &bytes);
}
inline cufftResult cufftPlan3d(cufftHandle* handle, int x, int y, int z, cufftType type) {
  size_t bytes;
  cufftCreate(handle);
  return cufftMakePlan3d(*handle, x, y, z, type, &bytes);
}
// --- callbacks: a function of the device for each element, which gets its offset and the program's own pointer ------------------
enum cufftXtCallbackType {
  CUFFT_CB_LD_COMPLEX,
  CUFFT_CB_LD_COMPLEX_DOUBLE,
  CUFFT_CB_LD_REAL,
  CUFFT_CB_LD_REAL_DOUBLE,
  CUFFT_CB_ST_COMPLEX,
  CUFFT_CB_ST_COMPLEX_DOUBLE,
  CUFFT_CB_ST_REAL,
  CUFFT_CB_ST_REAL_DOUBLE,
  CUFFT_CB_UNDEFINED,
};
typedef cufftComplex (*cufftCallbackLoadC)(void* in, size_t offset, void* info, void* shared);
typedef cufftDoubleComplex (*cufftCallbackLoadZ)(void* in, size_t offset, void* info, void* shared);
typedef cufftReal (*cufftCallbackLoadR)(void* in, size_t offset, void* info, void* shared);
typedef cufftDoubleReal (*cufftCallbackLoadD)(void* in, size_t offset, void* info, void* shared);
typedef void (*cufftCallbackStoreC)(void* out, size_t offset, cufftComplex element, void* info, void* shared);
typedef void (*cufftCallbackStoreZ)(void* out, size_t offset, cufftDoubleComplex element, void* info, void* shared);
typedef void (*cufftCallbackStoreR)(void* out, size_t offset, cufftReal element, void* info, void* shared);
typedef void (*cufftCallbackStoreD)(void* out, size_t offset, cufftDoubleReal element, void* info, void* shared);
inline cufftResult cufftXtSetCallback(cufftHandle handle, void** functions, cufftXtCallbackType type, void** infos) {
  const auto plan = emulator::fourier::plans.find(handle);
  if (plan == emulator::fourier::plans.end()) return CUFFT_INVALID_PLAN;
  (type < CUFFT_CB_ST_COMPLEX ? plan->second.load : plan->second.store) = {functions[0], infos ? infos[0] : nullptr};
  return CUFFT_SUCCESS;
}
inline cufftResult cufftXtClearCallback(cufftHandle handle, cufftXtCallbackType type) {
  void* nothing = nullptr;
  return cufftXtSetCallback(handle, &nothing, type, nullptr);
}

inline cufftResult cufftSetStream(cufftHandle, cudaStream_t) { return CUFFT_SUCCESS; }
inline cufftResult cufftGetVersion(int* version) { return *version = CUFFT_VERSION, CUFFT_SUCCESS; }
inline cufftResult cufftGetSize(cufftHandle, size_t* bytes) { return *bytes = 0, CUFFT_SUCCESS; }

template <class = void>
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction) {
  return emulator::fourier::run<float>(plan, CUFFT_C2C, in, out, direction);
}
template <class = void>
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  return emulator::fourier::run<double>(plan, CUFFT_Z2Z, in, out, direction);
}
template <class = void>
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out) {
  return emulator::fourier::run<float>(plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
template <class = void>
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out) {
  return emulator::fourier::run<float>(plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
template <class = void>
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return emulator::fourier::run<double>(plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
template <class = void>
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return emulator::fourier::run<double>(plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
template <class = void>
cufftResult cufftXtExec(cufftHandle plan, void* in, void* out, int direction) {
  const auto entry = emulator::fourier::plans.find(plan);
  if (entry == emulator::fourier::plans.end()) return CUFFT_INVALID_PLAN;
  const auto complex = [](void* values) { return static_cast<cufftComplex*>(values); };
  const auto complex_double = [](void* values) { return static_cast<cufftDoubleComplex*>(values); };
  switch (entry->second.type) {
    case CUFFT_C2C: return cufftExecC2C(plan, complex(in), complex(out), direction);
    case CUFFT_Z2Z: return cufftExecZ2Z(plan, complex_double(in), complex_double(out), direction);
    case CUFFT_R2C: return cufftExecR2C(plan, static_cast<cufftReal*>(in), complex(out));
    case CUFFT_C2R: return cufftExecC2R(plan, complex(in), static_cast<cufftReal*>(out));
    case CUFFT_D2Z: return cufftExecD2Z(plan, static_cast<cufftDoubleReal*>(in), complex_double(out));
    default: return cufftExecZ2D(plan, complex_double(in), static_cast<cufftDoubleReal*>(out));
  }
}
