// Host code of 5.0 and 5.1: runs one kernel at one size after another, and compares each result with one that is computed here.
//
// harness KERNEL BLOCK STRIDE SIZE...         a line of JSON for each size: how many numbers are wrong, and the first of them
// harness time KERNEL BLOCK STRIDE SIZE       on a GPU: the seconds of each of many warm launches, between two events
//
// PART says which kernels are included: 0 those of the course (given.cu), 1 those of my_kernels.cu, 2 those of my_warps.cu, 3 those
// of my_first_kernels.cu.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#if PART == 0
#include "given.cu"
#elif PART == 1
#include "my_kernels.cu"
#elif PART == 2
#include "my_warps.cu"
#else
#include "my_first_kernels.cu"
#endif

namespace harness {  // so that a kernel's file may use any name for its own functions

// Ends the program with CUDA's own message when a call fails.
#define TRY(call)                                                             \
  do {                                                                        \
    cudaError_t error = (call);                                               \
    if (error != cudaSuccess) {                                               \
      printf("{\"cuda_error\": \"%s\"}\n", cudaGetErrorString(error));       \
      exit(3);                                                                \
    }                                                                         \
  } while (0)

// Numbers on the device, exactly as many as asked for, and the same numbers on the host.
struct Array {
  std::vector<float> host;
  float* device = nullptr;
  explicit Array(size_t n, const std::function<float(size_t)>& value = [](size_t) { return -1e6f; }) : host(n) {
    for (size_t i = 0; i < n; ++i) host[i] = value(i);
    TRY(cudaMalloc(&device, n * sizeof(float)));
    upload();
  }
  Array(const Array&) = delete;
  ~Array() { cudaFree(device); }
  void upload() { TRY(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice)); }
  std::vector<float> download() const {
    std::vector<float> values(host.size());
    TRY(cudaMemcpy(values.data(), device, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }
};

// One kernel at one size: how many blocks it has, how it is launched, what the result must be, and in which array. A kernel that
// adds to its result starts from the initial values of the array. A matrix has `columns` numbers per row, a list has 0.
struct Case {
  int blocks;
  std::function<void()> launch;
  Array* result;
  std::vector<float> right;
  int columns = 0;
};

// Whole numbers, whose sums up to 2^24 are exact in any order. The first is large, so that no sum is 0, and few of the right
// channel are positive, so that the sum of all stays below 2^24 for every number of elements.
float small(size_t i) { return i ? float(i * 7 % 13) - 6.0f : 100.0f; }
float mostly_negative(size_t i) { return i % 64 == 5 ? float(1 + i % 7) : small(i) - 6.0f; }
float place(size_t i) { return float(i % (1 << 24)); }
int blocks_of(int n, int block) { return (n + block - 1) / block; }

std::vector<float> make_list(size_t n, const std::function<float(size_t)>& value) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = value(i);
  return values;
}

std::vector<float> total(size_t n, const std::function<double(size_t)>& value) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += value(i);
  return {float(sum)};
}

[[noreturn]] void refuse(const char* kernel) {
  fprintf(stderr, "there is no kernel %s in part %d\n", kernel, PART);
  exit(2);
}

