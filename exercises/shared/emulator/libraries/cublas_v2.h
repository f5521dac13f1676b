// cuBLAS on the CPU: levels 1 and 2, products of matrices, and triangular systems. Matrices are stored by columns.
//
// Sums are in another order than on a GPU, so results differ in the last digits. TF32 is computed as float. A call checks that
// the memory of the device is large enough, and otherwise fails as on a device, with CUBLAS_STATUS_EXECUTION_FAILED.
#pragma once
#include <host_access.h>
#include <complex>
#include <vector>

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <library_types.h>

#define CUBLAS_API_H_  // NVIDIA's helper_cuda.h looks at it
#define CUBLASAPI
#define CUBLASWINAPI
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VERSION 130000
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
typedef cublasStatus_t cublasStatus;
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C, CUBLAS_OP_HERMITAN = 2, CUBLAS_OP_CONJG };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t : int {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1,
  CUBLAS_GEMM_ALGO2,
  CUBLAS_GEMM_ALGO3,
  CUBLAS_GEMM_ALGO4,
  CUBLAS_GEMM_ALGO5,
  CUBLAS_GEMM_ALGO6,
  CUBLAS_GEMM_ALGO7,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
};
struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};
typedef cublasContext* cublasHandle_t;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return *stream = handle->stream, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return handle->pointer_mode = mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return *mode = handle->pointer_mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return handle->math_mode = mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return *mode = handle->math_mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  return *version = CUBLAS_VERSION, CUBLAS_STATUS_SUCCESS;
}
inline const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
inline const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

namespace emulator::blas {
// The number that stands for T in a sum.
template <class T>
struct Number {
  using type = T;
};
template <>
struct Number<float2> {
  using type = std::complex<float>;
};
template <>
struct Number<double2> {
  using type = std::complex<double>;
};
template <class T>
using NumberOf = typename Number<T>::type;
template <class T>
auto numbers(T* values) {
  if constexpr (std::is_const_v<T>)
    return reinterpret_cast<const NumberOf<std::remove_const_t<T>>*>(values);
  else
    return reinterpret_cast<NumberOf<T>*>(values);
}

inline size_t vector_length(int count, int step) { return count > 0 ? size_t(count - 1) * size_t(abs(step)) + 1 : 0; }
inline size_t matrix_length(int rows, int columns, size_t lead) {
  return rows > 0 && columns > 0 ? size_t(columns - 1) * lead + size_t(rows) : 0;
}
// Where element i of a vector is. With a negative step, the first element is the last in memory.
inline size_t place(int i, int count, int step) { return size_t(step >= 0 ? i : i - count + 1) * size_t(step); }

inline cublasStatus_t check(bool is_right) { return is_right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED; }
template <class T>
bool reads(const T* values, size_t count) {
  return reach_from_library(values, count * sizeof(T), false);
}
template <class T>
bool writes(T* values, size_t count) {
  return reach_from_library(values, count * sizeof(T), true);
}

template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

// A value of bfloat16: the upper half of a float.
struct Bfloat16 {
  uint16_t bits;
  Bfloat16(float value) {
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    bits = uint16_t(value != value ? 0x7fff : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
};

struct Matrix {
  const void* values;
  cudaDataType type;
  int lead;
};
inline size_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8U: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 4;
  }
}

// A copy of op(matrix), `rows` x `columns` by columns, in the type of the sums.
template <class Sum, class T>
EMULATOR_FAST void unpack_as(Sum* packed, const T* values, int lead, cublasOperation_t operation, int rows, int columns) {
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < rows; ++row) {
      const T value = operation == CUBLAS_OP_N ? values[row + size_t(column) * lead] : values[column + size_t(row) * lead];
      packed[row + size_t(column) * rows] = operation == CUBLAS_OP_C ? conjugate(Sum(value)) : Sum(value);
    }
}
template <class Sum>
std::vector<Sum> unpack(Matrix matrix, cublasOperation_t operation, int rows, int columns) {
  std::vector<Sum> packed(size_t(rows) * columns);
  const auto unpack_from = [&](auto* values) { unpack_as(packed.data(), values, matrix.lead, operation, rows, columns); };
  if constexpr (std::is_arithmetic_v<Sum>) {
    switch (matrix.type) {
      case CUDA_R_64F: unpack_from(static_cast<const double*>(matrix.values)); break;
      case CUDA_R_16F: unpack_from(static_cast<const __half*>(matrix.values)); break;
      case CUDA_R_16BF: unpack_from(static_cast<const Bfloat16*>(matrix.values)); break;
      case CUDA_R_8I: unpack_from(static_cast<const int8_t*>(matrix.values)); break;
      case CUDA_R_8U: unpack_from(static_cast<const uint8_t*>(matrix.values)); break;
      case CUDA_R_32I: unpack_from(static_cast<const int*>(matrix.values)); break;
      default: unpack_from(static_cast<const float*>(matrix.values)); break;
    }
  } else {
    unpack_from(static_cast<const Sum*>(matrix.values));
  }
  return packed;
}

