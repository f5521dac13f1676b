// Another solution of 5.3: two alternating pairs of tiles, so that one barrier is enough; a thread's rows and columns are apart.
#include <cuda_runtime.h>

template <int T>
__global__ void tiled(const float* A, const float* B, float* C, int n) {
    __shared__ float a[2][T * T], b[2][T * T];
    const int x = threadIdx.x, y = threadIdx.y, place = y * T + x;
    A += (blockIdx.y * T + y) * n + x;
    B += y * n + blockIdx.x * T + x;
    float sum = 0.0f;
    for (int turn = 0; turn < n / T; ++turn) {
        float* left = a[turn % 2];  // the other pair may still be read by threads that are behind
        float* right = b[turn % 2];
        left[place] = A[turn * T];
        right[place] = B[turn * T * n];
        __syncthreads();
        for (int k = 0; k < T; ++k) sum += left[y * T + k] * right[k * T + x];
    }
    C[(blockIdx.y * T + y) * n + blockIdx.x * T + x] = sum;
}

template <int M, int K, int R>
__global__ void registers(const float* A, const float* B, float* C, int n) {
    constexpr int side = M / R, threads = side * side;
    __shared__ float a[M][K + 1], b[K][M];  // one more column, so that the numbers of a column lie in different banks
    const int x = threadIdx.x % side, y = threadIdx.x / side;
    float sums[R * R];
    for (int i = 0; i < R * R; ++i) sums[i] = 0.0f;
    for (int first = 0; first < n; first += K) {
        __syncthreads();
        for (int i = threadIdx.x; i < M * K; i += threads) {
            a[i / K][i % K] = A[(blockIdx.y * M + i / K) * n + first + i % K];
            b[i / M][i % M] = B[(first + i / M) * n + blockIdx.x * M + i % M];
        }
        __syncthreads();
        for (int k = 0; k < K; ++k) {
            float down[R];
            for (int i = 0; i < R; ++i) down[i] = a[y + i * side][k];
            for (int j = 0; j < R; ++j) {
                const float across = b[k][x + j * side];
                for (int i = 0; i < R; ++i) sums[i * R + j] += down[i] * across;
            }
        }
    }
    for (int i = 0; i < R * R; ++i)
        C[(blockIdx.y * M + y + i / R * side) * n + blockIdx.x * M + x + i % R * side] = sums[i];
}
