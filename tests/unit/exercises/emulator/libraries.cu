// What programs call of CUDA's libraries, with results that are known.
#include <cub/cub.cuh>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cufftXt.h>
#include <curand.h>
#include <curand_kernel.h>
#include <helper_math.h>
#include <nvToolsExtCuda.h>
#include <omp.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>

#include <cstdio>
#include <cstring>

template <class T>
T* allocate(int count) {
  T* pointer;
  cudaMallocManaged(&pointer, count * sizeof(T));
  return pointer;
}

__global__ void add(float* x, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}

__global__ void add_one(int* sum) { atomicAdd(sum, 1); }

void run_blas() {
  constexpr int M = 5, N = 3, K = 7;
  cublasHandle_t handle;
  cublasCreate(&handle);
  float *a = allocate<float>(M * K), *b = allocate<float>(K * N), *c = allocate<float>(M * N);
  for (int i = 0; i < M * K; ++i) a[i] = float(i % 13 - 5);
  for (int i = 0; i < K * N; ++i) b[i] = float(i % 7 - 2);
  int wrong = 0;
  for (int way = 0; way < 4; ++way) {
    const bool ta = way & 1, tb = way & 2;
    const float alpha = 2, beta = 0;
    memset(c, 0xff, M * N * sizeof *c);  // not numbers: with beta = 0 they must not be read
    cublasSgemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, &alpha, a, ta ? K : M, b,
                tb ? N : K, &beta, c, M);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += (ta ? a[k + i * K] : a[i + k * M]) * (tb ? b[j + k * N] : b[k + j * K]);
        wrong += c[i + j * M] != 2 * sum;
      }
  }
  float x[] = {3, -4, 0}, norm;
  float* on_device;
  int largest;
  cudaMalloc(&on_device, sizeof x);
  cublasSetVector(3, sizeof(float), x, 1, on_device, 1);
  cublasSnrm2(handle, 3, on_device, 1, &norm);
  cublasIsamax(handle, 3, on_device, 1, &largest);
  printf("%d wrong, norm %g, largest %d, too long %d", wrong, norm, largest, cublasSnrm2(handle, 4, on_device, 1, &norm));
}

__global__ void draw(curandState* states, float* numbers) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(1234, i, 0, &states[i]);
  numbers[i] = curand_uniform(&states[i]);
}

void run_random() {
  constexpr int COUNT = 4096;
  float* numbers = allocate<float>(COUNT);
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, 7);
  curandGenerateNormal(generator, numbers, COUNT, 3, 2);
  double sum = 0, squares = 0;
  for (int i = 0; i < COUNT; ++i) sum += numbers[i], squares += (numbers[i] - 3) * (numbers[i] - 3);
  printf("mean %.0f, deviation %.0f, ", sum / COUNT, sqrt(squares / COUNT));
  draw<<<COUNT / 128, 128>>>(allocate<curandState>(COUNT), numbers);
  cudaDeviceSynchronize();
  sum = 0;
  for (int i = 0; i < COUNT; ++i) sum += numbers[i];
  const unsigned counter[4] = {};
  unsigned philox[4];
  emulator::random::compute_philox(counter, 0, philox);
  printf("uniform %.1f, Philox %08x", sum / COUNT, philox[0]);
}

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

void run_thrust() {
  thrust::host_vector<int> host(8);
  for (int i = 0; i < 8; ++i) host[i] = i * 5 % 8;
  thrust::device_vector<int> keys = host, values(8);
  thrust::sequence(values.begin(), values.end());
  thrust::sort_by_key(thrust::device, keys.begin(), keys.end(), values.begin(), thrust::greater<int>());
  const int squares = thrust::transform_reduce(keys.begin(), keys.end(), Square(), 0, thrust::plus<int>());
  auto pairs = thrust::make_zip_iterator(thrust::make_tuple(keys.begin(), values.begin()));
  thrust::for_each(pairs, pairs + 8, [] __device__(auto pair) { thrust::get<1>(pair) += 10 * thrust::get<0>(pair); });
  int* raw = thrust::raw_pointer_cast(keys.data());
  thrust::exclusive_scan(thrust::device, raw, raw + 8, raw);
  printf("squares %d, value %d, scan %d, ", squares, int(values[0]), int(keys[7]));
  keys.resize(thrust::remove_if(keys.begin(), keys.end(), [] __device__(int x) { return x > 20; }) - keys.begin());
  printf("kept %d", int(keys.size()));
}

