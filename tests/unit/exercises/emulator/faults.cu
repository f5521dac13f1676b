// Every fault that the emulator reports as a kernel with it and one without. The name on the command line is the one to run.
#include <cuda_runtime.h>
#define CASE(NAME) if (!strcmp(argv[1], #NAME))

int of_host = 3;
const int CONSTANT = 3;

__global__ void no_guard(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i % 64] = x[i];  // reads past the end
}
__global__ void guard(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i % 64] = x[i];
}
__global__ void before(float* y, int n) {
  y[int(threadIdx.x) - 1] = 0;  // writes before the beginning
}
__global__ void dynamic(float* y, int n) {
  extern __shared__ float s[];
  s[threadIdx.x + n] = 1;  // writes past the dynamic memory
  y[threadIdx.x] = 0;
}
extern "C" char __data_start[];
__global__ void wild(int n) {
  __shared__ char s[32];
  if (n) s[__data_start - s] = 1;  // writes far away
  s[0] = 0;
}
__global__ void fixed_size(float* y, int n) {
  __shared__ float first[32];
  __shared__ float second[32];
  first[threadIdx.x + n] = 1;  // writes past an array
  second[threadIdx.x] = 2;
  __syncthreads();
  y[threadIdx.x] = first[31 - threadIdx.x] + second[threadIdx.x];
}
__global__ void globals(float* y, int n) {
  y[0] = fmaxf(CONSTANT, blockDim.x);
  if (n) y[0] = of_host;  // reads a variable of the host
}
__global__ void copy(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];  // reads what was given
}
__global__ void last_address(const char* x, float* y, int n) {
  y[0] = x[-n];  // reads before a null pointer
}
__global__ void pairs(const float* x, float* y, int shift) {
  const float2* p = (const float2*)(x + shift);
  y[threadIdx.x] = p[threadIdx.x].x + 1;
  float2 whole = p[threadIdx.x];  // reads two floats
  y[threadIdx.x] = whole.y;
}
__global__ void reverse(float* y, int barrier) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;  // writes a place
  if (barrier == 1) __syncwarp();
  if (barrier == 2) __syncthreads();
  if (barrier == 3) y[threadIdx.x] = __shfl_sync(~0u, 1.0f, 0);
  y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];  // reads another's place
}
__global__ void sum(const float* x, float* total, int atomic) {
  if (atomic) atomicAdd(total, x[threadIdx.x]);
  else *total += x[threadIdx.x];  // no atomic
}
__global__ void last_block(const float* x, float* parts, unsigned* done, float* total, int fence) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    if (fence) __threadfence();
    if (atomicAdd(done, 1) == gridDim.x - 1)
      for (unsigned i = 0; i < gridDim.x; ++i) *total += parts[i];  // reads other blocks' parts
  }
}
__global__ void early_return(float* y, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();  // not all come
  y[threadIdx.x] = 1;
}
__global__ void two_barriers(float* y, int n) {
  if (threadIdx.x < n) {
    __syncthreads();  // some here
    y[threadIdx.x] = 1;
  } else {
    __syncthreads();  // others here
    y[threadIdx.x] = 2;
  }
}
__global__ void warp_and_block(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = __shfl_sync(~0u, 1.0f, 0);  // waits for its warp
  __syncthreads();  // waits for its block
}
__global__ void masks(float* y, unsigned odd, unsigned even) {
  if (threadIdx.x % 2) y[threadIdx.x] = __shfl_sync(odd, 1.0f, 1);  // waits with one mask
  else y[threadIdx.x] = __shfl_sync(even, 2.0f, 0);  // waits with another
}
__global__ void two_shuffles(float* y, int n) {
  if (threadIdx.x < n)
    y[threadIdx.x] = __shfl_sync(~0u, 1.0f, 0);  // some shuffle here
  else
    y[threadIdx.x] = __shfl_sync(~0u, 2.0f, 0);  // others shuffle here
}
__global__ void unwritten(float* y, int n) {
  __shared__ float s[32];
  if (threadIdx.x < n) s[threadIdx.x] = 1;
  __syncthreads();
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];  // reads what nobody wrote
}

int main(int argc, char** argv) {
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  float *x, *y, host[64] = {};
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMalloc(&y, 64 * sizeof(float));
  cudaMemset(x, 0, 64 * sizeof(float));
  cudaMemset(y, 0, 64 * sizeof(float));
  CASE(no_guard) no_guard<<<3, 32>>>(x, y, 64);
  CASE(guard) guard<<<3, 32>>>(x, y, 64);
  CASE(before) before<<<1, 32>>>(y + number, 0);
  CASE(dynamic) dynamic<<<1, 32, 32 * sizeof(float)>>>(y, number);
  CASE(wild) wild<<<1, 1>>>(number);
  CASE(fixed_size) fixed_size<<<1, 32>>>(y, number);
  CASE(globals) globals<<<1, 1>>>(y, number);
  CASE(freed) {
    if (number) cudaFree(x);
    copy<<<1, 32>>>(x, y);
  }
  CASE(null) copy<<<1, 32>>>(number ? nullptr : x, y);
  CASE(last_address) last_address<<<1, 1>>>(number ? nullptr : (const char*)x, y, number);
  CASE(host) copy<<<1, 32>>>(number ? host : x, y);
  CASE(far) copy<<<1, 32>>>(x + number * (1 << 24), y);
  CASE(pairs) pairs<<<1, 16>>>(x, y, number);
  CASE(warps) reverse<<<1, 64>>>(y, number);
  CASE(lanes) reverse<<<1, 32>>>(y, number);
  CASE(blocks) sum<<<2, 1>>>(x, y, number);
  CASE(one_block) sum<<<1, 2>>>(x, y, number);
  CASE(last_block) last_block<<<4, 32>>>(x, y, (unsigned*)y + 32, y + 33, number);
  CASE(early_return) early_return<<<1, 64>>>(y, number);
  CASE(two_barriers) two_barriers<<<1, 64>>>(y, number);
  CASE(warp_and_block) warp_and_block<<<1, 32>>>(y, number);
  CASE(masks) masks<<<1, 32>>>(y, (unsigned)strtoul(argv[2], nullptr, 0), (unsigned)strtoul(argv[3], nullptr, 0));
  CASE(two_shuffles) two_shuffles<<<1, 32>>>(y, number);
  CASE(unwritten) unwritten<<<2, 32>>>(y, number);
  printf("%s", cudaGetErrorString(cudaDeviceSynchronize()));
}
