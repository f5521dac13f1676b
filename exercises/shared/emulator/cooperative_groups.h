// Cooperative groups: the grid, the block, tiles of a warp, and the lanes that are active at a place.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {
namespace details {
inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned block_of_grid() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
inline unsigned blocks_of_grid() { return gridDim.x * gridDim.y * gridDim.z; }
inline uint64_t exchanged[1024];  // by the threads of a tile of several warps, for the one block that runs
}  // namespace details

// A part of a block, for groups of any type. `mask` are its lanes, or 0 for the whole block. `whole` is the size of the group that
// was divided, and `index` counts such parts from the block's first thread.
class thread_group {
 public:
  thread_group(unsigned mask, unsigned size, unsigned index = 0, unsigned whole = details::threads_of_block())
      : mask_(mask), size_(size), index_(index), whole_(whole) {}

  void sync() const { mask_ ? __syncwarp(mask_) : __syncthreads(); }
  unsigned long long size() const { return size_; }
  unsigned long long num_threads() const { return size_; }
  unsigned long long thread_rank() const {
    const unsigned thread = details::thread_of_block();
    return mask_ ? unsigned(__builtin_popcount(mask_ & ((1u << thread % 32) - 1))) : thread;
  }
  bool is_valid() const { return true; }
  unsigned get_mask() const { return mask_; }

 protected:
  unsigned count_parts() const { return (whole_ + size_ - 1) / size_; }
  unsigned mask_, size_, index_, whole_;
};

// Empty, as on GPUs from compute capability 8.0 on.
template <unsigned Threads = 1024>
struct block_tile_memory {};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(0, details::threads_of_block()) {}
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
template <unsigned Threads>
thread_block this_thread_block(block_tile_memory<Threads>&) {
  return {};
}

// Lanes of one warp, which can exchange values. Ranks count the lanes of the group.
class lanes_of_warp : public thread_group {
 public:
  using thread_group::thread_group;
  unsigned meta_group_rank() const { return index_ % count_parts(); }
  unsigned meta_group_size() const { return count_parts(); }

#define EMULATOR_PLACE __builtin_return_address(0)
  template <class T>
  EMULATOR_UNSEEN T shfl(T value, int rank) const {
    return emulator::shuffle(mask_, value, lane_of(unsigned(rank) % size_), EMULATOR_PLACE);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_down(T value, unsigned distance) const {
    const unsigned rank = unsigned(thread_rank());
    return emulator::shuffle(mask_, value, lane_of(rank + distance < size_ ? rank + distance : rank), EMULATOR_PLACE);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_up(T value, unsigned distance) const {
    const unsigned rank = unsigned(thread_rank());
    return emulator::shuffle(mask_, value, lane_of(rank >= distance ? rank - distance : rank), EMULATOR_PLACE);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_xor(T value, unsigned bits) const {
    const unsigned rank = unsigned(thread_rank());
    return emulator::shuffle(mask_, value, lane_of((rank ^ bits) < size_ ? rank ^ bits : rank), EMULATOR_PLACE);
  }
#undef EMULATOR_PLACE
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return pack(__ballot_sync(mask_, predicate)); }
  template <class T>
  unsigned match_any(T value) const {
    return pack(__match_any_sync(mask_, value));
  }
  template <class T>
  unsigned match_all(T value, int& same) const {
    return pack(__match_all_sync(mask_, value, &same));
  }

 private:
  int lane_of(unsigned rank) const {
    for (int lane = 0; lane < 32; ++lane)
      if ((mask_ >> lane & 1) && rank-- == 0) return lane;
    return 0;
  }
  // The bits of this group's lanes, as bits of their ranks.
  unsigned pack(unsigned lanes) const {
    unsigned packed = 0;
    for (int lane = 0, rank = 0; lane < 32; ++lane)
      if (mask_ >> lane & 1) packed |= (lanes >> lane & 1) << rank++;
    return packed;
  }
};

class coalesced_group : public lanes_of_warp {
 public:
  explicit coalesced_group(unsigned mask, unsigned index = 0, unsigned parts = 1)
      : lanes_of_warp(mask, unsigned(__builtin_popcount(mask)), index, parts * unsigned(__builtin_popcount(mask))) {}
};
inline __attribute__((always_inline)) coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned N, class Parent = void, bool HasSeveralWarps = (N > 32)>
class thread_block_tile : public lanes_of_warp {
  static_assert(N > 0 && N <= 32 && (N & (N - 1)) == 0, "the emulator has tiles of 1, 2, 4, 8, 16 or 32 threads");

 public:
  explicit thread_block_tile(unsigned whole) : lanes_of_warp(find_mask(), N, details::thread_of_block() / N, whole) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<N, Other>& other) : lanes_of_warp(other) {}
  static constexpr unsigned long long size() { return N; }
  static constexpr unsigned long long num_threads() { return N; }

 private:
  static unsigned find_mask() {
    const unsigned first = details::thread_of_block() % 32 / N * N;
    return (N == 32 ? ~0u : (1u << N % 32) - 1) << first;
  }
};
template <unsigned N, class Parent>
class thread_block_tile<N, Parent, true> : public thread_group {
  static_assert(N <= 1024 && (N & (N - 1)) == 0, "the emulator has tiles of 64, 128, 256, 512 or 1024 threads");

