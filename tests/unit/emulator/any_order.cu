// A kernel that carries out what it is given: for each step and thread an operation (see test_races.py) and a place.
#include <cuda_runtime.h>

__global__ void carry_out(const char* operations, const char* places, int steps, int* memory, bool in_shared) {
  __shared__ int shared[4];
  if (in_shared) {
    if (threadIdx.x < 4) shared[threadIdx.x] = 0;
    __syncthreads();
  }
  volatile int* place = in_shared ? shared : memory;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  int sum = 0;
  for (int step = 0; step < steps; ++step) {
    const char operation = operations[step * threads + thread];
    const int i = places[step * threads + thread] - '0';
    if (operation == 'r') sum += place[i];
    if (operation == 'w') place[i] = thread;
    if (operation == 'a') atomicAdd((int*)place + i, 1);
    if (operation == 'W') __syncwarp();
    if (operation == 'B') __syncthreads();
  }
  if (sum < 0) memory[8] = sum;
}

int main(int, char** words) {
  const int blocks = atoi(words[1]), threads = atoi(words[2]), steps = atoi(words[3]), bytes = blocks * threads * steps;
  char *operations, *places;
  int* memory;
  cudaMalloc(&operations, bytes), cudaMalloc(&places, bytes), cudaMalloc(&memory, 64);
  cudaMemcpy(operations, words[5], bytes, cudaMemcpyHostToDevice), cudaMemcpy(places, words[6], bytes, cudaMemcpyHostToDevice);
  cudaMemset(memory, 0, 64);
  carry_out<<<blocks, threads>>>(operations, places, steps, memory, atoi(words[4]));
}
