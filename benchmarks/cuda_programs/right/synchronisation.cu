// variants: 6
#include <cuda/atomic>
__device__ int turn = 0, served = 0, stage[16];
__device__ volatile int prefixes[16];

__global__ void run(int* out) {
#if VARIANT == 1  // a lock with tickets
  if (threadIdx.x == 0) {
    int ticket = atomicAdd(&turn, 1);
    while (atomicAdd(&served, 0) != ticket) {
    }
    __threadfence();
    *out = *out + 1;
    __threadfence();
    atomicAdd(&served, 1);
  }
#elif VARIANT == 2  // each block waits for the one that began before it
  if (threadIdx.x == 0) {
    int before = 0, number = atomicAdd(&turn, 1);  // the number in which blocks begin
    if (number > 0) {
      while (atomicAdd(&stage[number - 1], 0) == 0) {
      }
      __threadfence();
      before = prefixes[number - 1];
    }
    prefixes[number] = before + 1;
    __threadfence();
    atomicExch(&stage[number], 1);
    if (number == gridDim.x - 1) *out = before + 1;
  }
#elif VARIANT == 3  // a warp hands over to another warp of its block
  __shared__ int flag, value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    value = 1;
    __threadfence_block();
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    __threadfence_block();
    atomicAdd(out, value);
  }
#elif VARIANT == 4  // barriers of PTX with numbers, for a part of the block
  __shared__ int value[64];
  value[threadIdx.x] = 1;
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");
    if (threadIdx.x == 0) atomicAdd(out, value[63]);
  } else {
    asm volatile("bar.arrive 1, 64;");
  }
#elif VARIANT == 5  // atomics of the standard library
  cuda::atomic_ref<int, cuda::thread_scope_device> counter(*out);
  if (threadIdx.x == 0) counter.fetch_add(1, cuda::std::memory_order_relaxed);
#else  // a table of keys: an insertion by atomicCAS
  int key = threadIdx.x % 8 + 1, place = key % 16;
  while (true) {
    int old = atomicCAS(&stage[place], 0, key);
    if (old == 0) atomicAdd(out, 1);
    if (old == 0 || old == key) break;
    place = (place + 1) % 16;
  }
#endif
}

int main() {
  int* out;
  cudaMallocManaged(&out, sizeof(int));
  *out = 0;
  run<<<8, 64>>>(out);
  cudaDeviceSynchronize();
  return *out != 8;
}
