// Types and functions of device code. Each kernel is right, and each value here is computed by hand.
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

__shared__ int tile[64];  // outside of every kernel, as CUDA permits

__global__ void halves(const half2* in, half2* out, float* results) {
  const half2 x = in[threadIdx.x];
  out[threadIdx.x] = __hfma2(x, x, __float2half2_rn(1.0f));
  atomicAdd(&out[threadIdx.x], x);
  union {
    float4 whole;
    half2 parts[4];
  } all = {}, copy = {};
  all.parts[3] = out[threadIdx.x];
  copy = all;
  if (threadIdx.x != 3) return;
  results[0] = __high2float(copy.parts[3]);                                    // 6 * 6 + 1 + 6
  results[1] = __half2float(__float2half_rd(1.0003f));                         // 1: the next one is 1.00098
  results[2] = __half2float(__float2half_ru(-1.0003f));                        // -1
  results[3] = __half2float(half(65520.0f)) == CUDART_INF_F;                   // beyond 65,504
  results[4] = __bfloat162float(__float2bfloat16(CUDART_PI_F));                // 3.140625
  results[5] = float(__nv_bfloat16(3.0f) * __nv_bfloat16(5.0f) - __nv_bfloat16(1));  // 14
  results[6] = __hbge2(x, make_half2(3.0f, 6.0f)) && !__hgt(x.x, x.y) && __hgtu(half(CUDART_NAN_F), x.y);
}
__global__ void old_warp_functions(float* results) {
  float sum = threadIdx.x;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down(sum, d);
  if (threadIdx.x == 0) results[0] = sum;               // 0 + ... + 31
  if (threadIdx.x < 8) {
    const unsigned odd = __ballot(threadIdx.x & 1);
    if (threadIdx.x == 0) results[1] = odd;             // 0b10101010, of the eight lanes that are here
  }
}
__global__ void reverse(float* results, const int* nothing) {
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (!nothing) results[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void barriers(const float* in, float* out, int* count) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) float staged[64];
  const auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(block, staged, in, sizeof staged, barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = staged[63 - threadIdx.x];
  barrier.wait(barrier.arrive());
  pipe.producer_acquire();
  cuda::memcpy_async(block, staged, in, cuda::aligned_size_t<16>(sizeof staged), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  out[threadIdx.x] += staged[threadIdx.x];
  pipe.consumer_release();
  cuda::atomic_ref<int, cuda::thread_scope_device>(*count).fetch_add(2, cuda::memory_order_relaxed);
}
__global__ void ptx(const float* in, float* results) {
  __shared__ __align__(16) float staged[128];
  const unsigned place = unsigned(__cvta_generic_to_shared(&staged[threadIdx.x * 4]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" ::"r"(place), "l"(in + threadIdx.x * 4), "n"(16));
  asm volatile("cp.async.wait_all;\n" ::);
  asm volatile("bar.sync 0;");
  float other, power, product;
  unsigned bits, lane;
  unsigned long long wide;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(3.0f));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(staged[threadIdx.x]), "r"(1));
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(bits) : "r"(0xabcdu), "r"(4), "r"(8));
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("{\n .reg .pred p;\n setp.eq.u32 p, %1, 3;\n @p mov.u32 %0, 99;\n}" : "+r"(bits) : "r"(lane));
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(product) : "f"(2.0f), "f"(3.0f), "f"(other));
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(0x80000000u), "r"(4u));
  if (threadIdx.x != 3) return;
  results[0] = power, results[1] = other, results[2] = bits, results[3] = product, results[4] = wide >> 33;
}

texture<float, 2, cudaReadModeElementType> filtered;  // as before CUDA 12
__global__ void textures(cudaTextureObject_t wrapped, cudaSurfaceObject_t surface, float* results) {
  results[0] = tex2D<float>(wrapped, 10.5f / 8, 1.5f / 4);  // column 10 of 8 columns is column 2: 8 + 2
  results[1] = tex2D(filtered, 1.0f, 2.0f);                 // the mean of 8, 9, 16 and 17
  surf2Dwrite(70.0f, surface, 4 * sizeof(float), 3);
  results[2] = surf2Dread<float>(surface, 4 * sizeof(float), 3);
}