__global__ void use_cub(const int* in, int* sums, int* scanned) {
  typedef cub::BlockReduce<int, 100> Reduce;
  typedef cub::BlockScan<int, 100> Scan;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } storage;
  const int value = in[threadIdx.x], sum = Reduce(storage.reduce).Sum(value);
  if (threadIdx.x == 0) sums[0] = sum;
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(value, scanned[threadIdx.x], sums[threadIdx.x + 1]);
}

void run_cub() {
  int *in = allocate<int>(100), *sums = allocate<int>(101), *scanned = allocate<int>(100), wrong = 0;
  for (int i = 0; i < 100; ++i) in[i] = i % 7;
  use_cub<<<1, 100>>>(in, sums, scanned);
  cudaDeviceSynchronize();
  for (int i = 0, sum = 0; i < 100; sum += in[i++]) wrong += scanned[i] != sum;
  void* storage = nullptr;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeysDescending(storage, bytes, in, scanned, 100);
  cudaMalloc(&storage, bytes);
  cub::DeviceRadixSort::SortKeysDescending(storage, bytes, in, scanned, 100);
  printf("%d wrong, sums %d %d, first %d, last %d", wrong, sums[0], sums[100], scanned[0], scanned[99]);
}

__device__ double load_twice(void* in, size_t place, void* factor, void*) { return *static_cast<double*>(factor) * static_cast<double*>(in)[place]; }
__device__ cufftCallbackLoadD pointer_of_load = load_twice;

void run_fft() {
  constexpr int X = 6, Y = 5;
  double *in = allocate<double>(X * Y), *out = allocate<double>(X * Y), error = 0, sum = 0;
  cufftDoubleComplex* spectrum = allocate<cufftDoubleComplex>(X * (Y / 2 + 1));
  for (int i = 0; i < X * Y; ++i) sum += in[i] = i * i % 17;
  cufftHandle forward, inverse;
  cufftPlan2d(&forward, X, Y, CUFFT_D2Z);
  long long sizes[] = {X, Y};
  size_t bytes;
  cufftCreate(&inverse);
  cufftXtMakePlanMany(inverse, 2, sizes, nullptr, 1, 0, CUDA_C_64F, nullptr, 1, 0, CUDA_R_64F, 1, &bytes, CUDA_C_64F);
  cufftExecD2Z(forward, in, spectrum);
  cufftXtExec(inverse, spectrum, out, CUFFT_INVERSE);
  for (int i = 0; i < X * Y; ++i) error = fmax(error, fabs(in[i] - out[i] / (X * Y)));
  double* factor = allocate<double>(1);
  void* load;
  *factor = 2;
  cudaMemcpyFromSymbol(&load, pointer_of_load, sizeof load);
  cufftXtSetCallback(forward, &load, CUFFT_CB_LD_REAL_DOUBLE, reinterpret_cast<void**>(&factor));
  sum += spectrum[0].x;
  cufftExecD2Z(forward, in, spectrum);
  printf("%s, sum %d, wrong type %d", error < 1e-12 ? "back" : "not back", fabs(spectrum[0].x - sum) < 1e-9,
         cufftExecC2C(forward, 0, 0, 1));
}

