// Kernels whose arguments have constructors, destructors and conversions. The host runs them, once for each launch.
#include <cstdio>

static int copies = 0, ends = 0;

struct Counted {
  int value;
  Counted(int value_) : value(value_) {}
  Counted(const Counted& other) : value(other.value + 1) { ++copies; }
  ~Counted() { ++ends; }
};

struct Buffer {
  int* data;
  explicit Buffer(int count) { cudaMallocManaged(&data, count * sizeof(int)); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }
  operator int*() const { return data; }
};

struct Pair {
  int numbers[2];
};

__global__ void store(Counted counted, int* out) { out[threadIdx.x] = counted.value++; }
template <class C>
__global__ void store_any(C counted, int* out) {
  out[threadIdx.x] = counted.value++;
}
__global__ void add(Counted& counted) { atomicAdd(&counted.value, 1); }
__global__ void swap_pair(Pair& pair) {
  const int mine = pair.numbers[threadIdx.x];
  __syncthreads();
  pair.numbers[1 - threadIdx.x] = mine;
}
__global__ void store_default(int* out, int value = 5) { out[threadIdx.x] = value; }
__global__ void store_reference(const int& value, int* out) { out[threadIdx.x] = value; }  // of the host

int sum(const Buffer& buffer) {
  cudaDeviceSynchronize();
  int total = 0;
  for (int i = 0; i < 32; ++i) total += buffer.data[i];
  return total;
}

int main(int count, char**) {
  Buffer out(32);
  Counted counted(40);
  store<<<1, 32>>>(counted, out);
  printf("%d copies, %d ends, sum %d\n", copies, ends, sum(out));
  store_any<<<1, 32>>>(counted, out.data);
  printf("%d copies, %d ends, sum %d\n", copies, ends, sum(out));
  void* arguments[] = {&counted, &out.data};
  cudaLaunchKernel((void*)store, 1, 32, arguments);
  printf("%d copies, %d ends, sum %d\n", copies, ends, sum(out));
  Counted* managed;
  cudaMallocManaged(&managed, sizeof *managed);
  managed->value = 0;
  add<<<2, 32>>>(*managed);
  cudaDeviceSynchronize();
  Pair pair{{3, 4}}, *on_device;
  cudaMalloc(&on_device, sizeof pair);
  cudaMemcpy(on_device, &pair, sizeof pair, cudaMemcpyHostToDevice);
  swap_pair<<<1, 2>>>(*on_device);
  cudaMemcpy(&pair, on_device, sizeof pair, cudaMemcpyDeviceToHost);
  printf("%d copies, %d, %d and %d\n", copies, managed->value, pair.numbers[0], pair.numbers[1]);
  store_default<<<1, 32>>>(out.data);
  printf("sum %d\n", sum(out));
  if (count > 1) store_reference<<<1, 32>>>(count, out);
}
