// Your part of 5.0: twelve small kernels, each with one new idea, of two to five lines.
//
// You will learn    which number a thread works on, in one dimension and in two; when threads share numbers, and when they wait
// You will produce  twelve kernels that are right for every size, so that 5.1 begins with nothing new but speed
// Try it            gpucourse try 5.0, after each kernel: it names how many of the twelve are right, and the first that is not
// Your part         the bodies of the kernels, without their lines OPEN; keep the names and the parameters
// Reading           modules/05-gpu-programming/lesson-0-first-kernels.md
#include <cuda_runtime.h>

#define OPEN(question)  // marks a kernel that you have not written yet: remove its line once you have

// 1. out[i] = in[i] + 10. There is one block, with exactly as many threads as there are numbers.
__global__ void map(const float* in, float* out) {
  OPEN("map: which number belongs to this thread?");
}

// 2. out[i] = in[i] + 10 for every i below n. The grid has as many whole blocks as are needed for at least n threads.
__global__ void guard(const float* in, float* out, int n) {
  OPEN("guard: which threads have no number?");
}

// 3. out[r][c] = in[r][c] + 10. Both matrices have `rows` rows of `columns` numbers, one row after the other. Blocks have
// 16 x 16 threads; x counts along a row, y down a column. The grid covers the matrix and often more.
__global__ void two_dimensions(const float* in, float* out, int rows, int columns) {
  OPEN("two_dimensions: how many numbers lie before row r, column c?");
}

// 4. out[r][c] = a[r] + b[c]: a has a number for each row, b has a number for each column. Blocks as in 3.
__global__ void broadcast(const float* a, const float* b, float* out, int rows, int columns) {
  OPEN("broadcast: which of the two indices does each vector need?");
}

// 5. out[i] = in[i - 1] + in[i] + in[i + 1], with 0 for a number outside the array. The block reads its numbers once, into
// tile, where tile[t + 1] belongs to thread t. Its first and its last thread also read the neighbour beyond the block.
__global__ void halo(const float* in, float* out, int n) {
  __shared__ float tile[1024 + 2];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  OPEN("halo: who reads the two numbers beyond the block, and when may a thread use what another one read?");
}

// 6. out[i] = the largest of in[4 i], in[4 i + 1], in[4 i + 2] and in[4 i + 3]. in has n numbers, which may all be negative; out
// has one for each four, and the last window may be shorter. A thread makes one number of out.
__global__ void pooling(const float* in, float* out, int n) {
  OPEN("pooling: where does the last window end, and what is the largest number so far at the start?");
}

// 7. out[c] = in[0][c] + in[1][c] + ... + in[rows - 1][c], in the layout of 3. A thread makes one number of out.
__global__ void axis_sum(const float* in, float* out, int rows, int columns) {
  OPEN("axis_sum: how far apart are two numbers of one column?");
}

// 8. out[i] = the sum of the numbers of the same block up to in[i]: out[0] = in[0], out[1] = in[0] + in[1], and so on, until the
// next block begins anew. In step d = 1, 2, 4, ... each thread adds the number that is d places before its own.
__global__ void scan(const float* in, float* out, int n) {
  __shared__ float part[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  OPEN("scan: in one step every number is read by one thread and written by another. Which comes first?");
  if (i < n) out[i] = part[t];
}

// 9. count[b] = how many of the n numbers in bin equal b. count begins with zeros, and all blocks share it.
__global__ void histogram(const int* bin, float* count, int n) {
  OPEN("histogram: what happens if two threads add to the same count at once?");
}

// 10. out[t] = table[token[t]]: rows of `width` numbers. There is one block for each token, and its threads copy the row
// together. Often the row has more numbers than the block has threads.
__global__ void embedding(const int* token, const float* table, float* out, int width) {
  OPEN("embedding: which numbers of the row does this thread copy, if the block has fewer threads than the row has numbers?");
}

// 11. out[c][r] = in[r][c]: in has `rows` rows of `columns` numbers, out has `columns` rows of `rows` numbers. Blocks as in 3.
__global__ void transpose(const float* in, float* out, int rows, int columns) {
  OPEN("transpose: how long is a row of out?");
}

// The sum over the 32 lanes of a warp, in its lane 0. All 32 lanes must call it.
__device__ float warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffffu, value, d);
  return value;
}

// 12. *sum += a[0] b[0] + a[1] b[1] + ... + a[n - 1] b[n - 1]. *sum begins at 0, all blocks share it, and each warp adds to it once.
__global__ void dot(const float* a, const float* b, float* sum, int n) {
  OPEN("dot: what does a lane without numbers add, and which lane adds the warp's sum?");
}