// sums += a b, in pieces that fit into a cache.
template <class Sum>
EMULATOR_FAST void multiply(Sum* __restrict sums, const Sum* __restrict a, const Sum* __restrict b, int m, int n, int k) {
  constexpr int ROWS = 256, DEPTH = 64;
  for (int first = 0; first < k; first += DEPTH)
    for (int top = 0; top < m; top += ROWS)
      for (int column = 0; column < n; ++column)
        for (int inner = first; inner < k && inner < first + DEPTH; inner += 4) {
          const int rest = k - inner - 1;  // of four columns of A, the last one again with a factor of 0 if there are fewer
          const Sum* __restrict factors = b + inner + size_t(column) * k;
          const Sum* __restrict from = a + size_t(inner) * m;
          const Sum *second = from + (rest > 0 ? m : 0), *third = from + (rest > 1 ? 2 * size_t(m) : 0);
          const Sum *fourth = from + (rest > 2 ? 3 * size_t(m) : 0), zero{};
          const Sum f0 = factors[0], f1 = rest > 0 ? factors[1] : zero, f2 = rest > 1 ? factors[2] : zero;
          const Sum f3 = rest > 2 ? factors[3] : zero;
          Sum* __restrict to = sums + size_t(column) * m;
          for (int row = top; row < (top + ROWS < m ? top + ROWS : m); ++row)
            to[row] += f0 * from[row] + f1 * second[row] + f2 * third[row] + f3 * fourth[row];
        }
}

template <class Sum, class T>
EMULATOR_FAST void store_as(T* values, int lead, const Sum* sums, Sum alpha, Sum beta, int m, int n) {
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row) {
      T& value = values[row + size_t(column) * lead];
      const Sum product = alpha * sums[row + size_t(column) * m];
      value = T(beta == Sum(0) ? product : product + beta * Sum(value));  // with beta = 0, C is not read
    }
}

