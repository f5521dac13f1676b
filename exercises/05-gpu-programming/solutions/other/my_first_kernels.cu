#include <cuda_runtime.h>

__global__ void map(const float* in, float* out) { out[threadIdx.x] = 10.0f + in[threadIdx.x]; }

__global__ void guard(const float* in, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] + 10.0f;
}

__device__ bool find_place(int& r, int& c, int rows, int columns) {
  r = threadIdx.y + blockDim.y * blockIdx.y;
  c = threadIdx.x + blockDim.x * blockIdx.x;
  return r < rows && c < columns;
}

__global__ void two_dimensions(const float* in, float* out, int rows, int columns) {
  int r, c;
  if (!find_place(r, c, rows, columns)) return;
  const int place = c + columns * r;
  out[place] = in[place] + 10.0f;
}

__global__ void broadcast(const float* a, const float* b, float* out, int rows, int columns) {
  int r, c;
  if (find_place(r, c, rows, columns)) out[c + columns * r] = b[c] + a[r];
}

__global__ void halo(const float* in, float* out, int n) {
  __shared__ float tile[1024 + 2];
  const int first = blockIdx.x * blockDim.x - 1;  // of the tile, in the array
  for (int k = threadIdx.x; k < blockDim.x + 2; k += blockDim.x)
    tile[k] = first + k >= 0 && first + k < n ? in[first + k] : 0.0f;
  __syncthreads();
  const int t = threadIdx.x, i = first + 1 + t;
  if (i < n) out[i] = tile[t + 1] + tile[t] + tile[t + 2];
}

__global__ void pooling(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float largest = -INFINITY;
  for (int k = 0; k < 4; ++k)
    if (4 * i + k < n) largest = fmaxf(largest, in[4 * i + k]);
  if (4 * i < n) out[i] = largest;
}

__global__ void axis_sum(const float* in, float* out, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = c; c < columns && k < rows * columns; k += columns) sum += in[k];
  if (c < columns) out[c] = sum;
}

__global__ void scan(const float* in, float* out, int n) {
  __shared__ float part[2][1024];  // reads one array and writes the other, so that one barrier per step is enough
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int now = 0;
  part[0][t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2, now = 1 - now) {
    part[1 - now][t] = part[now][t] + (t >= d ? part[now][t - d] : 0.0f);
    __syncthreads();
  }
  if (i < n) out[i] = part[now][t];
}

__global__ void histogram(const int* bin, float* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(count + bin[i], 1.0f);
}

__global__ void embedding(const int* token, const float* table, float* out, int width) {
  const float* row = table + size_t(width) * token[blockIdx.x];
  float* copy = out + size_t(width) * blockIdx.x;
  for (int k = 0; k < width; k += blockDim.x)
    if (k + threadIdx.x < width) copy[k + threadIdx.x] = row[k + threadIdx.x];
}

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  int r, c;
  if (find_place(r, c, rows, columns)) out[r + rows * c] = in[c + columns * r];
}

__device__ float add_warp(float value) {
  for (int d = 1; d < 32; d *= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  return value;
}

__global__ void dot(const float* a, const float* b, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float product = 0.0f;
  if (i < n) product = a[i] * b[i];
  product = add_warp(product);
  if (threadIdx.x % 32 == 31) atomicAdd(sum, product);
}