__global__ void rounding(float* results) {
  results[0] = __fadd_ru(1, 1e-9f), results[1] = __fadd_rd(1, 1e-9f), results[2] = __fdiv_rz(-1, 3), results[3] = __frcp_rd(3);
  results[4] = __fsqrt_ru(2), results[5] = __fmaf_rd(1, 1, -1e-9f), results[6] = float(__dmul_rd(0.1, 3) < 0.1 * 3);
}
__global__ void integers(float* results) {
  extern __shared__ float rows[][4];
  rows[threadIdx.x][1] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x) return;
  unsigned difference;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(difference) : "r"(0x01020304), "r"(0x04030201), "r"(2));
  results[0] = __vaddss4(0x7f01ff80, 0x010101ff) == 0x7f020080;
  results[1] = difference;                                                           // 3 + 1 + 1 + 3 + 2
  results[2] = __vimax3_s16x2(0xffff0001, 0x00000002, 0x00050000) == 0x00050002;
  results[3] = __dp4a(make_char4(1, 2, 3, -4), make_char4(1, 1, 1, 1), 5);           // 7
  results[4] = __ll2float_ru(16777217) - 16777216;                                   // 2: the next float
  results[5] = rows[5][1] + __nv_atomic_fetch_add(&rows[7][1], 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);  // 5 + 7
  results[6] = float(half(__nv_bfloat16(3)));
}
__global__ void tiles_of_two_warps(const float* in, float* results) {
  __shared__ cooperative_groups::block_tile_memory<128> memory;
  const cooperative_groups::thread_block_tile<64> tile =
      cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block(memory));
  const float sum = cooperative_groups::reduce(tile, in[threadIdx.x], cooperative_groups::plus<float>());
  if (tile.thread_rank() == 0) results[tile.meta_group_rank()] = sum;
}
__global__ void tiles_of_tiles(const float* in, float* results) {
  const auto outer = cooperative_groups::tiled_partition<128>(cooperative_groups::this_thread_block());
  const auto inner = cooperative_groups::tiled_partition<64>(outer);
  const float sum = cooperative_groups::reduce(inner, in[threadIdx.x % 128], cooperative_groups::plus<float>());
  const float largest = cooperative_groups::reduce(outer, sum, cooperative_groups::greater<float>());
  if (threadIdx.x != 192) return;
  results[0] = sum, results[1] = largest;                                       // 64 + ... + 127 twice
  results[2] = inner.meta_group_rank(), results[3] = inner.meta_group_size();  // the second of two
}
struct Size {
  int n;
  __host__ __device__ Size(int given) : n(given) {}
  __host__ __device__ Size(const Size& other) : n(other.n) {}
} size(3);
__global__ void sizes(Size given, float* results) { results[0] = given.n; }
__global__ void packed(unsigned* results) {
  const unsigned a = 0xff810203u, b = 0x01820102u;
  results[0] = __vabs2(0xfffb8000u), results[1] = __vabsss2(0xfffb8000u), results[2] = __vadd4(a, b), results[3] = __vaddus4(a, b);
  results[4] = __vcmpgtu4(a, b), results[5] = __vcmpgts4(a, b), results[6] = __vsadu4(a, b), results[7] = __vsads4(a, b);
}
__global__ void cube(cudaTextureObject_t faces, float* results) {
  results[0] = texCubemap<float>(faces, 0.25f, -1, 0.25f);  // face 3 (-y), column 1, row 0
  results[1] = texCubemap<float>(faces, -1, 0.5f, 0.5f);    // face 1 (-x), column 1, row 0
}

static int right = 0, wrong = 0;
static void expect(const char* name, float value, float expected) {
  (value == expected ? right : wrong)++;
  if (value != expected) printf("%s: %g, not %g\n", name, value, expected);
}

