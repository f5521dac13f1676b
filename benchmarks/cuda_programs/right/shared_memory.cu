// variants: 4
template <int N>
__device__ int* get_shared() {
  __shared__ int values[N];
  return values;
}

__global__ void run(const int* in, int* out) {
  int i = threadIdx.x;
#if VARIANT == 1  // one piece for two phases
  __shared__ union {
    int integers[64];
    float floats[64];
  } space;
  space.integers[i] = in[i];
  __syncthreads();
  int value = space.integers[63 - i];
  __syncthreads();
  space.floats[i] = value;
  __syncthreads();
  out[i] = space.floats[i];
#elif VARIANT == 2  // dynamic shared memory in two parts
  extern __shared__ char memory[];
  int* values = (int*)memory;
  double* doubles = (double*)(memory + 64 * sizeof(int));
  values[i] = in[i];
  doubles[i] = 0.5;
  __syncthreads();
  out[i] = values[63 - i] * (doubles[i] + doubles[63 - i]);
#elif VARIANT == 3  // odd-even sort, from the largest
  __shared__ int values[64];
  values[i] = in[i];
  for (int step = 0; step < 64; ++step) {
    __syncthreads();
    int left = 2 * i + step % 2;
    if (left + 1 < 64 && values[left] < values[left + 1]) {
      int value = values[left];
      values[left] = values[left + 1];
      values[left + 1] = value;
    }
  }
  __syncthreads();
  out[i] = values[i];
#else  // a variable of a template's function
  int* values = get_shared<64>();
  values[i] = in[i];
  __syncthreads();
  out[i] = values[63 - i];
#endif
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 64 * sizeof(int));
  cudaMallocManaged(&out, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) in[i] = i;
  run<<<1, 64, 64 * (sizeof(int) + sizeof(double))>>>(in, out);
  cudaDeviceSynchronize();
  return out[0] != 63 || out[63] != 0;
}
