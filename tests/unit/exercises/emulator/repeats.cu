// Kernels that are launched six times. Their first block makes so many accesses that the others are a sample. Block 1 is never in
// it, so it can count the runs in memory of the host without a fault.
#include <cstdio>
#include <cstring>
#define CASE(NAME) if (!strcmp(argv[1], #NAME))
enum { THREADS = 64, BLOCKS = 130, LAUNCHES = 6 };

int runs;
__device__ int factor = 1;
__device__ void begin(int* out) {
  volatile int* own = out + threadIdx.x;
  if (blockIdx.x == 0)
    for (int i = 0; i < 1 << 16; ++i) *own = *own;
  if (blockIdx.x == 1 && threadIdx.x == 0) ++runs;
}

__global__ void add(int* out, int number) {
  begin(out);
  atomicAdd(out + THREADS, number * factor);
}
__global__ void subtract(int* out, int number) {
  begin(out);
  atomicSub(out + THREADS, number * factor);
}
__global__ void print(int* out, int) {
  begin(out);
  if (blockIdx.x == 1 && threadIdx.x == 0) printf("once\n");
}
__global__ void read_clock(int* out, int) {
  begin(out);
  if (blockIdx.x == 1 && threadIdx.x == 0) out[THREADS] = clock64() > 0;
}
__global__ void read_texture(int* out, cudaTextureObject_t numbers) {
  begin(out);
  if (blockIdx.x == 1 && threadIdx.x == 0) out[THREADS] = tex1Dfetch<int>(numbers, 0);
}

void (*kernel_of_all)(int*, int) = add;

int main(int, char** argv) {
  int* out;
  const size_t bytes = (THREADS + 1) * sizeof(int);
  cudaMalloc(&out, bytes);
  cudaMemset(out, 0, bytes);
  cudaTextureObject_t numbers = 0;
  CASE(read_texture) {
    cudaResourceDesc memory{};
    memory.resType = cudaResourceTypeLinear;
    memory.res.linear = {out, cudaCreateChannelDesc<int>(), bytes};
    cudaTextureDesc how{};
    cudaCreateTextureObject(&numbers, &memory, &how, nullptr);
  }
  if (!strncmp(argv[1], "pointer", 7)) add<<<BLOCKS, THREADS>>>(out, 1), subtract<<<BLOCKS, THREADS>>>(out, 1);
  for (int launch = 0; launch < LAUNCHES; ++launch) {
    void (*kernel)(int*, int) = launch % 2 ? subtract : add;
    kernel_of_all = kernel;
    CASE(same) cudaMemset(out, 0, bytes), add<<<BLOCKS, THREADS>>>(out, 1);
    CASE(other_memory) add<<<BLOCKS, THREADS>>>(out, 1);
    CASE(other_argument) cudaMemset(out, 0, bytes), add<<<BLOCKS, THREADS>>>(out, launch);
    CASE(other_variable) {
      cudaMemset(out, 0, bytes);
      cudaMemcpyToSymbol(factor, &launch, sizeof launch);
      add<<<BLOCKS, THREADS>>>(out, 1);
    }
    CASE(pointer) cudaMemset(out, 0, bytes), kernel<<<BLOCKS, THREADS>>>(out, 1);
    CASE(pointer_of_all) cudaMemset(out, 0, bytes), kernel_of_all<<<BLOCKS, THREADS>>>(out, 1);
    CASE(print) print<<<BLOCKS, THREADS>>>(out, 1);
    CASE(read_clock) read_clock<<<BLOCKS, THREADS>>>(out, 1);
    CASE(read_texture) read_texture<<<BLOCKS, THREADS>>>(out, numbers);
  }
  int value;
  cudaMemcpy(&value, out + THREADS, sizeof value, cudaMemcpyDeviceToHost);
  printf("%d after %d runs\n", value, runs);
}
