// Your part of 5.1, first half: two kernels that are right for every size.
//
// You will learn    which element a thread gets, what happens past the end, how the threads of a block share their results
// You will produce  a vector_add that stays inside its arrays, and a block_sum with one atomic addition per block
// Try it            gpucourse try 5.1
// Your part         the bodies of both kernels, without their lines OPEN; keep the names and the parameters
// Reading           modules/05-gpu-programming/lesson-0-first-kernels.md; lesson-2-cooperation.md
#include <cuda_runtime.h>

#define OPEN(question)  // marks a kernel that you have not written yet: remove its line once you have

// sum[i] = a[i] + b[i] for every i below n. All three arrays have n elements. The grid has as many whole blocks as are needed
// for at least n threads. This version is right for 256 elements in blocks of 256, but wrong for 257.
__global__ void vector_add(const float* a, const float* b, float* sum, int n) {
  OPEN("vector_add: which element does the last thread of the last block have?");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = a[i] + b[i];
}

// Adds x[0] + x[1] + ... + x[n-1] to *sum, which is 0 before. The grid has at least n threads. A block has 32, 64, ... or 1024
// of them, always a power of two. The threads of a block add up their elements in shared memory: half of the threads add
// the other half's numbers to their own, then half of that half, until one number is left. One thread of each block adds it to
// *sum, which all blocks share.
__global__ void block_sum(const float* x, float* sum, int n) {
  OPEN("block_sum: which thread may read a number before all have written?");
}
