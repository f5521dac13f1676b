// Your part of 5.3: two versions of a product, C = A B, each of which fetches less from main memory than the one before.
//
// You will learn    why a tile of T x T numbers in shared memory divides the bytes by T, and what registers add to that
// You will produce  two kernels that are right for every n of a run, have no races, and fetch exactly what they must
// Try it            gpucourse try 5.3; gpucourse run 5.3 compares all five versions (the others are in gemm_harness.cu)
// Your part         the bodies of `tiled` and `registers`; keep their names and their parameters
// Reading           modules/05-gpu-programming/lesson-4-products.md, lesson-5-registers.md
//
// All matrices have n x n numbers, stored row by row: the one in row r and column c of A is A[r * n + c].
#include <cuda_runtime.h>

// Started as tiled<T><<<dim3(n / T, n / T), dim3(T, T)>>>(A, B, C, n); T divides n, and is 8, 16 or 32.
// A block computes the T x T numbers of C from row blockIdx.y * T and column blockIdx.x * T on, one per thread. It loads T
// columns of A and T rows of B at a time: its threads fetch them into two tiles in shared memory, each thread one number of
// each, and then each thread adds T products to its sum.
template <int T>
__global__ void tiled(const float* A, const float* B, float* C, int n) {
    // Which number of A and which of B does this thread fetch, so that a warp fetches neighbours?
    // Where must all threads have arrived before the next step, and why in two places?
}

// Started as registers<M, K, R><<<dim3(n / M, n / M), (M / R) * (M / R)>>>(A, B, C, n); M and K divide n, R divides M.
// A block computes M x M numbers of C, and loads K columns of A and K rows of B at a time: two slabs in shared memory. Each of
// its (M / R) * (M / R) threads (numbered by threadIdx.x alone) computes R x R numbers of C in an array of its own, which
// the compiler keeps in registers. For each k it reads R numbers of A and R of B, and computes R * R products of them.
template <int M, int K, int R>
__global__ void registers(const float* A, const float* B, float* C, int n) {
    // There are M * K numbers to fetch from A, and fewer threads than that: which ones does each thread fetch?
    // Which R rows and which R columns of the block belong to this thread?
}
