// Your part of 5.1, second half: two kernels whose values are right, but whose warps waste what they ask for.
//
// You will learn    why neighbouring threads should touch neighbouring numbers, what a tile in shared memory is for, what a
//                   split warp costs
// You will produce  a transpose that reads and writes whole rows, and a clip_sum whose warps do not split
// Try it            gpucourse try 5.1
// Your part         the bodies of both kernels, without their lines OPEN; keep the names and the parameters
// Reading           modules/05-gpu-programming/lesson.md, "Sectors"; lesson-2-cooperation.md
#include <cuda_runtime.h>

#define OPEN(question)  // marks a kernel that you have not written yet: remove its line once you have

// The sum over the 32 lanes of a warp, in its lane 0. A shuffle gives a lane the register of another lane.
__device__ float warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffffu, value, d);
  return value;
}

// out[c][r] = in[r][c]: in has `rows` rows of `columns` numbers, out has `columns` rows of `rows` numbers. Blocks are 32 x 32
// threads, one block for a tile of 32 x 32 numbers: blockIdx.x counts tiles along a row of in, blockIdx.y down a column. Rows
// and columns need not be multiples of 32. This version is right; but look where the 32 lanes of a warp write.
__global__ void transpose(const float* in, float* out, int rows, int columns) {
  OPEN("transpose: how can a warp write a row of out after it has read a row of in?");
  int r = blockIdx.y * 32 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
  if (r < rows && c < columns) out[c * rows + r] = in[r * columns + c];
}

// Adds two channels of n samples to *sum, which is 0 before: the left one clipped to -limit .. limit, the right one with 0
// instead of negative samples. The grid has 2 * ceil(n / blockDim.x) blocks: a thread for each sample of both channels. This
// version is right; but each warp runs both branches, one after the other, with half of its lanes each time.
__global__ void clip_sum(const float* left, const float* right, float* sum, int n, float limit) {
  OPEN("clip_sum: which threads should take the same branch?");
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 2;
  float value = 0.0f;
  if (threadIdx.x % 2) {
    if (i < n) value = fmaxf(-limit, fminf(left[i], limit));
  } else {
    if (i < n) value = fmaxf(0.0f, right[i]);
  }
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}
