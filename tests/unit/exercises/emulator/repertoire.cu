// Right kernels as textbooks have them. None has a fault, and each gives the right values in every order of its threads.
#include <cuda_runtime.h>

#include <vector>

constexpr int N = 1000, BLOCK = 128;

__device__ int sum_of_warp(int value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffff, value, d);
  return value;
}
__global__ void sum_by_shuffles(const int* in, int* out, int n) {
  __shared__ int of_warps[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int of_warp = sum_of_warp(i < n ? in[i] : 0);
  if (lane == 0) of_warps[warp] = of_warp;
  __syncthreads();
  if (warp == 0) {
    const int sum = sum_of_warp(lane < blockDim.x / 32 ? of_warps[lane] : 0);
    if (lane == 0) atomicAdd(out, sum);
  }
}
__global__ void sum_by_strides(const int* in, int* out, int n) {
  __shared__ int s[BLOCK];
  int own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += in[i];
  s[threadIdx.x] = own;
  __syncthreads();
  for (int d = BLOCK / 2; d >= 32; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    for (int d = 16; d > 0; d /= 2) {
      const int value = threadIdx.x + d < 32 ? s[threadIdx.x + d] : 0;
      __syncwarp();
      s[threadIdx.x] += value;
      __syncwarp();
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
  }
}
__global__ void scan(const int* in, int* out, int n) {  // two buffers, one block
  extern __shared__ int buffers[];
  int now = 0;
  buffers[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    const int old = now * n + threadIdx.x;
    now = 1 - now;
    buffers[now * n + threadIdx.x] = threadIdx.x >= d ? buffers[old] + buffers[old - d] : buffers[old];
    __syncthreads();
  }
  out[threadIdx.x] = buffers[now * n + threadIdx.x];
}
__global__ void sum_of_last_block(const int* in, int* parts, int* out, unsigned* done, int n) {
  __shared__ bool is_last;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int of_warp = sum_of_warp(i < n ? in[i] : 0);
  if (threadIdx.x % 32 == 0) {
    parts[i / 32] = of_warp;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned k = 0; k < gridDim.x * blockDim.x / 32; ++k) sum += parts[k];
    *out = sum;
  }
}
__global__ void add_under_lock(int* lock, int* out) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *out += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
__global__ void vectors(const int4* in, int4* out, int n) {
  __shared__ int4 tile[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : make_int4(0, 0, 0, 0);
  __syncwarp();
  const int4 other = tile[31 - threadIdx.x];
  if (i < n) out[i] = make_int4(other.w, other.z, other.y, other.x);
}
static std::vector<int> values(N);
static int right = 0, wrong = 0;
static void expect(const char* name, int given, int wanted) {
  (given == wanted ? right : wrong)++;
  if (given != wanted) printf("%s: %d, not %d\n", name, given, wanted);
}

int main() {
  int *in, *out, *more, sum = 0, first = 0, host[N];
  for (int i = 0; i < N; ++i) values[i] = i * 7 % 23, sum += values[i];
  for (int i = 0; i < BLOCK; ++i) first += values[i];
  cudaMalloc(&in, N * sizeof(int)), cudaMalloc(&out, N * sizeof(int)), cudaMalloc(&more, N * sizeof(int));
  cudaMemcpy(in, values.data(), N * sizeof(int), cudaMemcpyHostToDevice);
  const int blocks = (N + BLOCK - 1) / BLOCK;
  auto clear = [&] { cudaMemset(out, 0, N * sizeof(int)), cudaMemset(more, 0, N * sizeof(int)); };
  auto fetch = [&] { cudaMemcpy(host, out, N * sizeof(int), cudaMemcpyDeviceToHost); };
  clear(), sum_by_shuffles<<<blocks, BLOCK>>>(in, out, N), fetch(), expect("shuffles", host[0], sum);
  clear(), sum_by_strides<<<3, BLOCK>>>(in, out, N), fetch(), expect("strides", host[0], sum);
  clear(), scan<<<1, BLOCK, 2 * BLOCK * sizeof(int)>>>(in, out, BLOCK), fetch(), expect("scan", host[BLOCK - 1], first);
  clear(), sum_of_last_block<<<blocks, BLOCK>>>(in, more, out, (unsigned*)more + 100, N), fetch(), expect("last", host[0], sum);
  clear(), add_under_lock<<<5, 64>>>(more, out), fetch(), expect("lock", host[0], 5);
  clear(), vectors<<<1, 32>>>((int4*)in, (int4*)out, 32), fetch(), expect("vectors", host[0], values[127]);
  printf("%d right, %d wrong, %s", right, wrong, cudaGetErrorString(cudaGetLastError()));
}
