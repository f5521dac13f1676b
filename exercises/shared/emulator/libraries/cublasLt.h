// cuBLASLt on the CPU: cublasLtMatmul by the products of cublas_v2.h, with the epilogues of a bias, ReLU and GELU.
//
// Matrices are stored by columns. Attributes that would change the result and are missing here are refused when they are set.
#pragma once
#include <cublas_v2.h>

enum cublasLtOrder_t { CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW };
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_TYPE,
  CUBLASLT_MATRIX_LAYOUT_ORDER,
  CUBLASLT_MATRIX_LAYOUT_ROWS,
  CUBLASLT_MATRIX_LAYOUT_COLS,
  CUBLASLT_MATRIX_LAYOUT_LD,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE,
  CUBLASLT_MATMUL_DESC_SCALE_TYPE,
  CUBLASLT_MATMUL_DESC_POINTER_MODE,
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_TRANSC,
  CUBLASLT_MATMUL_DESC_FILL_MODE,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
  CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
  CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
  CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
  CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
};
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192,  // this and the next are refused
  CUBLASLT_EPILOGUE_BGRADB = 512,
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
};

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t lead;
  int32_t count = 1;
  int64_t stride = 0;  // elements between matrices of a batch
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute_type;
  cudaDataType scale_type;
  cublasOperation_t of_a = CUBLAS_OP_N, of_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *auxiliary = nullptr;
  int64_t auxiliary_lead = 0;
  cudaDataType bias_type = CUDA_R_32F;
  bool has_bias_type = false;
};
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};
struct cublasLtMatmulPreferenceOpaque_t {};
typedef cublasContext* cublasLtHandle_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate(handle); }
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t lead) {
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, columns, lead};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t columns,
                                               int64_t lead) {
  *layout = {type, rows, columns, lead};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t type, cudaDataType scale_type) {
  *product = new cublasLtMatmulDescOpaque_t{type, scale_type};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t product, cublasComputeType_t type, cudaDataType scale_type) {
  *product = {type, scale_type};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                           const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int count,
                                                     cublasLtMatmulHeuristicResult_t* results, int* count_found) {
  if (count < 1) return CUBLAS_STATUS_INVALID_VALUE;
  return results[0] = {}, *count_found = 1, CUBLAS_STATUS_SUCCESS;
}

