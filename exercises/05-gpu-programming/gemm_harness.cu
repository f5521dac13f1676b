// The program of 5.3: three given versions of a product, and the code that runs and times all five. Yours are in my_gemm.cu.
//
//   gemm_harness N [integers|uniform] [FOLDER] [SECONDS]
//
// Prints a line of JSON for each version: its largest error against double precision, the allowed error, and how many numbers
// of C were not written.
// Each product is written to FOLDER as float32 ("-": nowhere). If SECONDS is above 0 (only with nvcc), events time each version
// for that long. TILE is a macro (-DTILE=16). With -DVARIANTS only your versions run, even with different template
// arguments.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "my_gemm.cu"

#ifndef TILE
#define TILE 16
#endif

using namespace nvcuda;

// --- the given versions ---------------------------------------------------------------------------------------------------

// One thread for each number of C. The lanes of a warp differ in threadIdx.x and therefore in their row: the bad order.
__global__ void naive(const float* A, const float* B, float* C, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
    C[row * n + column] = sum;
}

// The same work. The lanes of a warp differ in their column: they read neighbours in B, and all read the same number of A.
__global__ void coalesced(const float* A, const float* B, float* C, int n) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + column];
    C[row * n + column] = sum;
}

// One warp computes 16 x 16 numbers of C on the tensor cores: inputs of 16 bits, sums of 32.
__global__ void tensor(const half* A, const half* B, float* C, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(a, A + blockIdx.y * 16 * n + k, n);
        wmma::load_matrix_sync(b, B + k * n + blockIdx.x * 16, n);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + blockIdx.y * 16 * n + blockIdx.x * 16, c, n, wmma::mem_row_major);
}

// --- the program -------------------------------------------------------------------------------------------------------

static void stop_at(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    printf("{\"failed\": \"%s: %s\"}\n", what, cudaGetErrorString(error));
    fflush(stdout);
    exit(1);
}

// Number i of a matrix: a small integer, so that sums are exact in every format here, or a number from -1 to 1.
static float make_number(uint32_t i, uint32_t seed, bool integers) {
    uint32_t x = (i + seed) * 2654435761u;
    x = (x ^ (x >> 15)) * 2246822519u;
    x ^= x >> 13;
    return integers ? float(int(x % 7) - 3) : float(x >> 8) / float(1 << 23) - 1.0f;
}

struct Matrices {
    int n;
    std::vector<float> a, b;
    float *A, *B, *C;
    half *halfA, *halfB;
    size_t size() const { return size_t(n) * n; }
};

