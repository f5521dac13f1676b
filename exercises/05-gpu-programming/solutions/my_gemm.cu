// A solution of 5.3: one pair of tiles and two barriers; the rows and columns of a thread are adjacent.
#include <cuda_runtime.h>

template <int T>
__global__ void tiled(const float* A, const float* B, float* C, int n) {
    __shared__ float a[T][T];
    __shared__ float b[T][T];
    const int row = blockIdx.y * T + threadIdx.y;
    const int column = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += T) {
        a[threadIdx.y][threadIdx.x] = A[row * n + first + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(first + threadIdx.y) * n + column];
        __syncthreads();  // both tiles are complete
        for (int k = 0; k < T; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();  // no thread reads them any more
    }
    C[row * n + column] = sum;
}

template <int M, int K, int R>
__global__ void registers(const float* A, const float* B, float* C, int n) {
    __shared__ float a[K][M];  // A's slab is transposed: a thread reads R neighbours
    __shared__ float b[K][M];
    const int threads = (M / R) * (M / R);
    const int down = threadIdx.x / (M / R) * R;
    const int across = threadIdx.x % (M / R) * R;
    const float* above = A + blockIdx.y * M * n;
    const float* left = B + blockIdx.x * M;
    float sums[R][R] = {};
    for (int first = 0; first < n; first += K) {
        for (int i = threadIdx.x; i < M * K; i += threads) a[i % K][i / K] = above[i / K * n + first + i % K];
        for (int i = threadIdx.x; i < K * M; i += threads) b[i / M][i % M] = left[(first + i / M) * n + i % M];
        __syncthreads();  // both slabs are complete
        for (int k = 0; k < K; ++k) {
            float mine[R], theirs[R];
            for (int i = 0; i < R; ++i) mine[i] = a[k][down + i];
            for (int j = 0; j < R; ++j) theirs[j] = b[k][across + j];
            for (int i = 0; i < R; ++i)
                for (int j = 0; j < R; ++j) sums[i][j] += mine[i] * theirs[j];
        }
        __syncthreads();  // no thread reads the slabs any more
    }
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < R; ++j) C[(blockIdx.y * M + down + i) * n + blockIdx.x * M + across + j] = sums[i][j];
}