void run_graph() {
  constexpr int N = 64;
  float *x = allocate<float>(N), *y = allocate<float>(N), by = 10;
  int n = N;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSetStream(handle, stream);
  memset(x, 0, N * sizeof *x);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(y, 0, N * sizeof *y, stream);
  for (int i = 0; i < 3; ++i) add<<<1, N, 0, stream>>>(x, 1.0f + i, N);
  {
    const float two = 2;
    cublasSaxpy(handle, N, &two, x, 1, y, 1);
  }
  cudaStreamEndCapture(stream, &graph);
  printf("before %g, ", x[7]);
  cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  printf("after %g %g, ", x[7], y[7]);

  cudaGraphNode_t kernel_node, fill_node;
  cudaKernelNodeParams kernel = {0};
  void* arguments[] = {&x, &by, &n};
  kernel.func = (void*)add;
  kernel.gridDim = dim3(1), kernel.blockDim = dim3(N);
  kernel.kernelParams = arguments;
  cudaMemsetParams fill = {x, 0, 0, 4, N, 1};
  cudaGraphCreate(&graph, 0);
  cudaGraphAddKernelNode(&kernel_node, graph, nullptr, 0, &kernel);
  by = 99;  // the node has its own copy
  cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill);
  cudaGraphAddDependencies(graph, &fill_node, &kernel_node, 1);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, nullptr);
  cudaDeviceSynchronize();
  printf("nodes in order %g", x[7]);
}

void run_vectors() {
  const float3 a = make_float3(1, 2, 3), b = make_float3(2.0f) + 4 * a;
  const float3 c = cross(a, b), d = normalize(make_float3(0, 3, 4)) - make_float3(0.0f, 0.5f, 1.0f);
  printf("%g %g %g, %.1f %.1f, %g", c.x, c.y, c.z, d.y, d.z, dot(a, b));
}

void run_product() {
  constexpr int M = 2, N = 2, K = 3;
  float *a = allocate<float>(M * K), *b = allocate<float>(K * N), *d = allocate<float>(M * N), *bias = allocate<float>(M);
  for (int i = 0; i < M * K; ++i) a[i] = float(i), b[i] = 1;
  bias[0] = -100, bias[1] = 1;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t of_a, of_b, of_d;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&of_a, CUDA_R_32F, M, K, M);
  cublasLtMatrixLayoutCreate(&of_b, CUDA_R_32F, K, N, K);
  cublasLtMatrixLayoutCreate(&of_d, CUDA_R_32F, M, N, M);
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  const float one = 1, zero = 0;
  const auto multiply = [&](uint64_t depth) {
    cublasLtMatrixLayoutSetAttribute(of_a, CUBLASLT_MATRIX_LAYOUT_COLS, &depth, sizeof depth);
    return cublasLtMatmul(handle, product, &one, a, of_a, b, of_b, &zero, d, of_d, d, of_d, nullptr, nullptr, 0, nullptr);
  };
  const int status = multiply(K);
  printf("%d: %g %g %g %g, too deep %d", status, d[0], d[1], d[2], d[3], multiply(K + 1));
}

void run_devices() {
  int count, can_access;
  cudaGetDeviceCount(&count);
  int* sum = allocate<int>(1);
  *sum = 0;
  for (int device = 0; device < count; ++device) {
    cudaSetDevice(device);
    cudaMemPrefetchAsync(sum, sizeof *sum, cudaMemLocation{cudaMemLocationTypeDevice, device}, 0, nullptr);
    add_one<<<1, 32>>>(sum);
    cudaDeviceSynchronize();
  }
  cudaDeviceCanAccessPeer(&can_access, 0, 1);
  cudaIpcMemHandle_t handle;
  const char* error = cudaGetErrorString(cudaIpcGetMemHandle(&handle, sum));
  nvtxNameCudaStreamA(nullptr, "default");
  printf("%d GPUs, sum %d, peer %d, threads %d, %s", count, *sum, can_access, omp_get_num_threads(), error);
}

int main(int, char** options) {
  const char* names[] = {"blas", "random", "thrust", "cub", "fft", "graph", "vectors", "product", "devices"};
  void (*const runs[])() = {run_blas,  run_random,  run_thrust,  run_cub,    run_fft,
                            run_graph, run_vectors, run_product, run_devices};
  for (int i = 0; i < 9; ++i)
    if (!strcmp(options[1], names[i])) runs[i]();
}