template <class Sum>
cublasStatus_t gemm(cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, Sum alpha, Matrix a, Matrix b,
                    Sum beta, Matrix c) {
  if (m < 0 || n < 0 || k < 0 || a.lead < (of_a == CUBLAS_OP_N ? m : k) || b.lead < (of_b == CUBLAS_OP_N ? k : n) || c.lead < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = [](Matrix matrix, bool as_is, int rows, int columns) {
    return matrix_length(as_is ? rows : columns, as_is ? columns : rows, size_t(matrix.lead)) * size_of(matrix.type);
  };
  if (!reach_from_library(a.values, bytes(a, of_a == CUBLAS_OP_N, m, k), false) ||
      !reach_from_library(b.values, bytes(b, of_b == CUBLAS_OP_N, k, n), false) ||
      !reach_from_library(c.values, bytes(c, true, m, n), true))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  std::vector<Sum> sums(size_t(m) * n);
  multiply(sums.data(), unpack<Sum>(a, of_a, m, k).data(), unpack<Sum>(b, of_b, k, n).data(), m, n, k);
  void* result = const_cast<void*>(c.values);
  const auto store_to = [&](auto* values) { store_as(values, c.lead, sums.data(), alpha, beta, m, n); };
  if constexpr (std::is_arithmetic_v<Sum>) {
    switch (c.type) {
      case CUDA_R_64F: store_to(static_cast<double*>(result)); break;
      case CUDA_R_16F: store_to(static_cast<__half*>(result)); break;
      case CUDA_R_16BF: store_to(static_cast<Bfloat16*>(result)); break;
      case CUDA_R_8I: store_to(static_cast<int8_t*>(result)); break;
      case CUDA_R_32I: store_to(static_cast<int*>(result)); break;
      default: store_to(static_cast<float*>(result)); break;
    }
  } else {
    store_to(static_cast<Sum*>(result));
  }
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
constexpr cudaDataType type_of() {
  if (std::is_same_v<T, double>) return CUDA_R_64F;
  if (std::is_same_v<T, __half>) return CUDA_R_16F;
  if (std::is_same_v<T, float2>) return CUDA_C_32F;
  return std::is_same_v<T, double2> ? CUDA_C_64F : CUDA_R_32F;
}
// Runs a call at once, or at the launch of the graph that the handle's stream records. Scalars of the host are copied for that.
template <class F>
cublasStatus_t do_in_stream(cublasHandle_t handle, F call) {
  if (!handle || !is_capturing(handle->stream)) return call();
  record_closure(handle->stream, [](void* closure, cudaStream_t) { (*static_cast<F*>(closure))(); }, new F(call));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t gemm_of(cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const T* alpha, const T* a,
                       int lead_a, const T* b, int lead_b, const T* beta, T* c, int lead_c) {
  constexpr cudaDataType type = type_of<T>();
  using Sum = std::conditional_t<std::is_same_v<T, __half>, float, NumberOf<T>>;
  const auto scalar = [](const T* value) {
    if constexpr (std::is_same_v<T, __half>)
      return float(*value);
    else
      return *numbers(value);
  };
  return gemm<Sum>(of_a, of_b, m, n, k, scalar(alpha), {a, type, lead_a}, {b, type, lead_b}, scalar(beta), {c, type, lead_c});
}

// alpha and beta are of the type of the computation.
inline cublasStatus_t gemm_ex(cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const void* alpha, Matrix a,
                              Matrix b, const void* beta, Matrix c, cublasComputeType_t type) {
  if (a.type == CUDA_C_32F)
    return gemm(of_a, of_b, m, n, k, *static_cast<const std::complex<float>*>(alpha), a, b,
                *static_cast<const std::complex<float>*>(beta), c);
  if (a.type == CUDA_C_64F || a.type >= CUDA_R_8F_E4M3) return CUBLAS_STATUS_NOT_SUPPORTED;
  switch (type) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return gemm(of_a, of_b, m, n, k, *static_cast<const double*>(alpha), a, b, *static_cast<const double*>(beta), c);
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return gemm(of_a, of_b, m, n, k, *static_cast<const int*>(alpha), a, b, *static_cast<const int*>(beta), c);
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return gemm(of_a, of_b, m, n, k, float(*static_cast<const __half*>(alpha)), a, b,
                  float(*static_cast<const __half*>(beta)), c);
    default: return gemm(of_a, of_b, m, n, k, *static_cast<const float*>(alpha), a, b, *static_cast<const float*>(beta), c);
  }
}
// The type of the computation, from the type of C and of the sums as cuBLAS named it before version 11.
inline cublasComputeType_t to_compute_type(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
    case CUDA_C_64F: return CUBLAS_COMPUTE_64F;
    case CUDA_R_16F: return CUBLAS_COMPUTE_16F;
    case CUDA_R_32I: return CUBLAS_COMPUTE_32I;
    default: return CUBLAS_COMPUTE_32F;
  }
}

// --- level 1 ---------------------------------------------------------------------------------------------------------------
template <class T>
EMULATOR_FAST cublasStatus_t axpy(int count, const T* alpha, const T* x, int step_x, T* y, int step_y) {
  if (!reads(x, vector_length(count, step_x)) || !writes(y, vector_length(count, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const auto from = numbers(x);
  const auto to = numbers(y);
  for (int i = 0; i < count; ++i) to[place(i, count, step_y)] += *numbers(alpha) * from[place(i, count, step_x)];
  return CUBLAS_STATUS_SUCCESS;
}
template <class A, class T>
EMULATOR_FAST cublasStatus_t scale(int count, const A* alpha, T* x, int step) {
  if (!writes(x, vector_length(count, step))) return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < count; ++i) numbers(x)[place(i, count, step)] *= *numbers(alpha);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t dot(int count, const T* x, int step_x, const T* y, int step_y, T* result, bool conjugates) {
  if (!reads(x, vector_length(count, step_x)) || !reads(y, vector_length(count, step_y))) return CUBLAS_STATUS_EXECUTION_FAILED;
  NumberOf<T> sum{};
  for (int i = 0; i < count; ++i) {
    const auto value = numbers(x)[place(i, count, step_x)];
    sum += (conjugates ? conjugate(value) : value) * numbers(y)[place(i, count, step_y)];
  }
  *numbers(result) = sum;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class R>
EMULATOR_FAST cublasStatus_t norm(int count, const T* x, int step, R* result) {
  if (!reads(x, vector_length(count, step))) return CUBLAS_STATUS_EXECUTION_FAILED;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::norm(std::complex<double>(numbers(x)[place(i, count, step)]));
  *result = R(sqrt(sum));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
auto size_of_number(T x) {
  return x < 0 ? -x : x;
}
template <class T>
T size_of_number(std::complex<T> x) {
  return size_of_number(x.real()) + size_of_number(x.imag());
}
template <class T, class R>
EMULATOR_FAST cublasStatus_t sum_sizes(int count, const T* x, int step, R* result) {
  if (!reads(x, vector_length(count, step))) return CUBLAS_STATUS_EXECUTION_FAILED;
  R sum = 0;
  for (int i = 0; i < count; ++i) sum += size_of_number(numbers(x)[place(i, count, step)]);
  *result = sum;
  return CUBLAS_STATUS_SUCCESS;
}
// The number, from 1, of the first element of the largest or of the smallest size.
template <class T>
EMULATOR_FAST cublasStatus_t find_extreme(int count, const T* x, int step, int* result, bool largest) {
  if (!reads(x, vector_length(count, step))) return CUBLAS_STATUS_EXECUTION_FAILED;
  int extreme = 0;
  for (int i = 1; i < count; ++i) {
    const auto size = size_of_number(numbers(x)[place(i, count, step)]),
               best = size_of_number(numbers(x)[place(extreme, count, step)]);
    if (largest ? size > best : size < best) extreme = i;
  }
  *result = count > 0 ? extreme + 1 : 0;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t copy_vector(int count, const T* x, int step_x, T* y, int step_y) {
  if (!reads(x, vector_length(count, step_x)) || !writes(y, vector_length(count, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < count; ++i) y[place(i, count, step_y)] = x[place(i, count, step_x)];
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t swap_vectors(int count, T* x, int step_x, T* y, int step_y) {
  if (!writes(x, vector_length(count, step_x)) || !writes(y, vector_length(count, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < count; ++i) {
    const T value = x[place(i, count, step_x)];
    x[place(i, count, step_x)] = y[place(i, count, step_y)];
    y[place(i, count, step_y)] = value;
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t rotate(int count, T* x, int step_x, T* y, int step_y, const T* cosine, const T* sine) {
  if (!writes(x, vector_length(count, step_x)) || !writes(y, vector_length(count, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < count; ++i) {
    T &a = x[place(i, count, step_x)], &b = y[place(i, count, step_y)];
    const T old = a;
    a = *cosine * old + *sine * b, b = *cosine * b - *sine * old;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// --- level 2 ---------------------------------------------------------------------------------------------------------------
template <class T>
EMULATOR_FAST cublasStatus_t gemv(cublasOperation_t operation, int m, int n, const T* alpha, const T* a, int lead, const T* x,
                                  int step_x, const T* beta, T* y, int step_y) {
  const int rows = operation == CUBLAS_OP_N ? m : n, columns = operation == CUBLAS_OP_N ? n : m;
  if (m < 0 || n < 0 || lead < m || !step_x || !step_y) return CUBLAS_STATUS_INVALID_VALUE;
  if (!reads(a, matrix_length(m, n, size_t(lead))) || !reads(x, vector_length(columns, step_x)) ||
      !writes(y, vector_length(rows, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const auto values = numbers(a);
  for (int row = 0; row < rows; ++row) {
    NumberOf<T> sum{};
    for (int column = 0; column < columns; ++column) {
      auto value = operation == CUBLAS_OP_N ? values[row + size_t(column) * lead] : values[column + size_t(row) * lead];
      if (operation == CUBLAS_OP_C) value = conjugate(value);
      sum += value * numbers(x)[place(column, columns, step_x)];
    }
    auto& result = numbers(y)[place(row, rows, step_y)];
    sum *= *numbers(alpha);
    result = *numbers(beta) == NumberOf<T>(0) ? sum : sum + *numbers(beta) * result;
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t ger(int m, int n, const T* alpha, const T* x, int step_x, const T* y, int step_y, T* a, int lead) {
  if (m < 0 || n < 0 || lead < m) return CUBLAS_STATUS_INVALID_VALUE;
  if (!reads(x, vector_length(m, step_x)) || !reads(y, vector_length(n, step_y)) ||
      !writes(a, matrix_length(m, n, size_t(lead))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row)
      numbers(a)[row + size_t(column) * lead] +=
          *numbers(alpha) * numbers(x)[place(row, m, step_x)] * numbers(y)[place(column, n, step_y)];
  return CUBLAS_STATUS_SUCCESS;
}

// --- symmetric and triangular matrices ---------------------------------------------------------------------------------------
inline bool is_stored(cublasFillMode_t fill, int row, int column) {
  return fill == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
}

// The whole of a symmetric matrix of which one triangle is stored.
template <class T>
EMULATOR_FAST std::vector<T> complete(cublasFillMode_t fill, int n, const T* a, int lead) {
  std::vector<T> whole(size_t(n) * n);
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < n; ++row)
      whole[row + size_t(column) * n] =
          is_stored(fill, row, column) ? a[row + size_t(column) * lead] : a[column + size_t(row) * lead];
  return whole;
}
template <class T>
EMULATOR_FAST cublasStatus_t symv(cublasFillMode_t fill, int n, const T* alpha, const T* a, int lead, const T* x, int step_x,
                                  const T* beta, T* y, int step_y) {
  if (!reads(a, matrix_length(n, n, size_t(lead))) || !reads(x, vector_length(n, step_x)) ||
      !writes(y, vector_length(n, step_y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const std::vector<T> whole = complete(fill, n, a, lead);
  for (int row = 0; row < n; ++row) {
    T sum = 0;
    for (int column = 0; column < n; ++column) sum += whole[row + size_t(column) * n] * x[place(column, n, step_x)];
    T& result = y[place(row, n, step_y)];
    result = *alpha * sum + (*beta == 0 ? 0 : *beta * result);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t symm(cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const T* alpha, const T* a, int lead_a,
                    const T* b, int lead_b, const T* beta, T* c, int lead_c) {
  const int size = side == CUBLAS_SIDE_LEFT ? m : n;
  if (!reads(a, matrix_length(size, size, size_t(lead_a))) || !reads(b, matrix_length(m, n, size_t(lead_b))) ||
      !writes(c, matrix_length(m, n, size_t(lead_c))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const std::vector<T> whole = complete(fill, size, a, lead_a), other = unpack<T>({b, type_of<T>(), lead_b}, CUBLAS_OP_N, m, n);
  std::vector<T> sums(size_t(m) * n);
  if (side == CUBLAS_SIDE_LEFT)
    multiply(sums.data(), whole.data(), other.data(), m, n, m);
  else
    multiply(sums.data(), other.data(), whole.data(), m, n, n);
  store_as(c, lead_c, sums.data(), *alpha, *beta, m, n);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t syrk(cublasFillMode_t fill, cublasOperation_t operation, int n, int k, const T* alpha, const T* a,
                                  int lead_a, const T* beta, T* c, int lead_c) {
  const bool as_is = operation == CUBLAS_OP_N;
  if (!reads(a, matrix_length(as_is ? n : k, as_is ? k : n, size_t(lead_a))) || !writes(c, matrix_length(n, n, size_t(lead_c))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const std::vector<T> left = unpack<T>({a, type_of<T>(), lead_a}, operation, n, k);
  const std::vector<T> right = unpack<T>({a, type_of<T>(), lead_a}, as_is ? CUBLAS_OP_T : CUBLAS_OP_N, k, n);
  std::vector<T> sums(size_t(n) * n);
  multiply(sums.data(), left.data(), right.data(), n, n, k);
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < n; ++row) {
      T& result = c[row + size_t(column) * lead_c];
      if (is_stored(fill, row, column)) result = *alpha * sums[row + size_t(column) * n] + (*beta == 0 ? 0 : *beta * result);
    }
  return CUBLAS_STATUS_SUCCESS;
}
// Solves op(A) X = alpha B, or X op(A) = alpha B, by substitution. X replaces B.
template <class T>
EMULATOR_FAST cublasStatus_t trsm(cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t operation,
                                  cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* a, int lead_a, T* b,
                                  int lead_b) {
  const bool left = side == CUBLAS_SIDE_LEFT;
  const int size = left ? m : n, systems = left ? n : m;
  if (!reads(a, matrix_length(size, size, size_t(lead_a))) || !writes(b, matrix_length(m, n, size_t(lead_b))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool transposed = (operation != CUBLAS_OP_N) == left;  // X A = B is A^T X^T = B^T
  const bool forward = (fill == CUBLAS_FILL_MODE_LOWER) != transposed;
  for (int system = 0; system < systems; ++system)
    for (int step = 0; step < size; ++step) {
      const int row = forward ? step : size - 1 - step;
      const auto unknown = [&](int i) -> T& { return left ? b[i + size_t(system) * lead_b] : b[system + size_t(i) * lead_b]; };
      T sum = *alpha * unknown(row);
      for (int other = forward ? 0 : row + 1; other < (forward ? row : size); ++other)
        sum -= (transposed ? a[other + size_t(row) * lead_a] : a[row + size_t(other) * lead_a]) * unknown(other);
      unknown(row) = diagonal == CUBLAS_DIAG_UNIT ? sum : sum / a[row + size_t(row) * lead_a];
    }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t geam(cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, const T* alpha, const T* a,
                                  int lead_a, const T* beta, const T* b, int lead_b, T* c, int lead_c) {
  const auto length = [&](cublasOperation_t operation, int lead) {
    return operation == CUBLAS_OP_N ? matrix_length(m, n, size_t(lead)) : matrix_length(n, m, size_t(lead));
  };
  if ((*alpha != 0 && !reads(a, length(of_a, lead_a))) || (*beta != 0 && !reads(b, length(of_b, lead_b))) ||
      !writes(c, matrix_length(m, n, size_t(lead_c))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row) {
      T sum = 0;
      if (*alpha != 0)
        sum += *alpha * (of_a == CUBLAS_OP_N ? a[row + size_t(column) * lead_a] : a[column + size_t(row) * lead_a]);
      if (*beta != 0)
        sum += *beta * (of_b == CUBLAS_OP_N ? b[row + size_t(column) * lead_b] : b[column + size_t(row) * lead_b]);
      c[row + size_t(column) * lead_c] = sum;
    }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
EMULATOR_FAST cublasStatus_t dgmm(cublasSideMode_t side, int m, int n, const T* a, int lead_a, const T* x, int step, T* c,
                                  int lead_c) {
  const int count = side == CUBLAS_SIDE_LEFT ? m : n;
  if (!reads(a, matrix_length(m, n, size_t(lead_a))) || !reads(x, vector_length(count, step)) ||
      !writes(c, matrix_length(m, n, size_t(lead_c))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row)
      c[row + size_t(column) * lead_c] =
          a[row + size_t(column) * lead_a] * x[place(side == CUBLAS_SIDE_LEFT ? row : column, count, step)];
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace emulator::blas

// Functions are templates, so that only those that a program calls are compiled.
#define EMULATOR_LAZY template <class = void>
#define EMULATOR_BLAS_GEMM(L, T)                                                                                               \
  EMULATOR_LAZY cublasStatus_t cublas##L##gemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,   \
                                               int n, int k, const T* alpha, const T* a, int lead_a, const T* b, int lead_b,   \
                                               const T* beta, T* c, int lead_c) {                                              \
    return emulator::blas::do_in_stream(handle, [=, scale_a = *alpha, scale_c = *beta] {                                       \
      return emulator::blas::gemm_of<T>(of_a, of_b, m, n, k, &scale_a, a, lead_a, b, lead_b, &scale_c, c, lead_c);             \
    });                                                                                                                        \
  }                                                                                                                            \
  EMULATOR_LAZY cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b,   \
                                                             int m, int n, int k, const T* alpha, const T* a, int lead_a,      \
                                                             long long stride_a, const T* b, int lead_b, long long stride_b,   \
                                                             const T* beta, T* c, int lead_c, long long stride_c, int count) { \
    for (int i = 0; i < count; ++i)                                                                                            \
      if (const cublasStatus_t status = emulator::blas::gemm_of<T>(of_a, of_b, m, n, k, alpha, a + i * stride_a, lead_a,       \
                                                                   b + i * stride_b, lead_b, beta, c + i * stride_c, lead_c))  \
        return status;                                                                                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                                              \
  }                                                                                                                            \
  EMULATOR_LAZY cublasStatus_t cublas##L##gemmBatched(                                                                         \
      cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const T* alpha, const T* const a[], \
      int lead_a, const T* const b[], int lead_b, const T* beta, T* const c[], int lead_c, int count) {                        \
    if (!emulator::blas::reads(a, size_t(count)) || !emulator::blas::reads(b, size_t(count)) ||                                \
        !emulator::blas::reads(c, size_t(count)))                                                                              \
      return CUBLAS_STATUS_EXECUTION_FAILED;                                                                                   \
    for (int i = 0; i < count; ++i)                                                                                            \
      if (const cublasStatus_t status =                                                                                        \
              emulator::blas::gemm_of<T>(of_a, of_b, m, n, k, alpha, a[i], lead_a, b[i], lead_b, beta, c[i], lead_c))          \
        return status;                                                                                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                                              \
  }
EMULATOR_BLAS_GEMM(S, float)
EMULATOR_BLAS_GEMM(D, double)
EMULATOR_BLAS_GEMM(C, cuComplex)
EMULATOR_BLAS_GEMM(Z, cuDoubleComplex)
EMULATOR_BLAS_GEMM(H, __half)
#undef EMULATOR_BLAS_GEMM

#define EMULATOR_BLAS(L, T, R, RL, l)                                                                                       \
  EMULATOR_LAZY cublasStatus_t cublas##L##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int step_x, T* y,  \
                                               int step_y) {                                                                \
    return emulator::blas::do_in_stream(                                                                                    \
        handle, [=, scale = *alpha] { return emulator::blas::axpy(n, &scale, x, step_x, y, step_y); });                     \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##L##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int step) {              \
    return emulator::blas::do_in_stream(handle, [=, scale = *alpha] { return emulator::blas::scale(n, &scale, x, step); }); \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##RL##nrm2(cublasHandle_t, int n, const T* x, int step, R* result) {                   \
    return emulator::blas::norm(n, x, step, result);                                                                        \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##RL##asum(cublasHandle_t, int n, const T* x, int step, R* result) {                   \
    return emulator::blas::sum_sizes(n, x, step, result);                                                                   \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublasI##l##amax(cublasHandle_t, int n, const T* x, int step, int* result) {                 \
    return emulator::blas::find_extreme(n, x, step, result, true);                                                          \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublasI##l##amin(cublasHandle_t, int n, const T* x, int step, int* result) {                 \
    return emulator::blas::find_extreme(n, x, step, result, false);                                                         \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##L##copy(cublasHandle_t, int n, const T* x, int step_x, T* y, int step_y) {           \
    return emulator::blas::copy_vector(n, x, step_x, y, step_y);                                                            \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##L##swap(cublasHandle_t, int n, T* x, int step_x, T* y, int step_y) {                 \
    return emulator::blas::swap_vectors(n, x, step_x, y, step_y);                                                           \
  }                                                                                                                         \
  EMULATOR_LAZY cublasStatus_t cublas##L##gemv(cublasHandle_t, cublasOperation_t operation, int m, int n, const T* alpha,   \
                                               const T* a, int lead, const T* x, int step_x, const T* beta, T* y,           \
                                               int step_y) {                                                                \
    return emulator::blas::gemv(operation, m, n, alpha, a, lead, x, step_x, beta, y, step_y);                               \
  }
EMULATOR_BLAS(S, float, float, S, s)
EMULATOR_BLAS(D, double, double, D, d)
EMULATOR_BLAS(C, cuComplex, float, Sc, c)
EMULATOR_BLAS(Z, cuDoubleComplex, double, Dz, z)
#undef EMULATOR_BLAS

#define EMULATOR_BLAS_REAL(L, T)                                                                                              \
  EMULATOR_LAZY cublasStatus_t cublas##L##dot(cublasHandle_t, int n, const T* x, int step_x, const T* y, int step_y,          \
                                              T* result) {                                                                    \
    return emulator::blas::dot(n, x, step_x, y, step_y, result, false);                                                       \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##rot(cublasHandle_t, int n, T* x, int step_x, T* y, int step_y, const T* cosine,     \
                                              const T* sine) {                                                                \
    return emulator::blas::rotate(n, x, step_x, y, step_y, cosine, sine);                                                     \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##ger(cublasHandle_t, int m, int n, const T* alpha, const T* x, int step_x,           \
                                              const T* y, int step_y, T* a, int lead) {                                       \
    return emulator::blas::ger(m, n, alpha, x, step_x, y, step_y, a, lead);                                                   \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##symv(cublasHandle_t, cublasFillMode_t fill, int n, const T* alpha, const T* a,      \
                                               int lead, const T* x, int step_x, const T* beta, T* y, int step_y) {           \
    return emulator::blas::symv(fill, n, alpha, a, lead, x, step_x, beta, y, step_y);                                         \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##trsv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t operation,            \
                                               cublasDiagType_t diagonal, int n, const T* a, int lead, T* x, int step) {      \
    const T one = 1;                                                                                                          \
    if (step != 1) return CUBLAS_STATUS_NOT_SUPPORTED;                                                                        \
    return emulator::blas::trsm(CUBLAS_SIDE_LEFT, fill, operation, diagonal, n, 1, &one, a, lead, x, n);                      \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##symm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, int m, int n,    \
                                               const T* alpha, const T* a, int lead_a, const T* b, int lead_b, const T* beta, \
                                               T* c, int lead_c) {                                                            \
    return emulator::blas::symm(side, fill, m, n, alpha, a, lead_a, b, lead_b, beta, c, lead_c);                              \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##syrk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t operation, int n,     \
                                               int k, const T* alpha, const T* a, int lead_a, const T* beta, T* c,            \
                                               int lead_c) {                                                                  \
    return emulator::blas::syrk(fill, operation, n, k, alpha, a, lead_a, beta, c, lead_c);                                    \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill,                  \
                                               cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,          \
                                               const T* alpha, const T* a, int lead_a, T* b, int lead_b) {                    \
    return emulator::blas::trsm(side, fill, operation, diagonal, m, n, alpha, a, lead_a, b, lead_b);                          \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##geam(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,  \
                                               const T* alpha, const T* a, int lead_a, const T* beta, const T* b, int lead_b, \
                                               T* c, int lead_c) {                                                            \
    return emulator::blas::geam(of_a, of_b, m, n, alpha, a, lead_a, beta, b, lead_b, c, lead_c);                              \
  }                                                                                                                           \
  EMULATOR_LAZY cublasStatus_t cublas##L##dgmm(cublasHandle_t, cublasSideMode_t side, int m, int n, const T* a, int lead_a,   \
                                               const T* x, int step, T* c, int lead_c) {                                      \
    return emulator::blas::dgmm(side, m, n, a, lead_a, x, step, c, lead_c);                                                   \
  }
EMULATOR_BLAS_REAL(S, float)
EMULATOR_BLAS_REAL(D, double)
#undef EMULATOR_BLAS_REAL
#define EMULATOR_BLAS_COMPLEX(L, T)                                                                                   \
  EMULATOR_LAZY cublasStatus_t cublas##L##dotu(cublasHandle_t, int n, const T* x, int step_x, const T* y, int step_y, \
                                               T* result) {                                                           \
    return emulator::blas::dot(n, x, step_x, y, step_y, result, false);                                               \
  }                                                                                                                   \
  EMULATOR_LAZY cublasStatus_t cublas##L##dotc(cublasHandle_t, int n, const T* x, int step_x, const T* y, int step_y, \
                                               T* result) {                                                           \
    return emulator::blas::dot(n, x, step_x, y, step_y, result, true);                                                \
  }
EMULATOR_BLAS_COMPLEX(C, cuComplex)
EMULATOR_BLAS_COMPLEX(Z, cuDoubleComplex)
#undef EMULATOR_BLAS_COMPLEX

// --- types chosen at run time ------------------------------------------------------------------------------------------------
EMULATOR_LAZY cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a, int lead_a, const void* b,
                                          cudaDataType type_b, int lead_b, const void* beta, void* c, cudaDataType type_c,
                                          int lead_c, cublasComputeType_t type, cublasGemmAlgo_t) {
  return emulator::blas::gemm_ex(of_a, of_b, m, n, k, alpha, {a, type_a, lead_a}, {b, type_b, lead_b}, beta,
                                 {c, type_c, lead_c}, type);
}
EMULATOR_LAZY cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                          int k, const void* alpha, const void* a, cudaDataType type_a, int lead_a,
                                          const void* b, cudaDataType type_b, int lead_b, const void* beta, void* c,
                                          cudaDataType type_c, int lead_c, cudaDataType type, cublasGemmAlgo_t algorithm) {
  return cublasGemmEx(handle, of_a, of_b, m, n, k, alpha, a, type_a, lead_a, b, type_b, lead_b, beta, c, type_c, lead_c,
                      emulator::blas::to_compute_type(type), algorithm);
}
EMULATOR_LAZY cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                                           const float* alpha, const void* a, cudaDataType type_a, int lead_a, const void* b,
                                           cudaDataType type_b, int lead_b, const float* beta, void* c, cudaDataType type_c,
                                           int lead_c) {
  return emulator::blas::gemm_ex(of_a, of_b, m, n, k, alpha, {a, type_a, lead_a}, {b, type_b, lead_b}, beta,
                                 {c, type_c, lead_c}, CUBLAS_COMPUTE_32F);
}
template <class Type>
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                          int k, const void* alpha, const void* a, cudaDataType type_a, int lead_a,
                                          long long stride_a, const void* b, cudaDataType type_b, int lead_b,
                                          long long stride_b, const void* beta, void* c, cudaDataType type_c, int lead_c,
                                          long long stride_c, int count, Type type, cublasGemmAlgo_t algorithm) {
  const auto shift = [](const void* values, cudaDataType of, long long elements) {
    return static_cast<const char*>(values) + elements * (long long)emulator::blas::size_of(of);
  };
  for (int i = 0; i < count; ++i)
    if (const cublasStatus_t status = cublasGemmEx(
            handle, of_a, of_b, m, n, k, alpha, shift(a, type_a, i * stride_a), type_a, lead_a, shift(b, type_b, i * stride_b),
            type_b, lead_b, beta, const_cast<char*>(shift(c, type_c, i * stride_c)), type_c, lead_c, type, algorithm))
      return status;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Type>
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                                   const void* alpha, const void* const a[], cudaDataType type_a, int lead_a,
                                   const void* const b[], cudaDataType type_b, int lead_b, const void* beta, void* const c[],
                                   cudaDataType type_c, int lead_c, int count, Type type, cublasGemmAlgo_t algorithm) {
  for (int i = 0; i < count; ++i)
    if (const cublasStatus_t status = cublasGemmEx(handle, of_a, of_b, m, n, k, alpha, a[i], type_a, lead_a, b[i], type_b,
                                                   lead_b, beta, c[i], type_c, lead_c, type, algorithm))
      return status;
  return CUBLAS_STATUS_SUCCESS;
}
#define EMULATOR_DOT_EX(T)                                                                                                   \
  return emulator::blas::dot(n, static_cast<const T*>(x), step_x, static_cast<const T*>(y), step_y, static_cast<T*>(result), \
                             false)
EMULATOR_LAZY cublasStatus_t cublasDotEx(cublasHandle_t, int n, const void* x, cudaDataType type, int step_x, const void* y,
                                         cudaDataType type_y, int step_y, void* result, cudaDataType type_result,
                                         cudaDataType) {
  if (type != type_y || type != type_result) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (type == CUDA_R_64F) EMULATOR_DOT_EX(double);
  if (type == CUDA_R_32F) EMULATOR_DOT_EX(float);
  if (type != CUDA_R_16F) return CUBLAS_STATUS_NOT_SUPPORTED;
  float sum = 0;
  for (int i = 0; i < n; ++i)
    sum += float(static_cast<const __half*>(x)[size_t(i) * step_x]) * float(static_cast<const __half*>(y)[size_t(i) * step_y]);
  *static_cast<__half*>(result) = __half(sum);
  return CUBLAS_STATUS_SUCCESS;
}
#undef EMULATOR_DOT_EX

// --- copies ----------------------------------------------------------------------------------------------------------------
inline cublasStatus_t emulator_copy_matrix(int rows, int columns, int size, const void* from, int lead_from, void* to,
                                           int lead_to, cudaMemcpyKind kind) {
  const size_t width = size_t(rows) * size;
  if (rows < 0 || columns < 0 || size <= 0 || lead_from < rows || lead_to < rows) return CUBLAS_STATUS_INVALID_VALUE;
  return cudaMemcpy2D(to, size_t(lead_to) * size, from, size_t(lead_from) * size, width, size_t(columns), kind)
             ? CUBLAS_STATUS_MAPPING_ERROR
             : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lead_a, void* b, int lead_b) {
  return emulator_copy_matrix(rows, columns, size, a, lead_a, b, lead_b, cudaMemcpyHostToDevice);
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lead_a, void* b, int lead_b) {
  return emulator_copy_matrix(rows, columns, size, a, lead_a, b, lead_b, cudaMemcpyDeviceToHost);
}
inline cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* a, int lead_a, void* b, int lead_b,
                                           cudaStream_t) {
  return cublasSetMatrix(rows, columns, size, a, lead_a, b, lead_b);
}
inline cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* a, int lead_a, void* b, int lead_b,
                                           cudaStream_t) {
  return cublasGetMatrix(rows, columns, size, a, lead_a, b, lead_b);
}
inline cublasStatus_t cublasSetVector(int count, int size, const void* x, int step_x, void* y, int step_y) {
  return cublasSetMatrix(1, count, size, x, step_x, y, step_y);
}
inline cublasStatus_t cublasGetVector(int count, int size, const void* x, int step_x, void* y, int step_y) {
  return cublasGetMatrix(1, count, size, x, step_x, y, step_y);
}
inline cublasStatus_t cublasSetVectorAsync(int count, int size, const void* x, int step_x, void* y, int step_y, cudaStream_t) {
  return cublasSetVector(count, size, x, step_x, y, step_y);
}
inline cublasStatus_t cublasGetVectorAsync(int count, int size, const void* x, int step_x, void* y, int step_y, cudaStream_t) {
  return cublasGetVector(count, size, x, step_x, y, step_y);
}
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasSaxpy_v2 cublasSaxpy
#define cublasSdot_v2 cublasSdot
#define cublasSnrm2_v2 cublasSnrm2
