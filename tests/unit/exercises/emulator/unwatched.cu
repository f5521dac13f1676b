// Kernels whose block 0 makes so many accesses that blocks 1 to 63 are not watched. Each ends with what those blocks do.
#include <cstdio>
#include <vector>
#define CASE(NAME) if (!strcmp(argv[1], #NAME))

// A program may have operators of its own.
void* operator new(size_t bytes) { return malloc(bytes); }
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, size_t) noexcept { free(pointer); }

struct Shape {
  float size;
  __device__ explicit Shape(float given) : size(given) {}
  __device__ virtual float area() const { return size * size; }
};
enum { THREADS = 64, BLOCKS = 130 };
__device__ int lock, count;
__constant__ float weights[4];
__device__ float twice(float x) { return 2 * x; }
__device__ float half_of(float x) { return x / 2; }
__device__ float (*const functions[])(float) = {twice, half_of};
template <class T> __device__ T choose(T x, int how) {
  switch (how) {
    case 0: return x + weights[1];
    case 1: return x * 3;
    case 2: return x - 5;
    case 3: return functions[int(x) % 2](x);
    case 4: return T(sqrt(double(x)));
    default: return T(7);
  }
}
__device__ void make_accesses(volatile float* out) {
  if (blockIdx.x == 0)
    for (int i = 0; i < 1 << 16; ++i) out[threadIdx.x] = out[threadIdx.x] + 1;
}

__global__ void values(float* out) {
  __shared__ float tile[THREADS];
  extern __shared__ float row[];
  make_accesses(out);
  const int i = threadIdx.x, own = blockIdx.x * THREADS + i;
  tile[i] = float(own);
  __syncthreads();
  row[i] = choose(tile[(i + 1) % THREADS], own % 6);
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < THREADS; ++k) sum += row[k] * weights[k % 4] - tile[k];
  const Shape shape(sum);
  out[own] = shape.area() + __shfl_xor_sync(~0u, row[i], 1) + __popc(__ballot_sync(~0u, row[i] > 3));  // a store
  atomicAdd(&count, 1);
}
__global__ void lock_and_flag(float* out, int* flags) {
  make_accesses(out);
  if (threadIdx.x == 0)
    while (*(volatile int*)(flags + blockIdx.x) == 0) {}
  if (threadIdx.x == 40) *(volatile int*)(flags + blockIdx.x) = 1;
  for (bool done = false; !done;)
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int*)&count = *(volatile int*)&count + 1;
      __threadfence();
      atomicExch(&lock, 0), done = true;
    }
}
__global__ void long_doubles(float* out) {
  make_accesses(out);
  long double i = 0, a = threadIdx.x, b = 1, c = 2, limit = blockIdx.x < 4 ? 9999.0L + threadIdx.x : 0;  // all are in registers
  while (i < limit) i += 1, a = a * 0.5L + b, b = b * 0.25L + c, c = c * 0.5L + a * 0.125L;
  out[blockIdx.x * THREADS + threadIdx.x] = float(a + b + c);
}
__global__ void endless(float* out) {
  make_accesses(out);
  if (blockIdx.x == 3)
    while (out[threadIdx.x + 999] != -1) out[threadIdx.x + 999] += 2;  // waits
}
__global__ void null(float* out, float* nowhere) {
  make_accesses(out);
  if (blockIdx.x == 3) nowhere[threadIdx.x] = 1;  // writes
}
__global__ void part(float* out) {
  make_accesses(out);
  if (blockIdx.x == 3 && threadIdx.x < 40) __syncthreads();  // not all
}

int main(int, char** argv) {
  const float host[] = {1, 2, 0.5f, 3};
  std::vector<float> out(THREADS * BLOCKS);
  const size_t bytes = out.size() * sizeof(float);
  float* device;
  int* flags;
  cudaMalloc(&device, bytes);
  cudaMalloc(&flags, BLOCKS * sizeof(int));
  cudaMemset(device, 0, bytes);
  cudaMemset(flags, 0, BLOCKS * sizeof(int));
  cudaMemcpyToSymbol(weights, host, sizeof host);
  CASE(values) values<<<BLOCKS, THREADS, THREADS * sizeof(float)>>>(device);
  CASE(lock_and_flag) lock_and_flag<<<BLOCKS, THREADS>>>(device, flags);
  CASE(long_doubles) long_doubles<<<BLOCKS, THREADS>>>(device);
  CASE(endless) endless<<<BLOCKS, THREADS>>>(device);
  CASE(null) null<<<BLOCKS, THREADS>>>(device, nullptr);
  CASE(part) part<<<BLOCKS, THREADS>>>(device);
  int total;
  cudaMemcpyFromSymbol(&total, count, sizeof total);
  cudaMemcpy(out.data(), device, bytes, cudaMemcpyDeviceToHost);
  printf("%d", total);
  for (size_t i = THREADS; i < out.size(); ++i) printf(" %.9g", out[i]);
}
