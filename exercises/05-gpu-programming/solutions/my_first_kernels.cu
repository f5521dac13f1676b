#include <cuda_runtime.h>

__global__ void map(const float* in, float* out) {
  int i = threadIdx.x;
  out[i] = in[i] + 10.0f;
}

__global__ void guard(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 10.0f;
}

__global__ void two_dimensions(const float* in, float* out, int rows, int columns) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows && c < columns) out[r * columns + c] = in[r * columns + c] + 10.0f;
}

__global__ void broadcast(const float* a, const float* b, float* out, int rows, int columns) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows && c < columns) out[r * columns + c] = a[r] + b[c];
}

__global__ void halo(const float* in, float* out, int n) {
  __shared__ float tile[1024 + 2];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tile[t + 1] = i < n ? in[i] : 0.0f;
  if (t == 0) tile[0] = i > 0 ? in[i - 1] : 0.0f;
  if (t == blockDim.x - 1) tile[t + 2] = i + 1 < n ? in[i + 1] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = tile[t] + tile[t + 1] + tile[t + 2];
}

__global__ void pooling(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i >= n) return;
  float largest = in[4 * i];
  for (int k = 4 * i + 1; k < min(4 * i + 4, n); ++k) largest = fmaxf(largest, in[k]);
  out[i] = largest;
}

__global__ void axis_sum(const float* in, float* out, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0.0f;
  for (int r = 0; r < rows; ++r) sum += in[r * columns + c];
  out[c] = sum;
}

__global__ void scan(const float* in, float* out, int n) {
  __shared__ float part[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    float before = t >= d ? part[t - d] : 0.0f;
    __syncthreads();  // all have read
    part[t] += before;
    __syncthreads();  // all have written
  }
  if (i < n) out[i] = part[t];
}

__global__ void histogram(const int* bin, float* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&count[bin[i]], 1.0f);
}

__global__ void embedding(const int* token, const float* table, float* out, int width) {
  int t = blockIdx.x;
  for (int k = threadIdx.x; k < width; k += blockDim.x) out[t * width + k] = table[token[t] * width + k];
}

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows && c < columns) out[c * rows + r] = in[r * columns + c];
}

__device__ float warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffffu, value, d);
  return value;
}

__global__ void dot(const float* a, const float* b, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float product = i < n ? a[i] * b[i] : 0.0f;
  product = warp_sum(product);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, product);
}
