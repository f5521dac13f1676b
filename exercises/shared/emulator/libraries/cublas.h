// The functions of cuBLAS before version 4, which take letters for operations, and no handle.
#pragma once
#include "cublas_v2.h"

inline cublasStatus_t cublasInit() { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasShutdown() { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasAlloc(int count, int size, void** pointer) {
  return cudaMalloc(pointer, size_t(count) * size) ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasFree(void* pointer) {
  return cudaFree(pointer) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

namespace emulator::blas {
inline cublasStatus_t last_status = CUBLAS_STATUS_SUCCESS;
inline cublasOperation_t to_operation(char letter) {
  return letter == 'n' || letter == 'N' ? CUBLAS_OP_N : letter == 't' || letter == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}
}  // namespace emulator::blas
inline cublasStatus_t cublasGetError() {
  const cublasStatus_t status = emulator::blas::last_status;
  emulator::blas::last_status = CUBLAS_STATUS_SUCCESS;
  return status;
}
#define EMULATOR_BLAS_OLD(L, T)                                                                                                \
  EMULATOR_LAZY void cublas##L##gemm(char of_a, char of_b, int m, int n, int k, T alpha, const T* a, int lead_a, const T* b,   \
                                     int lead_b, T beta, T* c, int lead_c) {                                                   \
    emulator::blas::last_status =                                                                                              \
        cublas##L##gemm(nullptr, emulator::blas::to_operation(of_a), emulator::blas::to_operation(of_b), m, n, k, &alpha, a,   \
                        lead_a, b, lead_b, &beta, c, lead_c);                                                                  \
  }                                                                                                                            \
  EMULATOR_LAZY void cublas##L##gemv(char operation, int m, int n, T alpha, const T* a, int lead, const T* x, int step_x,      \
                                     T beta, T* y, int step_y) {                                                               \
    emulator::blas::last_status =                                                                                              \
        cublas##L##gemv(nullptr, emulator::blas::to_operation(operation), m, n, &alpha, a, lead, x, step_x, &beta, y, step_y); \
  }                                                                                                                            \
  EMULATOR_LAZY void cublas##L##axpy(int n, T alpha, const T* x, int step_x, T* y, int step_y) {                               \
    emulator::blas::last_status = cublas##L##axpy(nullptr, n, &alpha, x, step_x, y, step_y);                                   \
  }                                                                                                                            \
  EMULATOR_LAZY void cublas##L##scal(int n, T alpha, T* x, int step) {                                                         \
    emulator::blas::last_status = cublas##L##scal(nullptr, n, &alpha, x, step);                                                \
  }                                                                                                                            \
  EMULATOR_LAZY T cublas##L##dot(int n, const T* x, int step_x, const T* y, int step_y) {                                      \
    T result = 0;                                                                                                              \
    emulator::blas::last_status = cublas##L##dot(nullptr, n, x, step_x, y, step_y, &result);                                   \
    return result;                                                                                                             \
  }                                                                                                                            \
  EMULATOR_LAZY T cublas##L##nrm2(int n, const T* x, int step) {                                                               \
    T result = 0;                                                                                                              \
    emulator::blas::last_status = cublas##L##nrm2(nullptr, n, x, step, &result);                                               \
    return result;                                                                                                             \
  }
EMULATOR_BLAS_OLD(S, float)
EMULATOR_BLAS_OLD(D, double)
#undef EMULATOR_BLAS_OLD
