// variants: 5
struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ Square(int side) : side(side) {}
  __device__ int area() const override { return side * side; }
};
struct Padded {
  char tag;
  int value;
};
__device__ int triple(int x) { return 3 * x; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void child(int* out) { out[threadIdx.x] = 3 * threadIdx.x; }

__global__ void run(Padded* structs, int* out) {
  int i = threadIdx.x;
#if VARIANT == 1  // objects with virtual functions, from the device's heap
  Shape* shape = new Square(i);
  out[i] = i == 9 ? shape->area() / 3 : 3 * i;
  delete shape;
#elif VARIANT == 2  // a function by its pointer, and one that calls itself
  int (*function)(int) = triple;
  out[i] = i == 9 ? fibonacci(8) + 6 : function(i);
#elif VARIANT == 3  // a kernel launches a kernel
  if (i == 0) child<<<1, blockDim.x>>>(out);
#elif VARIANT == 4  // structures with padding, copied whole
  structs[i].tag = 1;
  structs[i].value = 3 * i;
  Padded copy = structs[i];
  structs[i + 32] = copy;
  out[i] = structs[i + 32].value;
#else  // bytes next to each other, and an array in local memory
  unsigned char* bytes = (unsigned char*)structs;
  bytes[i] = i;
  int digits[4];
  for (int k = 0; k < 4; ++k) digits[k] = bytes[i] * (k < 3);
  out[i] = digits[0] + digits[1] + digits[i % 3] + digits[3];
#endif
}

int main() {
  Padded* structs;
  int* out;
  cudaMalloc(&structs, 64 * sizeof(Padded));
  cudaMallocManaged(&out, 32 * sizeof(int));
  run<<<1, 32>>>(structs, out);
  cudaDeviceSynchronize();
  return out[9] != 27 || out[31] != 93;
}
