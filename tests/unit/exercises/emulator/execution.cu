// Values that device functions give, launches that CUDA refuses, and programs that do not end well.
#include <cuda_fp16.h>
#include <unistd.h>
#include <vector>
#define CASE(NAME) if (!strcmp(argv[1], #NAME))

__global__ void exchange(int* out) {
  const int lane = threadIdx.x;
  int* mine = out + 12 * lane;
  mine[0] = __shfl_sync(~0u, lane * 10, 5);
  mine[1] = __shfl_down_sync(~0u, lane, 3);
  mine[2] = __shfl_up_sync(~0u, lane, 3);
  mine[3] = __shfl_xor_sync(~0u, lane, 1);
  mine[4] = __shfl_sync(~0u, lane, 9, 8);
  mine[5] = __shfl_down_sync(~0u, lane, 3, 8);
  mine[6] = int(__ballot_sync(~0u, lane % 2));
  mine[7] = __any_sync(~0u, lane == 31);
  mine[8] = __all_sync(~0u, lane < 31);
  mine[9] = int(__shfl_down_sync(~0u, 1.5 * lane, 1) * 10);
  mine[10] = lane % 2 ? __shfl_sync(0xaaaaaaaa, lane, 7) : __shfl_sync(0x55555555, lane, 6);
  mine[11] = __syncthreads_count(lane < 7) + 100 * __syncthreads_and(lane < 7) + 1000 * __syncthreads_or(lane < 7);
}
__global__ void atomics(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, 1);
  atomicMax(out + 1, i);
  atomicMin(out + 2, -i);
  atomicOr((unsigned*)out + 3, 1u << i % 32);
  atomicAdd((float*)out + 4, 0.5f);
  for (int old = atomicAdd(out + 5, 0), seen; (seen = atomicCAS(out + 5, old, old + i)) != old;) old = seen;
  atomicInc((unsigned*)out + 6, 9u);
  atomicExch(out + 7, 3);
}
__global__ void sum(const float* x, float* total, bool barrier) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  for (int d = 128; d > 0; d /= 2) {
    if (barrier) __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
  }
  if (threadIdx.x == 0) *total = s[0];
}
__global__ void wait_for_flag(int* flag) {
  if (threadIdx.x == 0)
    while (atomicAdd(flag, 0) != 33) {}  // waits for another warp
  if (threadIdx.x == 33) atomicExch(flag, 33);
}
__global__ void spin(int* out) { while (true) out[threadIdx.x] += 1; }  // never ends
__global__ void whirl(int* out) { for (volatile int i = 0;; i = i + 1); }
__global__ void nothing() {}
__global__ void shared_only() { extern __shared__ float s[]; s[threadIdx.x] = 0; }
__global__ void divide(int* out) { out[1] = 7 / out[0]; }  // divides
__device__ int deep(int n) { volatile int room[100]; room[n % 100] = n; return n < 0 ? 0 : deep(n + 1) + room[1]; }  // calls itself
__global__ void recurse(int* out) { *out = deep(*out); }
__global__ void chatter() { for (int i = 0; i < 1 << 26; ++i) printf("thread %d says sixteen characters\n", threadIdx.x); }
__global__ void failing(int* out) { assert(*out == 1); }

int main(int argc, char** argv) {
  const unsigned number = argc > 2 ? unsigned(strtoul(argv[2], nullptr, 0)) : 0;
  int *out, host[32 * 12] = {};
  float *x, *total, values[256], result;
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&x, sizeof values);
  cudaMalloc(&total, sizeof(float));
  for (int i = 0; i < 256; ++i) values[i] = float(i % 7);
  cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof host);
  CASE(exchange) exchange<<<1, 32>>>(out);
  CASE(atomics) atomics<<<2, 64>>>(out);
  CASE(wait_for_flag) wait_for_flag<<<1, 64>>>(out);
  CASE(spin) spin<<<1, 64>>>(out);
  CASE(whirl) whirl<<<1, 64>>>(out);
  CASE(divide) divide<<<1, 1>>>(out);
  CASE(recurse) recurse<<<1, 64>>>(out);
  CASE(chatter) chatter<<<1, 1>>>();
  CASE(failing) failing<<<1, 1>>>(out);
  CASE(threads) nothing<<<1, number>>>();
  CASE(blocks) nothing<<<number, 1024>>>();  // as many blocks as asked for
  CASE(dynamic) shared_only<<<1, 1, number>>>();
  CASE(big) { void* p; cudaMalloc(&p, size_t(8) << 30); }
  CASE(twice) { cudaFree(out); cudaFree(out); }
  CASE(copies) cudaMemcpy(out, host, sizeof host + number, cudaMemcpyHostToDevice);
  CASE(set) cudaMemset(out, 0, sizeof host + 1);
  CASE(crash) { volatile int* nowhere = nullptr; *nowhere = 1; }  // the host's own
  CASE(quiet) _exit(0);
  CASE(halves) {
    for (int i = 2; i < argc; ++i) {
      const half value = half(atof(argv[i]));
      printf("%u %.9g ", value.bits, __half2float(value + value));
    }
    return 0;
  }
  CASE(sum) {
    sum<<<1, 256>>>(x, total, number);
    cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost);
    printf("%g\n", result);
    return 0;
  }
  const cudaError_t error = cudaGetLastError();
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; argc == 2 && i < 32 * 12; ++i) printf("%d ", host[i]);
  printf("%s", cudaGetErrorString(error));
}