int main() {
  float *in, *results;
  half2* pairs;
  int* count;
  cudaMallocManaged(&in, 128 * sizeof(float)), cudaMallocManaged(&results, 64 * sizeof(float));
  cudaMallocManaged(&pairs, 64 * sizeof(half2)), cudaMallocManaged(&count, sizeof(int));
  for (int i = 0; i < 128; ++i) in[i] = i;
  for (int i = 0; i < 32; ++i) pairs[i] = make_half2(i, 2 * i);
  *count = 0;

  halves<<<1, 32>>>(pairs, pairs + 32, results), cudaDeviceSynchronize();
  const float expected[] = {43, 1, -1, 1, 3.140625f, 14, 1};
  for (int i = 0; i < 7; ++i) expect("halves", results[i], expected[i]);
  old_warp_functions<<<1, 32>>>(results), cudaDeviceSynchronize();
  expect("shuffle", results[0], 496), expect("ballot", results[1], 0xaa);
  reverse<<<1, 64>>>(results, NULL), cudaDeviceSynchronize(), expect("reverse", results[3], 60);
  barriers<<<1, 64>>>(in, results, count), cudaDeviceSynchronize(), expect("barriers", results[3], 63), expect("atomic", *count, 128);
  ptx<<<1, 32>>>(in, results), cudaDeviceSynchronize();
  const float from_ptx[] = {8, 2, 99, 8, 1};
  for (int i = 0; i < 5; ++i) expect("ptx", results[i], from_ptx[i]);

  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, 8, 4, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, in, 8 * sizeof(float), 8 * sizeof(float), 4, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap, how.normalizedCoords = 1;
  cudaTextureObject_t wrapped;
  cudaSurfaceObject_t surface;
  cudaCreateTextureObject(&wrapped, &resource, &how, NULL), cudaCreateSurfaceObject(&surface, &resource);
  filtered.filterMode = cudaFilterModeLinear;
  cudaBindTextureToArray(filtered, array);
  textures<<<1, 1>>>(wrapped, surface, results), cudaDeviceSynchronize();
  expect("wrapped", results[0], 10), expect("filtered", results[1], 12.5f), expect("surface", results[2], 70);

  rounding<<<1, 1>>>(results), cudaDeviceSynchronize();
  const float third = 0x1.555554p-2f, rounded[] = {1 + 0x1p-23f, 1, -third, third, 0x1.6a09e8p+0f, 1 - 0x1p-24f, 1};
  for (int i = 0; i < 7; ++i) expect("rounding", results[i], rounded[i]);

  integers<<<1, 32, 32 * 4 * sizeof(float)>>>(results), cudaDeviceSynchronize();
  const float from_integers[] = {1, 10, 1, 7, 2, 12, 3};
  for (int i = 0; i < 7; ++i) expect("integers", results[i], from_integers[i]);

  tiles_of_two_warps<<<1, 128>>>(in, results), cudaDeviceSynchronize();
  expect("tile 0", results[0], 2016), expect("tile 1", results[1], 6112);
  tiles_of_tiles<<<1, 256>>>(in, results), cudaDeviceSynchronize();
  const float from_tiles[] = {6112, 6112, 1, 2};
  for (int i = 0; i < 4; ++i) expect("tiles of tiles", results[i], from_tiles[i]);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  cudaStreamCreate(&stream), cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  sizes<<<1, 1, 0, stream>>>(size, results);
  cudaStreamEndCapture(stream, &graph), cudaGraphInstantiate(&runnable, graph, 0), size.n = 5;
  cudaGraphLaunch(runnable, stream), cudaStreamSynchronize(stream), expect("captured size", results[0], 3);
  sizes<<<1, 1>>>(size, results), cudaDeviceSynchronize(), expect("size", results[0], 5);

  unsigned* words;
  cudaMallocManaged(&words, 8 * sizeof(unsigned));
  packed<<<1, 1>>>(words), cudaDeviceSynchronize();
  const unsigned from_packed[] = {0x00058000, 0x00057fff, 0x00030305, 0xffff0305, 0xff00ffff, 0x0000ffff, 257, 5};
  for (int i = 0; i < 8; ++i) expect("packed", words[i], from_packed[i]);

  cudaMemcpy3DParms copy = {};
  copy.extent = make_cudaExtent(2, 2, 6), copy.kind = cudaMemcpyHostToDevice;
  copy.srcPtr = make_cudaPitchedPtr(in, 2 * sizeof(float), 2, 2);
  cudaMalloc3DArray(&copy.dstArray, &format, copy.extent, cudaArrayCubemap), cudaMemcpy3D(&copy);
  resource.res.array.array = copy.dstArray;
  cudaCreateTextureObject(&wrapped, &resource, &how, NULL);
  cube<<<1, 1>>>(wrapped, results), cudaDeviceSynchronize();
  expect("face 3", results[0], 13), expect("face 1", results[1], 5);
  printf("%d right, %d wrong, %s", right, wrong, cudaGetErrorString(cudaGetLastError()));
}