namespace emulator::blas {
template <class T>
cublasStatus_t set_attribute(T& attribute, const void* value, size_t bytes) {
  if (bytes < sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&attribute, value, sizeof attribute);
  return CUBLAS_STATUS_SUCCESS;
}
inline double read_number(const void* values, cudaDataType type, size_t i) {
  switch (type) {
    case CUDA_R_64F: return static_cast<const double*>(values)[i];
    case CUDA_R_16F: return float(static_cast<const __half*>(values)[i]);
    case CUDA_R_16BF: return static_cast<const Bfloat16*>(values)[i];
    default: return static_cast<const float*>(values)[i];
  }
}
inline void write_number(void* values, cudaDataType type, size_t i, double value) {
  switch (type) {
    case CUDA_R_64F: static_cast<double*>(values)[i] = value; break;
    case CUDA_R_16F: static_cast<__half*>(values)[i] = __half(float(value)); break;
    case CUDA_R_16BF: static_cast<Bfloat16*>(values)[i] = Bfloat16(float(value)); break;
    default: static_cast<float*>(values)[i] = float(value); break;
  }
}
// GELU by the hyperbolic tangent, as cuBLASLt documents it.
inline double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

// What cublasLtMatmul does to each element of its result: the bias of its row, a copy into the auxiliary matrix, ReLU or GELU.
inline cublasStatus_t finish(const cublasLtMatmulDescOpaque_t& product, const cublasLtMatrixLayoutOpaque_t& layout, void* d) {
  const int epilogue = product.epilogue;
  const bool adds_bias = epilogue & 4, is_relu = epilogue & 2, is_gelu = epilogue & 32, keeps = epilogue & 128;
  const cudaDataType bias_type = product.has_bias_type ? product.bias_type : layout.type;
  const auto lead = size_t(product.auxiliary_lead);
  if (adds_bias && !reach_from_library(product.bias, layout.rows * size_of(bias_type), false))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (keeps && !reach_from_library(product.auxiliary,
                                   matrix_length(int(layout.rows), int(layout.columns), lead) * size_of(layout.type), true))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (size_t column = 0; column < layout.columns; ++column)
    for (size_t row = 0; row < layout.rows; ++row) {
      const size_t i = column * size_t(layout.lead) + row;
      double value = read_number(d, layout.type, i);
      if (adds_bias) value += read_number(product.bias, bias_type, row);
      if (keeps) write_number(product.auxiliary, layout.type, column * lead + row, value);
      if (is_relu) value = value > 0 ? value : 0;
      if (is_gelu) value = gelu(value);
      write_number(d, layout.type, i, value);
    }
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace emulator::blas

inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                       const void* value, size_t bytes) {
  using emulator::blas::set_attribute;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return set_attribute(layout->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return set_attribute(layout->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return set_attribute(layout->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD: return set_attribute(layout->lead, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set_attribute(layout->count, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set_attribute(layout->stride, value, bytes);
    default: return *static_cast<const int*>(value) == CUBLASLT_ORDER_COL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                                     const void* value, size_t bytes) {
  using emulator::blas::set_attribute;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return set_attribute(product->compute_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return set_attribute(product->scale_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA: return set_attribute(product->of_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set_attribute(product->of_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set_attribute(product->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set_attribute(product->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set_attribute(product->auxiliary, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set_attribute(product->auxiliary_lead, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      product->has_bias_type = true;
      return set_attribute(product->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return CUBLAS_STATUS_SUCCESS;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// D = alpha op(A) op(B) + beta C, for each matrix of a batch.
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                                     cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                                     const void* c, cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d,
                                     const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  using emulator::blas::Matrix, emulator::blas::size_of;
  const auto rows = int(of_d->rows), columns = int(of_d->columns);
  const auto depth = int(product->of_a == CUBLAS_OP_N ? of_a->columns : of_a->rows);
  const auto of_b_depth = product->of_b == CUBLAS_OP_N ? of_b->rows : of_b->columns;
  if (of_b_depth != uint64_t(depth)) return CUBLAS_STATUS_INVALID_VALUE;
  if (product->epilogue >= CUBLASLT_EPILOGUE_DGELU || (c != d && (of_c->type != of_d->type || of_c->lead != of_d->lead)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < of_d->count; ++i) {
    const auto find = [i](const void* values, cublasLtMatrixLayout_t layout) {
      return static_cast<const char*>(values) + i * layout->stride * int64_t(size_of(layout->type));
    };
    void* result = const_cast<char*>(find(d, of_d));
    const size_t bytes = emulator::blas::matrix_length(rows, columns, size_t(of_d->lead)) * size_of(of_d->type);
    if (c != d && c && cudaMemcpy(result, find(c, of_c), bytes, cudaMemcpyDeviceToDevice)) return CUBLAS_STATUS_EXECUTION_FAILED;
    const cublasStatus_t status = emulator::blas::gemm_ex(
        product->of_a, product->of_b, rows, columns, depth, alpha, Matrix{find(a, of_a), of_a->type, int(of_a->lead)},
        Matrix{find(b, of_b), of_b->type, int(of_b->lead)}, beta, Matrix{result, of_d->type, int(of_d->lead)},
        product->compute_type);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (product->epilogue == CUBLASLT_EPILOGUE_DEFAULT) continue;
    if (const cublasStatus_t end = emulator::blas::finish(*product, *of_d, result)) return end;
  }
  return CUBLAS_STATUS_SUCCESS;
}
