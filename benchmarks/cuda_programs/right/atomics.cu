// variants: 5
#if VARIANT == 1
__device__ double add(double* address, double value) {  // CUDA C++ Programming Guide, "Atomic Functions"
  unsigned long long* bits = (unsigned long long*)address;
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__global__ void run(double* out) { add(out, 1.0); }
#elif VARIANT == 2
__global__ void run(double* out) {  // the largest value, of floats that are not negative
  __shared__ int largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  atomicMax(&largest, __float_as_int(float(blockIdx.x * blockDim.x + threadIdx.x + 1)));
  __syncthreads();
  if (threadIdx.x == 0) atomicMax((unsigned long long*)out, __double_as_longlong(__int_as_float(largest)));
}
#elif VARIANT == 3
__global__ void run(double* out) {  // a thread's turn may end between its read and its atomicCAS
  unsigned long long* bits = (unsigned long long*)out;
  for (int i = 0; i < 3000; ++i) {
    unsigned long long old = *(volatile unsigned long long*)bits, seen;
    while ((seen = atomicCAS(bits, old, __double_as_longlong(fmax(__longlong_as_double(old), double(blockIdx.x * blockDim.x + threadIdx.x + 1))))) != old)
      old = seen;
  }
}
#elif VARIANT == 4
#include <cuda/atomic>
__device__ cuda::atomic<int, cuda::thread_scope_device> lock;
__global__ void run(double* out) {  // a lock
  for (bool waits = true; waits;) {
    if (lock.exchange(1, cuda::memory_order_acquire)) continue;
    *out += 1;
    lock.store(0, cuda::memory_order_release);
    waits = false;
  }
}
#else
__device__ int places = 0;
__global__ void run(double* out) {  // one atomic function for all lanes of a warp
  unsigned active = __activemask();
  int leader = __ffs(active) - 1, lane = threadIdx.x % 32, first;
  if (lane == leader) first = atomicAdd(&places, __popc(active));
  first = __shfl_sync(active, first, leader);
  int place = first + __popc(active & ((1u << lane) - 1));
  if (place == gridDim.x * blockDim.x - 1) *out = place + 1;
}
#endif

int main() {
  double* out;
  cudaMallocManaged(&out, sizeof(double));
  *out = 0;
  run<<<4, 64>>>(out);
  cudaDeviceSynchronize();
  return *out != 256;
}
