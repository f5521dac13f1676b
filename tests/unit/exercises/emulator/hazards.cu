// Programs with streams, right and wrong ones. The first argument says which.
#include <cstdio>
#include <cstring>

constexpr int COUNT = 64;
__device__ int total;

__global__ void store(int* values) { values[threadIdx.x] = threadIdx.x; }                 // stores
__global__ void load(const int* values, int* sums) { sums[threadIdx.x] += values[threadIdx.x]; }  // loads
__global__ void count(int* values) {
  atomicAdd(values, 1);
  atomicAdd(&total, 1);
}

int main(int, char** arguments) {
  const auto is = [name = arguments[1]](const char* other) { return strcmp(name, other) == 0; };
  cudaStream_t one, two, free_one;
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreate(&event);
  int *values, *sums, *others, *pinned, *managed;
  cudaMalloc(&values, COUNT * sizeof(int));
  cudaMalloc(&sums, COUNT * sizeof(int));
  cudaMalloc(&others, COUNT * sizeof(int));
  cudaMallocHost(&pinned, COUNT * sizeof(int));
  cudaMallocManaged(&managed, COUNT * sizeof(int));
  cudaMemset(values, 0, COUNT * sizeof(int));
  cudaMemset(sums, 0, COUNT * sizeof(int));
  cudaMemset(others, 0, COUNT * sizeof(int));
  cudaDeviceSynchronize();
  const size_t bytes = COUNT * sizeof(int), half = bytes / 2;
  long printed = 0;

  // wrong
  if (is("no-event")) {
    store<<<1, COUNT, 0, one>>>(values);
    load<<<1, COUNT, 0, two>>>(values, sums);
  } else if (is("early-event")) {
    cudaEventRecord(event, one);
    store<<<1, COUNT, 0, one>>>(values);
    cudaStreamWaitEvent(two, event);
    load<<<1, COUNT, 0, two>>>(values, sums);
  } else if (is("write-after-read")) {
    load<<<1, COUNT, 0, one>>>(values, sums);
    store<<<1, COUNT, 0, two>>>(values);
  } else if (is("non-blocking")) {
    cudaMemset(values, 1, bytes);  // fills
    load<<<1, COUNT, 0, free_one>>>(values, sums);
  } else if (is("copy-after-kernel")) {
    store<<<1, COUNT, 0, one>>>(values);
    cudaMemcpyAsync(pinned, values, bytes, cudaMemcpyDeviceToHost, two);  // copies home
  } else if (is("copy-after-copy")) {
    cudaMemcpyAsync(values, pinned, bytes, cudaMemcpyHostToDevice, one);  // copies there
    cudaMemcpyAsync(sums, values, bytes, cudaMemcpyDeviceToDevice, two);  // copies on
  } else if (is("host-after-copy")) {
    store<<<1, COUNT, 0, one>>>(values);
    cudaMemcpyAsync(pinned, values, bytes, cudaMemcpyDeviceToHost, one);  // copies to the host
    printed = pinned[3];  // reads too early
  } else if (is("host-after-kernel")) {
    store<<<1, COUNT>>>(managed);
    printed = managed[3];  // reads managed memory
  } else if (is("other-stream")) {
    store<<<1, COUNT, 0, one>>>(managed);
    cudaStreamSynchronize(two);
    managed[3] = 1;  // writes managed memory
  }

  // right
  if (is("event")) {
    store<<<1, COUNT, 0, one>>>(values);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event);
    load<<<1, COUNT, 0, two>>>(values, sums);
  } else if (is("default-stream")) {
    store<<<1, COUNT, 0, one>>>(values);
    load<<<1, COUNT>>>(values, sums);
    store<<<1, COUNT, 0, two>>>(values);
  } else if (is("waits")) {
    store<<<1, COUNT, 0, one>>>(values);
    cudaStreamSynchronize(one);
    load<<<1, COUNT, 0, free_one>>>(values, sums);
    cudaEventRecord(event, free_one);
    cudaEventSynchronize(event);
    store<<<1, COUNT, 0, two>>>(values);
    cudaDeviceSynchronize();
    load<<<1, COUNT, 0, free_one>>>(values, sums);
  } else if (is("chain")) {
    store<<<1, COUNT, 0, free_one>>>(values);
    cudaEventRecord(event, free_one);
    cudaStreamWaitEvent(one, event);
    store<<<1, COUNT, 0, one>>>(others);
    cudaMemcpyAsync(pinned, values, bytes, cudaMemcpyDeviceToHost);
    cudaStreamSynchronize(nullptr);
    printed = pinned[3];
  } else if (is("halves")) {
    for (int i = 0; i < COUNT; ++i) pinned[i] = i;
    cudaStream_t streams[] = {one, two};
    for (int i = 0; i < 2; ++i) {
      int *mine = values + i * COUNT / 2, *home = pinned + i * COUNT / 2;
      cudaMemcpyAsync(mine, home, half, cudaMemcpyHostToDevice, streams[i]);
      load<<<1, COUNT / 2, 0, streams[i]>>>(mine, sums + i * COUNT / 2);
      cudaMemcpyAsync(home, mine, half, cudaMemcpyDeviceToHost, streams[i]);
    }
    cudaStreamSynchronize(one);
    printed = pinned[3];
    cudaStreamSynchronize(two);
    printed += pinned[COUNT - 1];
  } else if (is("readers")) {
    load<<<1, COUNT, 0, one>>>(values, sums);
    load<<<1, COUNT, 0, two>>>(values, others);
  } else if (is("atomics")) {
    count<<<1, COUNT, 0, one>>>(values);
    count<<<1, COUNT, 0, two>>>(values);
  } else if (is("managed")) {
    managed[3] = 1;
    store<<<1, COUNT>>>(managed);
    cudaMemcpy(pinned, values, bytes, cudaMemcpyDeviceToHost);
    printed = managed[3];
  }
  return printf("%ld\n", printed) < 0;
}
