// Verdicts beside those of faults.cu, and what kernels may do beside memory and barriers. The word on the command line is the case.
#include <cooperative_groups.h>
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
  if (wait) cooperative_groups::this_grid().sync();
  else __syncthreads();
  y[i] = x[n - 1 - i] + own;  // reads another block's
  if (wait) cooperative_groups::this_grid().sync();
  if (i == 31) y[i] += y[n - 1];
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
  CASE(grid) {
    int wait = number, *address = &wait;
    void* arguments[] = {&x, &y, address};
    cudaLaunchCooperativeKernel(turn, dim3(4), dim3(16), arguments, 0, 0);
  }
  CASE(square) {
    cudaMemset(x, 0, sizeof host);
    square<<<64, 64>>>(x, y, number);  // a large launch
  }
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g %s", host[31], cudaGetErrorString(cudaDeviceSynchronize()));
}
