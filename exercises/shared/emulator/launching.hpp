// Launches: which of them are refused, and in which order blocks, warps and lanes run.
#pragma once
#include "races.hpp"
#include "threads.hpp"

namespace emulator {
constexpr uint64_t MOST_LAUNCHED = uint64_t(1) << 26;  // threads: about a minute

// Order 0 counts up, 1 counts down, 2 and 3 are two mixtures that are the same each time.
struct Order {
  int number = 0;
  Order() {
    if (const char* wanted = getenv("EMULATOR_ORDER")) number = atoi(wanted);
  }

  std::vector<unsigned> arrange(unsigned count) const {
    std::vector<unsigned> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    if (number == 1) std::reverse(numbers.begin(), numbers.end());
    uint64_t chance = uint64_t(number);
    for (unsigned i = count; number > 1 && i > 1; --i) {
      chance = chance * 6364136223846793005u + 1442695040888963407u;
      std::swap(numbers[i - 1], numbers[(chance >> 33) % i]);
    }
    return numbers;
  }
};
extern Order order;

inline uint3 place_in_grid(unsigned block) {
  return {block % grid_size.x, block / grid_size.x % grid_size.y, block / grid_size.x / grid_size.y};
}

inline std::vector<unsigned> block_order;  // of this launch

uint3 block_of_epoch(unsigned epoch) {
  const auto& begins = publishing.blocks;
  return place_in_grid(block_order[size_t(std::upper_bound(begins.begin(), begins.end(), epoch) - begins.begin()) - 1]);
}

void abandon_kernel(cudaError_t error) {
  last_error = error;
  now.aborted = true;
  now.bytes_only = false;
  threads.leave_for_good();
}

// What CUDA says of such a launch; cudaSuccess where it may run.
inline cudaError_t check_launch(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t size = uint64_t(block.x) * block.y * block.z;
  if (size == 0 || size > MOST_THREADS || block.z > 64) return cudaErrorInvalidConfiguration;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaErrorInvalidConfiguration;
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
  return shared_bytes > SHARED_LIMIT ? cudaErrorInvalidValue : cudaSuccess;
}

inline void run_blocks(void (*body)(void*), void* arguments) {
  block_order = order.arrange(grid_size.x * grid_size.y * grid_size.z);
  const std::vector<unsigned> warps = order.arrange((now.threads + WARP - 1) / WARP), lanes = order.arrange(WARP);
  for (unsigned block : block_order) {
    begin_block();
    memset(now.warp_epoch, 0, sizeof now.warp_epoch);
    block_index = place_in_grid(block);
    threads.run_block(body, arguments, warps, lanes);
    if (now.aborted) return threads.forget();
    now.report->threads += now.threads;
  }
}

void run(const char* name, dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void*), void* arguments) {
  if (is_lasting(last_error)) return;
  last_error = check_launch(grid, block, shared_bytes);
  if (last_error != cudaSuccess) return;
  Report& report = reports[name];
  report.launches++;
  const unsigned size = block.x * block.y * block.z;
  if (uint64_t(grid.x) * grid.y * grid.z * size > MOST_LAUNCHED) {
    note(report.too_many_threads, "", {}, {}, (long long)(uint64_t(grid.x) * grid.y * grid.z * size), (long long)MOST_LAUNCHED);
    last_error = cudaErrorLaunchOutOfResources;
    return;
  }
  grid_size = grid, block_size = block;
  now.report = &report, now.name = name, now.threads = size, now.dynamic_bytes = shared_bytes;
  now.aborted = now.bytes_only = false;
  now.launch_began = now.epoch + 1;
  publishing = Publishing{};
  run_blocks(body, arguments);
}
}  // namespace emulator
