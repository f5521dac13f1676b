// cuSPARSE on the CPU: products of a sparse matrix, stored by rows (CSR), with a vector or with a dense matrix, of float or double.
// Sums are made in double, in another order than on a GPU.
#pragma once
#include <host_access.h>
#include <vector>

#include <cuda_runtime.h>
#include <library_types.h>

enum cusparseStatus_t {
  CUSPARSE_STATUS_SUCCESS,
  CUSPARSE_STATUS_NOT_INITIALIZED,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_INTERNAL_ERROR,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10,
};
enum cusparseOperation_t { CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE };
enum cusparseIndexType_t { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_INDEX_BASE_ONE };
enum cusparseOrder_t { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW };
enum cusparseSpMVAlg_t { CUSPARSE_SPMV_ALG_DEFAULT, CUSPARSE_MV_ALG_DEFAULT = 0, CUSPARSE_SPMV_CSR_ALG1 = 2, CUSPARSE_SPMV_CSR_ALG2 };
enum cusparseSpMMAlg_t { CUSPARSE_SPMM_ALG_DEFAULT, CUSPARSE_SPMM_CSR_ALG1 = 4, CUSPARSE_SPMM_CSR_ALG2 = 6 };

namespace emulator::sparse {
struct Numbers {
  void* at;
  cudaDataType type;

  size_t size() const { return type == CUDA_R_64F ? sizeof(double) : sizeof(float); }
  __attribute__((no_sanitize("thread"))) double read(size_t i) const {
    return type == CUDA_R_64F ? static_cast<double*>(at)[i] : static_cast<float*>(at)[i];
  }
  __attribute__((no_sanitize("thread"))) void write(size_t i, double value) const {
    type == CUDA_R_64F ? static_cast<double*>(at)[i] = value : static_cast<float*>(at)[i] = float(value);
  }
};
struct Places {
  void* at;
  cusparseIndexType_t type;
  int64_t base;

  size_t size() const { return type == CUSPARSE_INDEX_64I ? sizeof(int64_t) : sizeof(int); }
  __attribute__((no_sanitize("thread"))) int64_t read(int64_t i) const {
    return (type == CUSPARSE_INDEX_64I ? static_cast<int64_t*>(at)[i] : static_cast<int*>(at)[i]) - base;
  }
};
template <class A>
bool is_there(const A& array, int64_t length, bool writes = false) {
  return reach_from_library(array.at, size_t(length) * array.size(), writes);
}
}  // namespace emulator::sparse

struct cusparseContext {
  cudaStream_t stream = nullptr;
};
struct cusparseSpMatDescr {
  int64_t rows, columns, count;
  emulator::sparse::Places row_begins, column_places;
  emulator::sparse::Numbers values;
};
struct cusparseDnMatDescr {
  int64_t rows, columns, lead;
  emulator::sparse::Numbers values;
  cusparseOrder_t order;

  size_t place(int64_t row, int64_t column) const {
    return size_t(order == CUSPARSE_ORDER_ROW ? row * lead + column : column * lead + row);
  }
};
typedef cusparseContext* cusparseHandle_t;
typedef cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef cusparseDnMatDescr *cusparseDnMatDescr_t, *cusparseDnVecDescr_t;  // a vector has one column

namespace emulator::sparse {
// c = alpha * op(a) * op(b) + beta * c
inline cusparseStatus_t multiply(bool turns_a, bool turns_b, double alpha, const cusparseSpMatDescr& a,
                                 const cusparseDnMatDescr& b, double beta, const cusparseDnMatDescr& c) {
  if ((turns_a ? a.columns : a.rows) != c.rows || (turns_a ? a.rows : a.columns) != (turns_b ? b.columns : b.rows) ||
      (turns_b ? b.rows : b.columns) != c.columns)
    return CUSPARSE_STATUS_INVALID_VALUE;
  for (cudaDataType type : {a.values.type, b.values.type, c.values.type})
    if (type != CUDA_R_32F && type != CUDA_R_64F) return CUSPARSE_STATUS_NOT_SUPPORTED;
  const auto length = [](const cusparseDnMatDescr& of) { return int64_t(of.place(of.rows - 1, of.columns - 1)) + 1; };
  if (!is_there(a.row_begins, a.rows + 1) || !is_there(a.column_places, a.count) || !is_there(a.values, a.count) ||
      !is_there(b.values, length(b)) || !is_there(c.values, length(c), true))
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  std::vector<double> sums(size_t(c.rows * c.columns));
  for (int64_t row = 0; row < a.rows; ++row)
    for (int64_t i = a.row_begins.read(row); i < a.row_begins.read(row + 1); ++i) {
      const int64_t column = a.column_places.read(i), from = turns_a ? row : column, to = turns_a ? column : row;
      for (int64_t k = 0; k < c.columns; ++k)
        sums[size_t(to * c.columns + k)] += a.values.read(size_t(i)) * b.values.read(turns_b ? b.place(k, from) : b.place(from, k));
    }
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t k = 0; k < c.columns; ++k) {
      const double product = alpha * sums[size_t(row * c.columns + k)];
      const size_t to = c.place(row, k);
      c.values.write(to, beta == 0 ? product : product + beta * c.values.read(to));  // with beta = 0, C is not read
    }
  return CUSPARSE_STATUS_SUCCESS;
}
}  // namespace emulator::sparse

