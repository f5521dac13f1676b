// Launches that need not run again. Many programs launch a kernel again and again to measure its time. If a kernel has the same
// arguments and the memory has the same contents as before an earlier launch, the result of that launch is copied.
#pragma once
#include "hooks.hpp"
#include "memory.hpp"

#include <utility>

namespace emulator {
struct Chunk {
  char* begin;
  size_t bytes;
  uint64_t digest;
  bool operator==(const Chunk& other) const { return std::tie(begin, bytes, digest) == std::tie(other.begin, other.bytes, other.digest); }
};

inline uint64_t digest(const char* begin, size_t bytes) {
  constexpr unsigned LANES = 8;
  constexpr size_t ROW = LANES * sizeof(uint64_t);
  uint64_t lanes[LANES] = {}, words[LANES];
  const auto add = [&lanes](unsigned lane, uint64_t word) {
    const uint64_t mixed = lanes[lane] ^ word;
    lanes[lane] = (mixed << 32 | mixed >> 32) * 0x9e3779b97f4a7c15u;
  };
  for (size_t done = 0; done < bytes; done += ROW) {
    if (bytes - done < ROW) memset(words, 0, ROW);
    memcpy(words, begin + done, std::min(ROW, bytes - done));
    for (unsigned lane = 0; lane < LANES; ++lane) add(lane, words[lane]);
  }
  for (unsigned lane = 1; lane < LANES; ++lane) add(0, lanes[lane]);
  return lanes[0];
}

// The memory that kernels may read and write.
inline std::vector<Chunk> list_memory() {
  std::vector<Chunk> chunks;
  const auto add = [&chunks](char* begin, size_t bytes) {
    for (size_t done = 0; done < bytes; done += PAGE) {
      const size_t size = std::min(PAGE, bytes - done);
      chunks.push_back({begin + done, size, digest(begin + done, size)});
    }
  };
  for (const Allocation& allocation : arena.allocations)
    if (!allocation.freed) add(reinterpret_cast<char*>(allocation.begin), allocation.bytes);
  add(__start_emulator_variables, size_t(__stop_emulator_variables - __start_emulator_variables));
  add(__start_emulator_uploaded, size_t(__stop_emulator_uploaded - __start_emulator_uploaded));
  return chunks;
}

class Repeats {
 public:
  // The name of the kernel if the launch repeats an earlier one, and is done now. Null otherwise. `key` is its kernel with its
  // configuration and arguments.
  const std::string* replay(const std::string& key, uint64_t threads) {
    if (arena.live > MAX_BYTES_OF_THREAD * threads || misses_[now.name] > MAX_MISSES) return nullptr;
    before_ = list_memory();
    Earlier& earlier = earlier_[key];
    if (!earlier.is_known || earlier.memory != before_) {
      running_ = &earlier;
      return nullptr;
    }
    for (const auto& [begin, contents] : earlier.changes) memcpy(begin, contents.data(), contents.size());
    misses_[earlier.kernel] = 0;
    return &earlier.kernel;
  }

  // A launch that is no repetition has run. Keep what it changed.
  void keep() {
    if (!running_) return;
    Earlier& earlier = *std::exchange(running_, nullptr);
    misses_[now.name]++;
    for (const auto& change : earlier.changes) kept_ -= change.second.size();
    earlier = {};
    if (now.varies) return;
    const std::vector<Chunk> after = list_memory();
    for (size_t i = 0; i < after.size(); ++i) {
      const auto [begin, bytes, digest] = after[i];
      if (digest == before_[i].digest) continue;
      kept_ += bytes;
      earlier.changes.emplace_back(begin, std::string(begin, kept_ <= MAX_KEPT_BYTES ? bytes : 0));
    }
    earlier.kernel = now.name;
    earlier.is_known = kept_ <= MAX_KEPT_BYTES;
    earlier.memory.swap(before_);
  }

 private:
  // To compare more memory for each thread takes longer than to run the launch. After so many launches with other memory, those of
  // the kernel are no longer compared.
  static constexpr size_t MAX_BYTES_OF_THREAD = 1024, MAX_KEPT_BYTES = 256 << 20;
  static constexpr unsigned MAX_MISSES = 4;

  struct Earlier {
    bool is_known = false;
    std::string kernel;
    std::vector<Chunk> memory;  // before the launch
    std::vector<std::pair<char*, std::string>> changes;
  };
  std::map<std::string, Earlier> earlier_;
  std::map<std::string, unsigned> misses_;  // of each kernel, since its last repetition
  Earlier* running_ = nullptr;
  std::vector<Chunk> before_;
  size_t kept_ = 0;  // bytes
};
inline Repeats repeats;
}  // namespace emulator
