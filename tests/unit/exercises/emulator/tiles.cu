// Products of tiles by inline PTX, compared with plain loops. All numbers are small and whole, so every sum is exact.
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

struct Tile {
  int a[16][32], b[32][8], c[16][8];
};

// The elements of a row or column that one register has, by the number of their bits.
__device__ unsigned pack(const int* elements, int step, int kind) {
  unsigned bits = 0;
  if (kind == 0) return __float_as_uint(float(elements[0]));                                                   // tf32
  for (int i = 0; i < 2 && kind <= 2; ++i) {
    const float value = elements[i * step];
    bits |= unsigned(kind == 1 ? __half_as_ushort(__float2half(value)) : __bfloat16_as_ushort(__float2bfloat16(value))) << 16 * i;
  }
  for (int i = 0; i < 4 && kind > 2; ++i)
    bits |= unsigned(kind == 3 ? uint8_t(elements[i * step]) : kind == 4 ? __nv_fp8_e4m3(elements[i * step]).__x : __nv_fp8_e5m2(elements[i * step]).__x) << 8 * i;
  return bits;
}

template <int Kind, int Depth>
__global__ void multiply(const Tile* tile, float* out) {
  const int lane = threadIdx.x, group = lane / 4, t = lane % 4;
  const int in_register = Kind == 0 ? 1 : Kind <= 2 ? 2 : 4, blocks = Depth / (4 * in_register);
  unsigned a[4], b[2];
  float c[4], d[4];
  for (int k = 0; k < blocks; ++k) {
    const int first = (4 * k + t) * in_register;
    a[2 * k] = pack(&tile->a[group][first], 1, Kind), a[2 * k + 1] = pack(&tile->a[group + 8][first], 1, Kind);
    b[k] = pack(&tile->b[first][group], 8, Kind);
  }
  for (int i = 0; i < 4; ++i) c[i] = tile->c[group + i / 2 * 8][2 * t + i % 2];
  if constexpr (Kind == 0 && Depth == 4) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  } else if constexpr (Kind == 0) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  } else if constexpr (Kind == 1 && Depth == 8) {
    unsigned sums[2] = {__half_as_ushort(__float2half(c[0])) | unsigned(__half_as_ushort(__float2half(c[1]))) << 16,
                        __half_as_ushort(__float2half(c[2])) | unsigned(__half_as_ushort(__float2half(c[3]))) << 16};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(sums[0]), "+r"(sums[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    for (int i = 0; i < 4; ++i) d[i] = __half2float(__ushort_as_half(sums[i / 2] >> i % 2 * 16));
  } else if constexpr (Kind == 1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  } else if constexpr (Kind == 2) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[i] = c[i];
  } else if constexpr (Kind == 3) {
    int sums[4] = {int(c[0]), int(c[1]), int(c[2]), int(c[3])};
    if constexpr (Depth == 16)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                   : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    else
      asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[i] = sums[i];
  } else if constexpr (Kind == 4) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[i] = c[i];
  } else {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[i] = c[i];
  }
  for (int i = 0; i < 4; ++i) out[(group + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

// A 16 x 16 tile by ldmatrix from rows of `Pitch` numbers, written back transposed by stmatrix.
template <int Pitch>
__global__ void transpose(int* out) {
  __shared__ __align__(16) unsigned short from[16 * Pitch], to[16 * Pitch];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) from[i / 16 * Pitch + i % 16] = i;
  __syncwarp();
  const int row = lane % 16, column = lane / 16 * 8;
  unsigned r[4], first, pair[2];
  unsigned place = __cvta_generic_to_shared(&from[row * Pitch + column]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(place));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(first) : "r"(place));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0,%1}, [%2];" : "=r"(pair[0]), "=r"(pair[1]) : "r"(place));
  place = __cvta_generic_to_shared(&to[row * Pitch + column]);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(place), "r"(r[0]), "r"(r[2]), "r"(r[1]), "r"(r[3]));
  __syncwarp();
  for (int i = lane; i < 256; i += 32) out[i] = to[i / 16 * Pitch + i % 16];
  const int of_first = lane / 4 * 16 + lane % 4 * 2;  // the two neighbours that a lane has
  out[256 + lane] = first == unsigned(of_first | (of_first + 1) << 16) && pair[0] == first && pair[1] == first + 128 * 0x10001u;
}

