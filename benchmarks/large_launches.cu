// Three kernels with many more accesses than are watched: `tiles`, `bodies` or `stencil`.
#include <cstdio>
#include <cstring>
#include <vector>

enum { TILE = 16, N = 768, BODIES = 16384, SIDE = 128, STEPS = 20 };

__global__ void multiply_tiles(const float* a, const float* b, float* c) {
  __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0;
  for (int tile = 0; tile < N; tile += TILE) {
    of_a[y][x] = a[row * N + tile + x];
    of_b[y][x] = b[(tile + y) * N + column];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += of_a[y][k] * of_b[k][x];
    __syncthreads();
  }
  c[row * N + column] = sum;
}

__global__ void attract(const float4* bodies, float3* forces) {
  const int own = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 body = bodies[own];
  float3 force = {0, 0, 0};
  for (int i = 0; i < BODIES; ++i) {
    const float x = bodies[i].x - body.x, y = bodies[i].y - body.y, z = bodies[i].z - body.z;
    const float inverse = rsqrtf(x * x + y * y + z * z + 1e-3f), pull = bodies[i].w * inverse * inverse * inverse;
    force.x += x * pull, force.y += y * pull, force.z += z * pull;
  }
  forces[own] = force;
}

__global__ void diffuse(const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x == 0 || y == 0 || z == 0 || x == SIDE - 1 || y == SIDE - 1 || z == SIDE - 1) return;
  const float* at = from + (z * SIDE + y) * SIDE + x;
  const float around = at[-1] + at[1] + at[-SIDE] + at[SIDE] + at[-SIDE * SIDE] + at[SIDE * SIDE];
  to[at - from] = 0.4f * at[0] + 0.1f * around;
}

float* upload(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(i % 97) / 97;
  float* device;
  cudaMalloc(&device, count * sizeof(float));
  cudaMemcpy(device, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  return device;
}

int main(int, char** argv) {
  float *first = nullptr, *second = nullptr;
  if (!strcmp(argv[1], "tiles")) {
    first = upload(3 * N * N);
    multiply_tiles<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(first, first + N * N, first + 2 * N * N);
  } else if (!strcmp(argv[1], "bodies")) {
    first = upload(4 * BODIES), second = upload(3 * BODIES);
    attract<<<BODIES / 128, 128>>>((float4*)first, (float3*)second);
  } else {
    first = upload(SIDE * SIDE * SIDE), second = upload(SIDE * SIDE * SIDE);
    for (int step = 0; step < STEPS; ++step)
      diffuse<<<dim3(SIDE / 32, SIDE / 8, SIDE), dim3(32, 8)>>>(step % 2 ? second : first, step % 2 ? first : second);
  }
  return cudaDeviceSynchronize();
}