inline const char* cusparseGetErrorString(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS: return "success";
    case CUSPARSE_STATUS_INVALID_VALUE: return "invalid value";
    case CUSPARSE_STATUS_EXECUTION_FAILED: return "kernel launch failure";
    case CUSPARSE_STATUS_NOT_SUPPORTED: return "operation not supported";
    default: return "internal error";
  }
}
inline cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) { return *handle = new cusparseContext, CUSPARSE_STATUS_SUCCESS; }
inline cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) { return delete handle, CUSPARSE_STATUS_SUCCESS; }
inline cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t count,
                                          void* row_begins, void* column_places, void* values, cusparseIndexType_t row_type,
                                          cusparseIndexType_t column_type, cusparseIndexBase_t base, cudaDataType type) {
  const emulator::sparse::Places of_rows{row_begins, row_type, base}, of_columns{column_places, column_type, base};
  return *matrix = new cusparseSpMatDescr{rows, columns, count, of_rows, of_columns, {values, type}}, CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t lead,
                                            void* values, cudaDataType type, cusparseOrder_t order) {
  return *matrix = new cusparseDnMatDescr{rows, columns, lead, {values, type}, order}, CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t length, void* values, cudaDataType type) {
  return cusparseCreateDnMat(vector, length, 1, length, values, type, CUSPARSE_ORDER_COL);
}
inline cusparseStatus_t cusparseDestroySpMat(cusparseSpMatDescr_t matrix) { return delete matrix, CUSPARSE_STATUS_SUCCESS; }
inline cusparseStatus_t cusparseDestroyDnMat(cusparseDnMatDescr_t matrix) { return delete matrix, CUSPARSE_STATUS_SUCCESS; }
inline cusparseStatus_t cusparseDestroyDnVec(cusparseDnVecDescr_t vector) { return delete vector, CUSPARSE_STATUS_SUCCESS; }

// The last argument is the size of a buffer, which is not used.
template <class... A>
cusparseStatus_t cusparseSpMM_bufferSize(A... arguments) {
  return *std::get<sizeof...(A) - 1>(std::tie(arguments...)) = 16, CUSPARSE_STATUS_SUCCESS;
}
template <class... A>
cusparseStatus_t cusparseSpMV_bufferSize(A... arguments) {
  return cusparseSpMM_bufferSize(arguments...);
}
inline cusparseStatus_t cusparseSpMM(cusparseHandle_t, cusparseOperation_t of_a, cusparseOperation_t of_b, const void* alpha,
                                     cusparseSpMatDescr_t a, cusparseDnMatDescr_t b, const void* beta, cusparseDnMatDescr_t c,
                                     cudaDataType type, cusparseSpMMAlg_t, void*) {
  const auto scalar = [type](const void* value) { return emulator::sparse::Numbers{const_cast<void*>(value), type}.read(0); };
  return emulator::sparse::multiply(of_a, of_b, scalar(alpha), *a, *b, scalar(beta), *c);
}
inline cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t of_a, const void* alpha, cusparseSpMatDescr_t a,
                                     cusparseDnVecDescr_t x, const void* beta, cusparseDnVecDescr_t y, cudaDataType type,
                                     cusparseSpMVAlg_t, void*) {
  return cusparseSpMM(handle, of_a, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a, x, beta, y, type, CUSPARSE_SPMM_ALG_DEFAULT, nullptr);
}