template <class In, class Stored, class Sum, int M, int N, int K>
__global__ void multiply_by_wmma(const Tile* tile, Stored* a, Stored* b, Sum* sums) {
  for (int i = threadIdx.x; i < M * K; i += 32) a[i] = Stored(float(tile->a[i / K % 16][i % K]));
  for (int i = threadIdx.x; i < N * K; i += 32) b[i] = Stored(float(tile->b[i % K][i / K % 8]));
  __syncwarp();
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, M, N, K, In, nvcuda::wmma::row_major> left;
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, M, N, K, In, nvcuda::wmma::col_major> right;
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, M, N, K, Sum> sum;
  nvcuda::wmma::load_matrix_sync(left, a, K), nvcuda::wmma::load_matrix_sync(right, b, K);
  nvcuda::wmma::fill_fragment(sum, 1);
  nvcuda::wmma::mma_sync(sum, left, right, sum);
  nvcuda::wmma::store_matrix_sync(sums, sum, N, nvcuda::wmma::mem_row_major);
}

int right = 0, wrong = 0;
void expect(const char* name, bool is_right) {
  is_right ? ++right : ++wrong;
  if (!is_right) printf("%s is wrong\n", name);
}

template <int Kind, int Depth>
void check(const char* name, Tile* tile, float* out) {
  multiply<Kind, Depth><<<1, 32>>>(tile, out);
  cudaDeviceSynchronize();
  bool is_right = true;
  for (int i = 0; i < 128; ++i) {
    int sum = tile->c[i / 8][i % 8];
    for (int k = 0; k < Depth; ++k) sum += tile->a[i / 8][k] * tile->b[k][i % 8];
    is_right = is_right && out[i] == sum;
  }
  expect(name, is_right);
}

template <class In, class Stored, class Sum, int M, int N, int K>
void check_wmma(const char* name, Tile* tile) {
  Stored *a, *b;
  Sum* sums;
  cudaMalloc(&a, M * K * sizeof(Stored)), cudaMalloc(&b, K * N * sizeof(Stored)), cudaMallocManaged(&sums, M * N * sizeof(Sum));
  multiply_by_wmma<In, Stored, Sum, M, N, K><<<1, 32>>>(tile, a, b, sums);
  cudaDeviceSynchronize();
  bool is_right = true;
  for (int i = 0; i < M * N; ++i) {
    int sum = 1;
    for (int k = 0; k < K; ++k) sum += tile->a[i / N % 16][k] * tile->b[k][i % N % 8];
    is_right = is_right && float(sums[i]) == sum;
  }
  expect(name, is_right);
}

int main() {
  Tile* tile;
  float* out;
  int* turned;
  cudaMallocManaged(&tile, sizeof(Tile)), cudaMallocManaged(&out, 128 * sizeof(float)), cudaMallocManaged(&turned, 288 * sizeof(int));
  for (int i = 0; i < 512; ++i) tile->a[i / 32][i % 32] = i * 7 % 9 - 4;
  for (int i = 0; i < 256; ++i) tile->b[i / 8][i % 8] = i * 5 % 7 - 3;
  for (int i = 0; i < 128; ++i) tile->c[i / 8][i % 8] = i % 13;
  check<0, 4>("tf32 k4", tile, out), check<0, 8>("tf32 k8", tile, out);
  check<1, 8>("f16 k8", tile, out), check<1, 16>("f16 k16", tile, out), check<2, 16>("bf16 k16", tile, out);
  check<3, 16>("s8 k16", tile, out), check<3, 32>("s8 k32", tile, out);
  check<4, 32>("e4m3 k32", tile, out), check<5, 32>("e5m2 k32", tile, out);
  check_wmma<half, half, half, 32, 8, 16>("wmma f16", tile);
  check_wmma<nvcuda::wmma::precision::tf32, float, float, 16, 16, 8>("wmma tf32", tile);
  check_wmma<signed char, signed char, int, 8, 32, 16>("wmma s8", tile);
  check_wmma<double, double, double, 8, 8, 4>("wmma f64", tile);
  transpose<16><<<1, 32>>>(turned);
  transpose<24><<<1, 32>>>(turned);
  cudaDeviceSynchronize();
  bool is_turned = true, is_placed = true;
  for (int i = 0; i < 256; ++i) is_turned = is_turned && turned[i] == i % 16 * 16 + i / 16;
  for (int i = 256; i < 288; ++i) is_placed = is_placed && turned[i];
  expect("ldmatrix and stmatrix", is_turned), expect("ldmatrix x1 and x2", is_placed);
  expect("fp8", float(__nv_fp8_e4m3(500.0f)) == 448 && float(__nv_fp8_e5m2(0.0f)) == 0 && __nv_fp8_e4m3(1.0f).__x == 0x38 &&
                    float(__nv_fp8_e5m2(1.1f)) == 1 && float(__nv_fp8_e4m3(0.001f)) == 0.001953125f);
  printf("%d right, %d wrong", right, wrong);
}