static Matrices make_matrices(int n, bool integers) {
    Matrices m{n};
    std::vector<half> a(m.size()), b(m.size());
    for (uint32_t i = 0; i < m.size(); ++i) {
        a[i] = __float2half(make_number(i, 1, integers));
        b[i] = __float2half(make_number(i, 77777, integers));
        m.a.push_back(__half2float(a[i]));  // rounded to 16 bits, so that every version multiplies the same numbers
        m.b.push_back(__half2float(b[i]));
    }
    const size_t bytes = m.size() * sizeof(float);
    stop_at(cudaMalloc(&m.A, bytes), "cudaMalloc");
    stop_at(cudaMalloc(&m.B, bytes), "cudaMalloc");
    stop_at(cudaMalloc(&m.C, bytes), "cudaMalloc");
    stop_at(cudaMalloc(&m.halfA, bytes / 2), "cudaMalloc");
    stop_at(cudaMalloc(&m.halfB, bytes / 2), "cudaMalloc");
    stop_at(cudaMemcpy(m.A, m.a.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    stop_at(cudaMemcpy(m.B, m.b.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    stop_at(cudaMemcpy(m.halfA, a.data(), bytes / 2, cudaMemcpyHostToDevice), "cudaMemcpy");
    stop_at(cudaMemcpy(m.halfB, b.data(), bytes / 2, cudaMemcpyHostToDevice), "cudaMemcpy");
    return m;
}

// The rows of the product that are compared, in double precision: all of a small one, 32 of a large one.
struct Reference {
    std::vector<int> rows;
    std::vector<double> numbers;
    double largest = 0;
};

static Reference make_reference(const Matrices& m) {
    Reference reference;
    const int count = m.n <= 256 ? m.n : 32;
    for (int i = 0; i < count; ++i) {
        const int row = int(int64_t(i) * (m.n - 1) / (count - 1));
        std::vector<double> sums(m.n, 0.0);
        for (int k = 0; k < m.n; ++k)
            for (int j = 0; j < m.n; ++j) sums[j] += double(m.a[size_t(row) * m.n + k]) * m.b[size_t(k) * m.n + j];
        reference.rows.push_back(row);
        for (double sum : sums) reference.largest = std::max(reference.largest, std::fabs(sum));
        reference.numbers.insert(reference.numbers.end(), sums.begin(), sums.end());
    }
    return reference;
}

static double find_error(const Reference& reference, const std::vector<float>& c, int n) {
    double worst = 0;
    for (size_t i = 0; i < reference.rows.size(); ++i)
        for (int j = 0; j < n; ++j) {
            const double off = std::fabs(c[size_t(reference.rows[i]) * n + j] - reference.numbers[i * n + j]);
            if (!std::isfinite(off)) return INFINITY;  // a comparison with NaN is false, and would pass
            worst = std::max(worst, off);
        }
    return worst;
}

#ifdef __CUDACC__
// Milliseconds of single launches, each after a write of 256 MiB, so that no matrix is in the L2 cache.
static std::vector<float> time_launches(const std::function<void()>& launch, double seconds) {
    std::vector<float> times;
    void* flush = nullptr;
    const size_t flushed = size_t(256) << 20;
    cudaEvent_t begin, end;
    stop_at(cudaMalloc(&flush, flushed), "cudaMalloc");
    stop_at(cudaEventCreate(&begin), "cudaEventCreate");
    stop_at(cudaEventCreate(&end), "cudaEventCreate");
    double spent = 0;
    for (int call = 0; call < 2 || (times.size() < 100 && (spent < seconds || times.size() < 3)); ++call) {
        stop_at(cudaMemsetAsync(flush, call & 255, flushed), "cudaMemset");
        stop_at(cudaEventRecord(begin), "cudaEventRecord");
        launch();
        stop_at(cudaEventRecord(end), "cudaEventRecord");
        stop_at(cudaEventSynchronize(end), "a timed launch");
        float ms = 0;
        stop_at(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        if (call < 2) continue;  // warm-up
        times.push_back(ms);
        spent += ms / 1e3;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaFree(flush);
    return times;
}
#else
static std::vector<float> time_launches(const std::function<void()>&, double) { return {}; }
#endif

static void save(const char* folder, const char* version, const std::vector<float>& c) {
    if (!strcmp(folder, "-")) return;
    FILE* file = fopen((std::string(folder) + "/" + version + ".bin").c_str(), "wb");
    if (!file || fwrite(c.data(), sizeof(float), c.size(), file) != c.size()) stop_at(cudaErrorInvalidValue, "the product's file");
    fclose(file);
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 64;
    if (n < 16 || n > 8192 || n % 32 || n % (2 * TILE)) {
        fprintf(stderr, "N must be from 16 to 8192, and a multiple of 32 and of two tiles\n");
        return 2;
    }
    const bool integers = argc < 3 || strcmp(argv[2], "uniform") != 0;
    const char* folder = argc > 3 ? argv[3] : "-";
    const double seconds = argc > 4 ? atof(argv[4]) : 0;
    const Matrices m = make_matrices(n, integers);
    const Reference reference = make_reference(m);
    const double allowed = 1e-5 * std::sqrt(double(n)) * reference.largest;
    std::vector<float> c(m.size());

    auto run_version = [&](const char* version, const std::function<void()>& launch) {
        stop_at(cudaMemset(m.C, 0xFF, m.size() * sizeof(float)), "cudaMemset");  // a NaN wherever no thread writes
        launch();
        stop_at(cudaGetLastError(), version);
        stop_at(cudaDeviceSynchronize(), version);
        stop_at(cudaMemcpy(c.data(), m.C, m.size() * sizeof(float), cudaMemcpyDeviceToHost), version);
        const uint32_t untouched = 0xFFFFFFFFu;
        const auto unwritten = std::count_if(c.begin(), c.end(), [&](float x) { return !memcmp(&x, &untouched, 4); });
        save(folder, version, c);
        const double error = find_error(reference, c, n);
        printf("{\"version\": \"%s\", \"n\": %d, \"error\": %g, \"allowed\": %g, \"unwritten\": %lld, \"ms\": [", version, n,
               std::isfinite(error) ? error : 1e300, allowed, (long long)unwritten);
        if (seconds > 0 && unwritten == 0 && error <= allowed) {  // a wrong product has no speed
            const std::vector<float> times = time_launches(launch, seconds);
            for (size_t i = 0; i < times.size(); ++i) printf("%s%g", i ? ", " : "", times[i]);
        }
        printf("]}\n");
        fflush(stdout);
    };

    const dim3 wide(32, 8), over_rows(n / 32, n / 8), tiles(n / TILE, n / TILE);
#ifndef VARIANTS
    run_version("naive", [&] { naive<<<over_rows, wide>>>(m.A, m.B, m.C, n); });
    run_version("coalesced", [&] { coalesced<<<over_rows, wide>>>(m.A, m.B, m.C, n); });
    run_version("tensor", [&] { tensor<<<dim3(n / 16, n / 16), 32>>>(m.halfA, m.halfB, m.C, n); });
#endif
    run_version("tiled", [&] { tiled<TILE><<<tiles, dim3(TILE, TILE)>>>(m.A, m.B, m.C, n); });
#ifdef VARIANTS
    run_version("tiled-half", [&] { tiled<TILE / 2><<<dim3(2 * n / TILE, 2 * n / TILE), dim3(TILE / 2, TILE / 2)>>>(m.A, m.B, m.C, n); });
#endif
    if (seconds > 0 && n % 128 == 0) {  // the size for a GPU; the small one has too little work for its many blocks
        run_version("registers", [&] { registers<128, 8, 8><<<dim3(n / 128, n / 128), 256>>>(m.A, m.B, m.C, n); });
        return 0;
    }
    const int side = n / (2 * TILE);
    run_version("registers", [&] { registers<2 * TILE, 8, 4><<<dim3(side, side), TILE * TILE / 4>>>(m.A, m.B, m.C, n); });
#ifdef VARIANTS
    run_version("registers-half", [&] { registers<2 * TILE, 4, 2><<<dim3(side, side), TILE * TILE>>>(m.A, m.B, m.C, n); });
#endif
    return 0;
}