#if PART == 0
Case prepare(const char* kernel, int n, int block, int stride) {
  const int blocks = blocks_of(n, block);
  if (!strncmp(kernel, "column_of_", 10)) {
    Array* out = new Array(1024);
    const bool wider = !strcmp(kernel, "column_of_34");
    auto launch = [=] {
      if (wider) column_of_34<<<1, 32>>>(out->device);
      else column_of_32<<<1, 32>>>(out->device);
    };
    return {1, launch, out, make_list(1024, [](size_t i) { return 32.0f * (i % 32) + i / 32; })};
  }
  if (!strncmp(kernel, "walk_", 5)) {  // about as many rows as columns
    const int rows = std::max(1, int(std::sqrt(double(n)))), columns = n / rows;
    Array *in = new Array(size_t(rows) * columns, place), *out = new Array(size_t(rows) * columns);
    const bool along_rows = !strcmp(kernel, "walk_rows");
    auto launch = [=] {
      if (along_rows) walk_rows<<<blocks_of(rows, block), block>>>(in->device, out->device, rows, columns);
      else walk_columns<<<blocks_of(columns, block), block>>>(in->device, out->device, rows, columns);
    };
    return {blocks_of(along_rows ? rows : columns, block), launch, out, make_list(size_t(rows) * columns, place), columns};
  }
  const bool strided = !strcmp(kernel, "strided_copy"), shifted = !strcmp(kernel, "shifted_copy"), field = !strcmp(kernel, "read_field");
  const bool vector = !strcmp(kernel, "vector_copy");
  if (!strided && !shifted && !field && !vector && strcmp(kernel, "copy")) refuse(kernel);
  const size_t step = strided ? stride : field ? 4 : 1, first = shifted ? 1 : field ? 3 : 0;
  Array* in = new Array(n * step + first, place);
  Array* out = new Array(n);
  auto launch = [=] {
    if (strided) strided_copy<<<blocks, block>>>(in->device, out->device, n, stride);
    else if (shifted) shifted_copy<<<blocks, block>>>(in->device, out->device, n);
    else if (field) read_field<<<blocks, block>>>(reinterpret_cast<const Particle*>(in->device), out->device, n);
    else if (vector) vector_copy<<<blocks_of(blocks_of(n, 4), block), block>>>(in->device, out->device, n);
    else copy<<<blocks, block>>>(in->device, out->device, n);
  };
  return {blocks, launch, out, make_list(n, [=](size_t i) { return place(i * step + first); })};
}
#elif PART == 1
Case prepare(const char* kernel, int n, int block, int) {
  const int blocks = blocks_of(n, block);
  if (!strcmp(kernel, "vector_add")) {
    Array *a = new Array(n, small), *b = new Array(n, place), *sum = new Array(n);
    auto launch = [=] { vector_add<<<blocks, block>>>(a->device, b->device, sum->device, n); };
    return {blocks, launch, sum, make_list(n, [](size_t i) { return small(i) + place(i); })};
  }
  if (strcmp(kernel, "block_sum")) refuse(kernel);
  Array *x = new Array(n, small), *sum = new Array(1, [](size_t) { return 0.0f; });
  auto launch = [=] { block_sum<<<blocks, block>>>(x->device, sum->device, n); };
  return {blocks, launch, sum, total(n, small)};
}
#elif PART == 2
Case prepare(const char* kernel, int n, int block, int) {
  if (!strcmp(kernel, "transpose")) {  // about as many rows as columns, and at most as many numbers as asked for
    const int rows = std::max(1, int(std::sqrt(double(n)))), columns = n / rows;
    const dim3 grid((columns + 31) / 32, (rows + 31) / 32), threads(32, 32);
    Array *in = new Array(size_t(rows) * columns, place), *out = new Array(size_t(rows) * columns);
    auto launch = [=] { transpose<<<grid, threads>>>(in->device, out->device, rows, columns); };
    auto right = [=](size_t i) { return place(i % rows * columns + i / rows); };
    return {int(grid.x * grid.y), launch, out, make_list(size_t(rows) * columns, right), rows};
  }
  if (strcmp(kernel, "clip_sum")) refuse(kernel);
  const float limit = 3.0f;
  const int blocks = 2 * blocks_of(n, block);
  Array *left = new Array(n, small), *right = new Array(n, mostly_negative);
  Array* sum = new Array(1, [](size_t) { return 0.0f; });
  auto launch = [=] { clip_sum<<<blocks, block>>>(left->device, right->device, sum->device, n, limit); };
  auto value = [=](size_t i) { return std::max(-limit, std::min(small(i), limit)) + std::max(0.0f, mostly_negative(i)); };
  return {blocks, launch, sum, total(n, value)};
}
#else
#include "first_cases.cu"
#endif

void compare(const Case& job, int n) {
  job.launch();
  TRY(cudaGetLastError());
  TRY(cudaDeviceSynchronize());
  const std::vector<float> values = job.result->download();
  size_t wrong = 0, first = 0;
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = std::fabs(double(values[i]) - job.right[i]);
    if (off == 0) continue;
    if (wrong++ == 0) first = i;
    error = std::isfinite(off) ? std::max(error, off) : HUGE_VAL;
  }
  printf("{\"size\": %d, \"blocks\": %d, \"numbers\": %zu, \"wrong\": %zu, \"first_wrong\": %zu, ", n, job.blocks, values.size(), wrong, first);
  printf("\"columns\": %d, \"given\": \"%g\", \"right\": \"%g\", ", job.columns, values[first], job.right[first]);
  printf("\"error\": %g}\n", std::isfinite(error) ? error : 1e30);
}

#ifdef __CUDACC__
// Seconds of each of many launches. Each is timed by two events in the GPU's own queue; the clock of the processor would stop
// as soon as the launch is queued. Before each launch the L2 cache is filled with other data.
void time_launches(const Case& job) {
  const size_t flushed = size_t(256) << 20;
  const int launches = 50, warm = 5;
  char* other = nullptr;
  cudaEvent_t begin, end;
  TRY(cudaMalloc(&other, flushed));
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  for (int turn = -warm; turn < launches; ++turn) {
    TRY(cudaMemset(other, turn & 1, flushed));
    if (job.result->host.size() == 1) job.result->upload();  // a sum begins at 0
    TRY(cudaEventRecord(begin));
    job.launch();
    TRY(cudaEventRecord(end));
    TRY(cudaEventSynchronize(end));
    float ms = 0;
    TRY(cudaEventElapsedTime(&ms, begin, end));
    if (turn >= 0) printf("%s%.9g%s", turn ? ", " : "{\"seconds\": [", ms / 1e3, turn == launches - 1 ? "]}\n" : "");
  }
}
#else
void time_launches(const Case&) {
  fprintf(stderr, "times are measured only on a GPU\n");
  exit(2);
}
#endif

}  // namespace harness

int main(int count, char** words) {
  const bool timed = count > 1 && !strcmp(words[1], "time");
  const int at = timed ? 2 : 1;
  if (count < at + 4) {
    fprintf(stderr, "usage: harness [time] KERNEL BLOCK STRIDE SIZE...\n");
    return 2;
  }
  for (int word = at + 3; word < count; ++word) {
    const int n = atoi(words[word]);
    const harness::Case job = harness::prepare(words[at], n, atoi(words[at + 1]), atoi(words[at + 2]));
    harness::compare(job, n);
    if (timed) harness::time_launches(job);
  }
  return 0;
}
