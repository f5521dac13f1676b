// Verdicts beside those of faults.cu, and what kernels may do beside memory and barriers. The word on the command line is the case.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <atomic>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda_runtime.h>
#define CASE(NAME) if (!strcmp(argv[1], #NAME))

__global__ void meet_three_times(float* y, int n) {
  for (int i = 0; i < (threadIdx.x < n ? 3 : 2); ++i) {
    y[threadIdx.x] = i;
    __syncthreads();  // not all come three times
  }
}
__global__ void warp_sum(float* y, int lanes) {
  if (threadIdx.x >= lanes) return;
  float sum = y[threadIdx.x];
  const unsigned mask = __activemask();
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(mask, sum, offset);  // reads absent lanes
  y[threadIdx.x] = sum;
}
__global__ void half_warp_sum(float* y) {
  if (threadIdx.x >= 16) return;
  float sum = y[threadIdx.x];
  for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffff, sum, offset);
  y[threadIdx.x] = sum;
}
__global__ void copy(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];  // reads what was given
}
__global__ void two_faults(float* y, int n) {
  if (threadIdx.x == 0) y[n] = 1;      // one line
  if (threadIdx.x == 1) y[n + 8] = 2;  // another line
}
__global__ void spin(int* flag) {
  while (atomicAdd(flag, 0) == 0) {  // for ever
  }
}
__global__ void lists(float* y) {
  float* own = (float*)malloc(4 * sizeof(float));
  int* number = new int(int(threadIdx.x));
  own[3] = *number;
  y[blockIdx.x * 32 + threadIdx.x] = own[3];
  free(own);
  delete number;
}
__global__ void child(float* y, int first) { y[first + threadIdx.x] = first + int(threadIdx.x); }
__global__ void parent(float* y) {
  if (threadIdx.x < 2) child<<<1, 16>>>(y, 16 * int(threadIdx.x));
}
template <class T> __global__ void typed(T* y) { y[threadIdx.x] = T(1); }
template <class T> void start(float* y) { typed<T><<<1, 8>>>((T*)y); }
__global__ void square(const float* x, float* y, int n) {
  __shared__ float row[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  row[threadIdx.x] = x[i];  // a row
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += x[(i + k) % 4096];  // a loop
  __syncthreads();
  y[i] = sum + row[63 - threadIdx.x];
}
__global__ void turn(float* x, float* y, int wait) {
  __shared__ float own;
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  if (threadIdx.x == 0) own = float(blockIdx.x);
  x[i] = i;
  if (wait) cooperative_groups::this_grid().sync();  // waits for the grid
  else __syncthreads();
  y[i] = x[n - 1 - i] + own;  // reads another block's
  if (wait) cooperative_groups::this_grid().sync();
  if (i == 31) y[i] += y[n - 1];
}
__device__ void add_double(double* place, double value) {  // the CUDA programming guide's own
  unsigned long long* bits = (unsigned long long*)place;
  unsigned long long old = *bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __double_as_longlong(value + __longlong_as_double(expected)));
  } while (expected != old);
}
__global__ void add_doubles(double* sum) { add_double(sum, 1.0); }
__global__ void lock(float* y, int* taken, int fences) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(taken, 0, 1) != 0) {
  }
  if (fences) __threadfence();
  y[31] += 1;  // holds the lock
  if (fences) __threadfence();
  atomicExch(taken, 0);
}
__global__ void late_change(unsigned long long* largest) {  // a turn may end between a read and its atomicCAS
  for (int i = 0; i < 3000; ++i) {
    unsigned long long old = *(volatile unsigned long long*)largest, seen;
    while ((seen = atomicCAS(largest, old, old + threadIdx.x % 2)) != old) old = seen;
  }
}
template <class Lock>
__global__ void lock_object(float* y, Lock* lock, int releases) {
  if (threadIdx.x % 32) return;
  while (lock->exchange(1, std::memory_order_acquire)) {
  }
  y[31] += 1;  // holds the object
  lock->store(0, releases ? std::memory_order_release : std::memory_order_relaxed);
}
template <class T>
__global__ void take_zeros(T first, const float* pointer, float* y, double second, int third) {
  if (!pointer) y[31] = float(first + second + third + 1);
}
__global__ void pair(float* y) {  // of lanes with even numbers
  if (threadIdx.x % 2) return;
  auto pair = cooperative_groups::tiled_partition(cooperative_groups::coalesced_threads(), 2);
  y[threadIdx.x + 1] = pair.shfl(float(threadIdx.x), 0) + pair.meta_group_rank() + pair.meta_group_size();
}
__global__ void hand_over(float* y, int* ready, int fence) {
  if (threadIdx.x == 0) {
    y[31] = 5;
    if (fence) __threadfence();
    atomicExch(ready, 1);
  }
  if (threadIdx.x == 32) {
    while (atomicAdd(ready, 0) == 0) {
    }
    y[0] = y[31];  // takes it over
  }
}
__global__ void early_reader(float* y, int barrier) {
  atomicAdd(y, 1.0f);
  if (barrier) __syncthreads();
  if (threadIdx.x == 40) y[31] = y[0];  // reads a sum
}
__constant__ float weight;
__global__ void write_constant(float* y) {
  const_cast<float&>(weight) = y[0];  // writes the constant
}
__global__ void use_heap(float* y) {
  volatile float* numbers = (float*)malloc(3 * sizeof(float));
  numbers[3] = y[0];  // past its end
}
__global__ void copy_async(const float* x, float* y, int waits) {
  __shared__ float tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], sizeof(float));  // in flight
  __pipeline_commit();
  __pipeline_wait_prior(waits ? 0 : 1);
  __syncwarp();
  y[threadIdx.x] = tile[31 - threadIdx.x];  // reads the copy
}
__global__ void wait_for_last(float* x, float* y, int* flag, int fences) {  // the first block waits for the last one
  __shared__ float row[32];
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
    x[0] = 5;
    if (fences) __threadfence();
    atomicExch(flag, 1);
  }
  if (blockIdx.x) return;
  row[threadIdx.x] = 1;
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
  y[threadIdx.x] = x[0] + row[31 - threadIdx.x];  // takes from the last block
}
__device__ unsigned arrived, phase;
__device__ void meet_by_counting(int fences) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned old = atomicAdd(&phase, 0);
    if (fences) __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      atomicExch(&arrived, 0);
      if (fences) __threadfence();
      atomicAdd(&phase, 1);
    } else {
      while (atomicAdd(&phase, 0) == old) {
      }
    }
  }
  __syncthreads();
}
__global__ void meet(float* x, float* y, int fences) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  for (int step = 0; step < 3; ++step) {
    x[i] = i + step;
    meet_by_counting(fences);
    y[i] = x[n - 1 - i];  // reads what another block counted
    meet_by_counting(fences);
  }
  if (!fences) return;
  cooperative_groups::this_grid().sync();
  x[i] = y[n - 1 - i];
}
template <class Flag, bool fence_before, bool fence_after>
__global__ void chain(float* y, Flag* flags) {  // each block waits for the one before
  if (threadIdx.x) return;
  if (blockIdx.x) {
    while (flags[blockIdx.x - 1] == 0) {
    }
    if (fence_after) __threadfence();
  }
  y[blockIdx.x] = blockIdx.x ? y[blockIdx.x - 1] + 1 : 1;  // takes a sum
  if (fence_before) __threadfence();
  flags[blockIdx.x] = 1;  // says that it has the sum
}
__global__ void chain_of_words(volatile unsigned long long* words) {  // a word holds the flag and the sum
  unsigned long long before = 1ull << 32;
  if (blockIdx.x)
    while (!(before = words[blockIdx.x - 1])) {
    }
  words[blockIdx.x] = before + 1;
}
__global__ void hand_over_in_block(float* y, volatile int* ready) {
  volatile __shared__ int own[64];
  own[threadIdx.x] = 1;
  if (threadIdx.x == 1) y[1] = own[0];  // reads what the first thread wrote
  if (threadIdx.x == 0) {
    y[31] = 5;
    __threadfence();
    *ready = 1;
  }
  if (threadIdx.x == 32) {
    while (*ready == 0) {
    }
    __threadfence();
    y[0] = y[31];
  }
}
__global__ void meet_in_part(float* y) {  // 33 arrivals, of which 32 come
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, 33);
  __syncwarp();
  barrier.arrive_and_wait();  // one is missing
  y[threadIdx.x] = 1;
}

