// Kernels of the course that 5.0 and 5.1 measure together with yours: the same work with better and worse access patterns.
#include <cuda_runtime.h>

struct Particle {
  float x, y, z, mass;
};

// Neighbouring threads touch neighbouring numbers: the best pattern.
__global__ void copy(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// The same, four neighbouring numbers to a lane in one load of 16 bytes. The last thread copies what is left one by one.
__global__ void vector_copy(const float* in, float* out, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) *reinterpret_cast<float4*>(out + i) = *reinterpret_cast<const float4*>(in + i);
  else for (; i < n; ++i) out[i] = in[i];
}

// The same, but the array begins one element later: no request begins at the start of a sector.
__global__ void shifted_copy(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i + 1];
}

// Reads every stride-th element of an array that is `stride` times as long.
__global__ void strided_copy(const float* in, float* out, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[size_t(i) * stride];
}

// One of four fields of each structure in an array of structures.
__global__ void read_field(const Particle* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i].mass;
}

// Each thread copies one row of a matrix, or one column of it.
__global__ void walk_rows(const float* in, float* out, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  for (int c = 0; r < rows && c < columns; ++c) out[r * columns + c] = in[r * columns + c];
}
__global__ void walk_columns(const float* in, float* out, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; c < columns && r < rows; ++r) out[r * columns + c] = in[r * columns + c];
}

// A warp reads the columns of a tile in shared memory, one after the other.
template <int WIDTH>
__device__ void read_columns(float* out) {
  __shared__ float tile[32][WIDTH];
  for (int row = 0; row < 32; ++row) tile[row][threadIdx.x] = 32.0f * row + threadIdx.x;
  __syncwarp();
  for (int column = 0; column < 32; ++column) out[column * 32 + threadIdx.x] = tile[threadIdx.x][column];
}
__global__ void column_of_32(float* out) { read_columns<32>(out); }
__global__ void column_of_34(float* out) { read_columns<34>(out); }