 public:
  explicit thread_block_tile(unsigned whole) : thread_group(0, N, details::thread_of_block() / N, whole) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<N, Other>& other) : thread_group(other) {}
  EMULATOR_UNSEEN void sync() const { emulator::meet_at(emulator::PTX_BARRIERS + 1024 / N + index_, N, true); }
  static constexpr unsigned long long size() { return N; }
  static constexpr unsigned long long num_threads() { return N; }
  unsigned long long thread_rank() const { return details::thread_of_block() % N; }
  unsigned meta_group_rank() const { return index_ % count_parts(); }
  unsigned meta_group_size() const { return count_parts(); }
  template <class T>
  EMULATOR_UNSEEN T shfl(T value, int rank) const {
    return take(value, unsigned(rank) % N);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_down(T value, unsigned distance) const {
    const unsigned rank = unsigned(thread_rank());
    return take(value, rank + distance < N ? rank + distance : rank);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_up(T value, unsigned distance) const {
    const unsigned rank = unsigned(thread_rank());
    return take(value, rank >= distance ? rank - distance : rank);
  }
  template <class T>
  EMULATOR_UNSEEN T shfl_xor(T value, unsigned bits) const {
    return take(value, unsigned(thread_rank()) ^ (bits % N));
  }

 private:
  template <class T>
  EMULATOR_UNSEEN T take(T value, unsigned rank) const {
    uint64_t words[(sizeof(T) + 7) / 8] = {};
    memcpy(words, &value, sizeof value);
    for (uint64_t& word : words) {
      details::exchanged[details::thread_of_block()] = word;
      sync();
      word = details::exchanged[index_ * N + rank];
      sync();
    }
    memcpy(&value, words, sizeof value);
    return value;
  }
};
template <unsigned N, class Parent>
thread_block_tile<N, Parent> tiled_partition(const Parent& parent) {
  return thread_block_tile<N, Parent>(unsigned(parent.num_threads()));
}
inline lanes_of_warp tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned thread = details::thread_of_block(), first = thread % 32 / size * size;
  return {(size >= 32 ? ~0u : (1u << size) - 1) << first, size, thread / size, unsigned(parent.size())};
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned tile = unsigned(parent.thread_rank()) / size;
  unsigned mask = 0, rank = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (parent.get_mask() >> lane & 1) mask |= unsigned(rank++ / size == tile) << lane;
  return coalesced_group(mask, tile, (unsigned(parent.size()) + size - 1) / size);
}
// The lanes of a group that have the same label.
template <class Label>
coalesced_group labeled_partition(const lanes_of_warp& group, Label label) {
  return coalesced_group(__match_any_sync(group.get_mask(), label));
}
inline coalesced_group binary_partition(const lanes_of_warp& group, bool predicate) {
  return labeled_partition(group, predicate);
}

class grid_group {
 public:
  EMULATOR_UNSEEN void sync() const { emulator::wait_for_grid(__builtin_return_address(0)); }
  bool is_valid() const { return true; }
  unsigned long long size() const {
    return (unsigned long long)details::blocks_of_grid() * details::threads_of_block();
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    return (unsigned long long)details::block_of_grid() * details::threads_of_block() + details::thread_of_block();
  }
  unsigned long long num_blocks() const { return details::blocks_of_grid(); }
  unsigned long long block_rank() const { return details::block_of_grid(); }
  dim3 block_index() const { return blockIdx; }
  dim3 group_dim() const { return gridDim; }
  dim3 dim_blocks() const { return gridDim; }
};
inline grid_group this_grid() { return {}; }

template <class G>
void sync(const G& group) {
  group.sync();
}
template <class G>
unsigned long long thread_rank(const G& group) {
  return group.thread_rank();
}
template <class G>
unsigned long long group_size(const G& group) {
  return group.size();
}

// --- functions of all lanes of a group -------------------------------------------------------------------------------------
#define EMULATOR_OPERATION(NAME, RESULT)          \
  template <class T>                              \
  struct NAME {                                   \
    T operator()(T a, T b) const { return RESULT; } \
  };
EMULATOR_OPERATION(plus, a + b)
EMULATOR_OPERATION(less, b < a ? b : a)
EMULATOR_OPERATION(greater, a < b ? b : a)
EMULATOR_OPERATION(bit_and, a & b)
EMULATOR_OPERATION(bit_or, a | b)
EMULATOR_OPERATION(bit_xor, a ^ b)
#undef EMULATOR_OPERATION

template <class G, class T, class F>
T reduce(const G& group, T value, F combine) {
  T sum = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) sum = combine(sum, group.shfl(value, int(rank)));
  return sum;
}
template <class G, class T, class F>
T inclusive_scan(const G& group, T value, F combine) {
  for (unsigned distance = 1; distance < group.num_threads(); distance *= 2) {
    const T earlier = group.shfl_up(value, distance);
    if (group.thread_rank() >= distance) value = combine(earlier, value);
  }
  return value;
}
template <class G, class T>
T inclusive_scan(const G& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
template <class G, class T, class F>
T exclusive_scan(const G& group, T value, F combine) {
  const T earlier = group.shfl_up(inclusive_scan(group, value, combine), 1);
  return group.thread_rank() ? earlier : T();
}
template <class G, class T>
T exclusive_scan(const G& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

// Each thread copies a share. The copies of a call are a group that is in flight until a wait.
namespace details {
template <class G, class T>
__attribute__((no_sanitize("thread"))) void copy_share(const G& group, T* to, const T* from, size_t bytes, void* caller) {
  for (size_t i = group.thread_rank(); i < bytes / sizeof(T); i += group.size())
    emulator::copy_async(to + i, from + i, sizeof(T), sizeof(T), caller);
}
}  // namespace details
template <class G, class T>
EMULATOR_UNSEEN void memcpy_async(const G& group, T* to, const T* from, size_t bytes) {
  details::copy_share(group, to, from, bytes, __builtin_return_address(0));
  emulator::commit_copies();
}
template <class G, class T, class Layout>
EMULATOR_UNSEEN void memcpy_async(const G& group, T* to, Layout to_layout, const T* from, Layout from_layout) {
  const Layout count = to_layout < from_layout ? to_layout : from_layout;
  details::copy_share(group, to, from, count * sizeof(T), __builtin_return_address(0));
  emulator::commit_copies();
}
template <class G>
void wait(const G& group) {
  emulator::wait_for_copies(0);
  group.sync();
}
template <unsigned Stages, class G>
void wait_prior(const G& group) {
  emulator::wait_for_copies(Stages);
  group.sync();
}
}  // namespace cooperative_groups