int main(int argc, char** argv) {
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  float *x, *y, host[4096] = {};
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemset(y, 0, sizeof host);
  CASE(meet_three_times) meet_three_times<<<1, 4>>>(y, number);
  CASE(warp_sum) warp_sum<<<1, 32>>>(y, number);
  CASE(half_warp_sum) half_warp_sum<<<1, 32>>>(y);
  CASE(unwritten) {
    cudaMemset(x, 0xff, number * sizeof(float));
    copy<<<1, 32>>>(x, y);
  }
  CASE(two_faults) two_faults<<<1, 32>>>(y, 4096);
  CASE(spin) spin<<<1, number>>>((int*)y);
  CASE(block) copy<<<1, number>>>(y, y);  // too large
  CASE(shared) copy<<<1, 32, 1 << 20>>>(y, y);  // too much
  CASE(lists) lists<<<2, 32>>>(y);
  CASE(parent) parent<<<1, 32>>>(y);
  CASE(typed) {
    start<float>(y);
    start<int>(y);
    void (*pointer)(const float*, float*) = copy;
    pointer<<<1, 32>>>(y, y + 32);
  }
  CASE(add_doubles) add_doubles<<<2, 64>>>((double*)y);
  CASE(lock) lock<<<1, 128>>>(y, (int*)(y + 64), number);
  CASE(late_change) late_change<<<1, 64>>>((unsigned long long*)y);
  CASE(lock_object) lock_object<<<1, 128>>>(y, (cuda::atomic<int>*)(y + 64), number);
  CASE(lock_std) lock_object<<<1, 128>>>(y, (std::atomic<int>*)(y + 64), number);
  CASE(take_zeros) take_zeros<int><<<1, 1>>>(0, 0, y, 0, int(0));
  CASE(occupancy) {
    int blocks, threads;
    cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, late_change, 0, 10000000);
    take_zeros<int><<<1, 1>>>(threads - 1, 0, y, 0, 0);
  }
  CASE(pair) pair<<<1, 32>>>(y);
  CASE(hand_over) hand_over<<<1, 64>>>(y, (int*)(y + 64), number);
  CASE(wait_for_last) wait_for_last<<<4, 32>>>(x, y, (int*)(y + 64), number);
  CASE(meet) {
    void* arguments[] = {&x, &y, (void*)&number};
    cudaLaunchCooperativeKernel((void*)meet, 4, 16, arguments, 0, 0);
  }
  CASE(plain_meet) meet<<<4, 16>>>(x, y, 0);
  CASE(chain) chain<volatile int, true, true><<<4, 32>>>(y, (int*)(y + 64));
  CASE(chain_without_fence_before) chain<volatile int, false, true><<<4, 32>>>(y, (int*)(y + 64));
  CASE(chain_without_fence_after) chain<volatile int, true, false><<<4, 32>>>(y, (int*)(y + 64));
  CASE(chain_of_plain_flags) chain<int, true, true><<<4, 32>>>(y, (int*)(y + 64));
  CASE(chain_of_words) chain_of_words<<<4, 1>>>((unsigned long long*)y);
  CASE(hand_over_in_block) hand_over_in_block<<<1, 64>>>(y, (int*)(y + 64));
  CASE(early_reader) early_reader<<<1, 64>>>(y, number);
  CASE(grid) {
    int wait = number, *address = &wait;
    void* arguments[] = {&x, &y, address};
    cudaLaunchCooperativeKernel(turn, dim3(4), dim3(16), arguments, 0, 0);
  }
  CASE(plain_grid) turn<<<4, 16>>>(x, y, 1);
  CASE(write_constant) write_constant<<<1, 1>>>(y);
  CASE(use_heap) use_heap<<<1, 1>>>(y);
  CASE(copy_async) copy_async<<<1, 32>>>(y, y + 32, number);
  CASE(meet_in_part) meet_in_part<<<1, 32>>>(y);
  CASE(free_twice) {
    cudaFree(x);
    cudaFree(x);  // again
  }
  CASE(long_copy) cudaMemcpy(x, y, sizeof host + 4, cudaMemcpyDeviceToDevice);  // too long
  CASE(host_read) host[0] = y[0];  // by the host
  CASE(square) {
    cudaMemset(x, 0, sizeof host);
    square<<<64, 64>>>(x, y, number);  // a large launch
  }
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g %s", host[31], cudaGetErrorString(cudaDeviceSynchronize()));
}
