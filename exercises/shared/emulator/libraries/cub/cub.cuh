// CUB: warp-wide and block-wide functions on the emulator's shuffles and shared memory, and device-wide functions on the CPU.
//
// Block-wide sums and scans exchange through shuffles, shared memory and one barrier, as NVIDIA's do; in sorts of
// a block, each thread counts the smaller keys. The counted traffic is this code's, not NVIDIA's.
#pragma once
#include <host_access.h>
#include <algorithm>
#include <chrono>  // programs rely on it
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <functional>
#include <iterator>
#include <numeric>
#include <thrust/device_vector.h>
#include <vector>

#define CUB_VERSION 200800
#define CUB_PTX_ARCH 800
#define CUB_RUNTIME_FUNCTION
#define CubDebugExit(call)                                                                                        \
  do {                                                                                                            \
    if (const cudaError_t error = (call)) {                                                                       \
      fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", int(error), __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                                                    \
    }                                                                                                             \
  } while (0)
#define CubDebug(call) (call)

namespace cub {
// --- iterators ---------------------------------------------------------------------------------------------------------------
template <class T, class = std::ptrdiff_t>
using ConstantInputIterator = thrust::constant_iterator<T>;
template <class T, class = std::ptrdiff_t>
using CountingInputIterator = thrust::counting_iterator<T>;
template <class T, class F, class I, class = std::ptrdiff_t>
using TransformInputIterator = thrust::transform_iterator<F, I>;
template <class = std::ptrdiff_t>
using DiscardOutputIterator = thrust::discard_iterator<>;

// --- function objects --------------------------------------------------------------------------------------------------------
typedef std::plus<> Sum;
typedef std::minus<> Difference;
typedef std::divides<> Division;
typedef std::equal_to<> Equality;
typedef std::not_equal_to<> Inequality;
struct Max {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <class K, class V>
struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() = default;
  KeyValuePair(const K& key_, const V& value_) : key(key_), value(value_) {}
};
struct ArgMax {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };

namespace details {
inline unsigned thread_of_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// Elements in shared memory, without a constructor, because shared memory has none.
template <class T, int N>
struct Storage {
  alignas(T) unsigned char bytes[N * sizeof(T)];
  T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
};

// The first `count` lanes after lane `first` of a warp.
inline unsigned mask_of(int first, int count) { return (count >= 32 ? ~0u : (1u << count) - 1) << first; }

// The sum of the first `valid` of a group of lanes, in its lowest lane. `lane` and `size` count within the group.
template <class T, class F>
T reduce_lanes(T value, F function, int first, int lane, int size, int valid) {
  for (int distance = 1; distance < size; distance *= 2) {
    const int from = lane + distance < size ? lane + distance : lane;
    const T other = __shfl_sync(mask_of(first, size), value, first + from);
    if (lane + distance < valid && lane % (2 * distance) == 0) value = function(value, other);
  }
  return value;
}
template <class T, class F>
T scan_lanes(T value, F function, int first, int lane, int size) {
  for (int distance = 1; distance < size; distance *= 2) {
    const T other = __shfl_sync(mask_of(first, size), value, first + (lane >= distance ? lane - distance : lane));
    if (lane >= distance) value = function(other, value);
  }
  return value;
}
template <class T, class F, int K>
T reduce_items(T (&items)[K], F function) {
  T sum = items[0];
  for (int i = 1; i < K; ++i) sum = function(sum, items[i]);
  return sum;
}
}  // namespace details

// --- warps -------------------------------------------------------------------------------------------------------------------
template <class T, int W = 32, int ARCH = 0>
class WarpReduce {
 public:
  struct TempStorage {
    char unused;
  };
  WarpReduce(TempStorage&) {}

  T Sum(T value) { return Reduce(value, cub::Sum()); }
  T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
  template <class F>
  T Reduce(T value, F function, int valid = W) {
    const int warp_lane = int(details::thread_of_block() % 32);
    return details::reduce_lanes(value, function, warp_lane / W * W, warp_lane % W, W, valid);
  }
};
template <class T, int W = 32, int ARCH = 0>
class WarpScan {
 public:
  struct TempStorage {
    char unused;
  };
  WarpScan(TempStorage&) {}

  void InclusiveSum(T value, T& result) { InclusiveScan(value, result, cub::Sum()); }
  void InclusiveSum(T value, T& result, T& total) { InclusiveScan(value, result, cub::Sum(), total); }
  void ExclusiveSum(T value, T& result) { ExclusiveScan(value, result, T(0), cub::Sum()); }
  void ExclusiveSum(T value, T& result, T& total) { ExclusiveScan(value, result, T(0), cub::Sum(), total); }
  template <class F>
  void InclusiveScan(T value, T& result, F function) {
    const int lane = int(details::thread_of_block() % 32);
    result = details::scan_lanes(value, function, lane / W * W, lane % W, W);
  }
  template <class F>
  void InclusiveScan(T value, T& result, F function, T& total) {
    InclusiveScan(value, result, function);
    total = Broadcast(result, W - 1);
  }
  template <class F>
  void ExclusiveScan(T value, T& result, T initial, F function) {
    T total;
    ExclusiveScan(value, result, initial, function, total);
  }
  template <class F>
  void ExclusiveScan(T value, T& result, T initial, F function, T& total) {
    const int lane = int(details::thread_of_block() % 32);
    T inclusive;
    InclusiveScan(value, inclusive, function, total);
    const T before = __shfl_sync(details::mask_of(lane / W * W, W), inclusive, lane % W ? lane - 1 : lane);
    result = lane % W ? function(initial, before) : initial;
  }
  T Broadcast(T value, int lane) {
    const int first = int(details::thread_of_block() % 32) / W * W;
    return __shfl_sync(details::mask_of(first, W), value, first + lane);
  }
};

// --- blocks ------------------------------------------------------------------------------------------------------------------
namespace details {
template <int X, int Y, int Z>
struct Block {
  static constexpr int THREADS = X * Y * Z, WARPS = (THREADS + 31) / 32;
  const int thread = int(thread_of_block()), warp = thread / 32, lane = thread % 32;
  const int lanes = THREADS - 32 * warp < 32 ? THREADS - 32 * warp : 32;
};
}  // namespace details

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int ARCH = 0>
class BlockReduce : details::Block<X, Y, Z> {
  using Block = details::Block<X, Y, Z>;

 public:
  using TempStorage = details::Storage<T, Block::WARPS>;
  BlockReduce(TempStorage& storage) : storage_(storage) {}

  T Sum(T value) { return Reduce(value, cub::Sum()); }
  T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
  template <int K>
  T Sum(T (&items)[K]) {
    return Reduce(items, cub::Sum());
  }
  template <int K, class F>
  T Reduce(T (&items)[K], F function) {
    return Reduce(details::reduce_items(items, function), function);
  }
  // The sum of the values of the first `valid` threads. Only thread 0 gets it.
  template <class F>
  T Reduce(T value, F function, int valid = Block::THREADS) {
    value = details::reduce_lanes(value, function, 0, this->lane, this->lanes, valid - 32 * this->warp);
    if (this->lane == 0) storage_[this->warp] = value;
    __syncthreads();
    if (this->thread == 0)
      for (int warp = 1; 32 * warp < valid && warp < Block::WARPS; ++warp) value = function(value, storage_[warp]);
    return value;
  }

 private:
  TempStorage& storage_;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int ARCH = 0>
class BlockScan : details::Block<X, Y, Z> {
  using Block = details::Block<X, Y, Z>;

 public:
  struct TempStorage {
    details::Storage<T, Block::WARPS> totals;
    details::Storage<T, 1> prefix;
  };
  BlockScan(TempStorage& storage) : storage_(storage) {}

  void InclusiveSum(T value, T& result) { InclusiveScan(value, result, cub::Sum()); }
  void InclusiveSum(T value, T& result, T& total) { InclusiveScan(value, result, cub::Sum(), total); }
  void ExclusiveSum(T value, T& result) { ExclusiveScan(value, result, T(0), cub::Sum()); }
  void ExclusiveSum(T value, T& result, T& total) { ExclusiveScan(value, result, T(0), cub::Sum(), total); }
  template <class F>
  void InclusiveScan(T value, T& result, F function) {
    T total;
    InclusiveScan(value, result, function, total);
  }
  template <class F>
  void InclusiveScan(T value, T& result, F function, T& total) {
    bool is_first;
    const T before = sum_before(value, function, is_first, total);
    result = is_first ? value : function(before, value);
  }
  template <class F>
  void ExclusiveScan(T value, T& result, T initial, F function) {
    T total;
    ExclusiveScan(value, result, initial, function, total);
  }
  template <class F>
  void ExclusiveScan(T value, T& result, T initial, F function, T& total) {
    bool is_first;
    const T before = sum_before(value, function, is_first, total);
    result = is_first ? initial : function(initial, before);
  }
  // With a function that gets the block's total and returns what comes before the block. The first warp calls it.
  template <class P>
  auto ExclusiveSum(T value, T& result, P& prefix) -> decltype(prefix(value), void()) {
    T total, inner;
    ExclusiveSum(value, inner, total);
    result = share_prefix(prefix, total) + inner;
  }
  template <class P>
  auto InclusiveSum(T value, T& result, P& prefix) -> decltype(prefix(value), void()) {
    T total, inner;
    InclusiveSum(value, inner, total);
    result = share_prefix(prefix, total) + inner;
  }

  template <int K>
  void InclusiveSum(T (&items)[K], T (&results)[K]) {
    T total;
    InclusiveScan(items, results, cub::Sum(), total);
  }
  template <int K>
  void InclusiveSum(T (&items)[K], T (&results)[K], T& total) {
    InclusiveScan(items, results, cub::Sum(), total);
  }
  template <int K, class F>
  void InclusiveScan(T (&items)[K], T (&results)[K], F function) {
    T total;
    InclusiveScan(items, results, function, total);
  }
  template <int K, class F>
  void InclusiveScan(T (&items)[K], T (&results)[K], F function, T& total) {
    bool is_first;
    T sum = sum_before(details::reduce_items(items, function), function, is_first, total);
    for (int i = 0; i < K; ++i) results[i] = sum = is_first && i == 0 ? items[0] : function(sum, items[i]);
  }
  template <int K>
  void ExclusiveSum(T (&items)[K], T (&results)[K]) {
    T total;
    ExclusiveScan(items, results, T(0), cub::Sum(), total);
  }
  template <int K>
  void ExclusiveSum(T (&items)[K], T (&results)[K], T& total) {
    ExclusiveScan(items, results, T(0), cub::Sum(), total);
  }
  template <int K, class P>
  auto ExclusiveSum(T (&items)[K], T (&results)[K], P& prefix) -> decltype(prefix(items[0]), void()) {
    T total;
    ExclusiveScan(items, results, T(0), cub::Sum(), total);
    const T before = share_prefix(prefix, total);
    for (T& result : results) result = before + result;
  }
  template <int K, class F>
  void ExclusiveScan(T (&items)[K], T (&results)[K], T initial, F function) {
    T total;
    ExclusiveScan(items, results, initial, function, total);
  }
  template <int K, class F>
  void ExclusiveScan(T (&items)[K], T (&results)[K], T initial, F function, T& total) {
    bool is_first;
    const T before = sum_before(details::reduce_items(items, function), function, is_first, total);
    T sum = is_first ? initial : function(initial, before);
    for (int i = 0; i < K; ++i) {
      const T item = items[i];  // the results may replace the items
      results[i] = sum;
      sum = function(sum, item);
    }
  }

 private:
  // The sum of all threads before this one, which the first one does not have.
  template <class F>
  T sum_before(T value, F function, bool& is_first, T& total) {
    const T inclusive = details::scan_lanes(value, function, 0, this->lane, this->lanes);
    T before = __shfl_sync(details::mask_of(0, this->lanes), inclusive, this->lane ? this->lane - 1 : 0);
    if (this->lane == this->lanes - 1) storage_.totals[this->warp] = inclusive;
    __syncthreads();
    is_first = this->thread == 0;
    T sum = storage_.totals[0];
    for (int warp = 1; warp < Block::WARPS; ++warp) {
      if (warp == this->warp) before = this->lane ? function(sum, before) : sum;
      sum = function(sum, storage_.totals[warp]);
    }
    total = sum;
    return before;
  }
  template <class P>
  T share_prefix(P& prefix, T total) {
    if (this->warp == 0) {
      const T before = prefix(total);
      if (this->lane == 0) storage_.prefix[0] = before;
    }
    __syncthreads();
    return storage_.prefix[0];
  }
  TempStorage& storage_;
};

// Loads and stores in a blocked arrangement (thread t has the elements from K t on); STRIPED ones take every X-th.
template <class T, int X, int K, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int ARCH = 0>
class BlockLoad : details::Block<X, Y, Z> {
 public:
  struct TempStorage {
    char unused;
  };
  BlockLoad() = default;
  BlockLoad(TempStorage&) {}
  template <class I>
  void Load(I from, T (&items)[K]) {
    for (int i = 0; i < K; ++i) items[i] = from[place(i)];
  }
  template <class I>
  void Load(I from, T (&items)[K], int valid) {
    for (int i = 0; i < K; ++i)
      if (place(i) < valid) items[i] = from[place(i)];
  }
  template <class I, class D>
  void Load(I from, T (&items)[K], int valid, D missing) {
    for (int i = 0; i < K; ++i) items[i] = place(i) < valid ? T(from[place(i)]) : T(missing);
  }

 private:
  int place(int i) const { return ALGORITHM == BLOCK_LOAD_STRIPED ? this->thread + i * this->THREADS : this->thread * K + i; }
};
template <class T, int X, int K, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int ARCH = 0>
class BlockStore : details::Block<X, Y, Z> {
 public:
  struct TempStorage {
    char unused;
  };
  BlockStore() = default;
  BlockStore(TempStorage&) {}
  template <class I>
  void Store(I to, T (&items)[K]) {
    for (int i = 0; i < K; ++i) to[place(i)] = items[i];
  }
  template <class I>
  void Store(I to, T (&items)[K], int valid) {
    for (int i = 0; i < K; ++i)
      if (place(i) < valid) to[place(i)] = items[i];
  }

 private:
  int place(int i) const { return ALGORITHM == BLOCK_STORE_STRIPED ? this->thread + i * this->THREADS : this->thread * K + i; }
};
template <int X, class T, class I, int K>
void LoadDirectStriped(int thread, I from, T (&items)[K]) {
  for (int i = 0; i < K; ++i) items[i] = from[thread + i * X];
}
template <int X, class T, class I, int K>
void StoreDirectStriped(int thread, I to, T (&items)[K]) {
  for (int i = 0; i < K; ++i) to[thread + i * X] = items[i];
}
template <class T, class I, int K>
void LoadDirectBlocked(int thread, I from, T (&items)[K]) {
  for (int i = 0; i < K; ++i) items[i] = from[thread * K + i];
}
template <class T, class I, int K>
void StoreDirectBlocked(int thread, I to, T (&items)[K]) {
  for (int i = 0; i < K; ++i) to[thread * K + i] = items[i];
}

namespace details {
// The bits [begin, end) of a key, as a number that sorts as the keys do.
template <class T>
__attribute__((always_inline)) inline unsigned long long bits_of(const T& key, int begin, int end) {
  unsigned long long bits = 0;
  memcpy(&bits, &key, sizeof key);
  constexpr unsigned long long SIGN = 1ull << (8 * sizeof(T) - 1);
  if constexpr (std::is_integral_v<T>) {
    if (std::is_signed_v<T>) bits ^= SIGN;
  } else {
    bits = bits & SIGN ? ~bits & (SIGN | (SIGN - 1)) : bits | SIGN;
  }
  bits >>= begin;
  return end - begin >= 64 ? bits : bits & ((1ull << (end - begin)) - 1);
}
struct None {};
// Sorts by the keys' bits; equal keys keep their order.
template <class K, class V>
EMULATOR_FAST void sort_pairs(const K* keys, K* keys_out, const V* values, V* values_out, size_t count, bool descending,
                              int begin, int end) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t(0));
  std::stable_sort(places.begin(), places.end(), [=](size_t a, size_t b) {
    const auto first = bits_of(keys[a], begin, end), second = bits_of(keys[b], begin, end);
    return descending ? second < first : first < second;
  });
  const std::vector<K> old(keys, keys + count);
  for (size_t i = 0; i < count; ++i) keys_out[i] = old[places[i]];
  if constexpr (!std::is_same_v<V, None>) {
    const std::vector<V> old_values(values, values + count);
    for (size_t i = 0; i < count; ++i) values_out[i] = old_values[places[i]];
  }
}
// How many keys come before the one at `place` when they are sorted. These reads are not counted.
template <class T>
EMULATOR_FAST int count_before(const T* keys, int count, int place, bool descending, int begin, int end) {
  const auto inner = bits_of(keys[place], begin, end);
  int before = 0;
  for (int i = 0; i < count; ++i) {
    const auto other = bits_of(keys[i], begin, end);
    before += (descending ? other > inner : other < inner) || (other == inner && i < place);
  }
  return before;
}
}  // namespace details

typedef details::None NullType;
template <class T, int X, int K, class V = NullType, int R = 4, bool M = true, BlockScanAlgorithm S = BLOCK_SCAN_WARP_SCANS,
          int Y = 1, int Z = 1>
class BlockRadixSort : details::Block<X, Y, Z> {
  using Block = details::Block<X, Y, Z>;

 public:
  struct TempStorage {
    details::Storage<T, Block::THREADS * K> keys;
    details::Storage<V, Block::THREADS * K> values;
  };
  BlockRadixSort(TempStorage& storage) : storage_(storage) {}

  void Sort(T (&keys)[K], int begin = 0, int end = 8 * sizeof(T)) { sort<false, false>(keys, nullptr, begin, end); }
  void SortDescending(T (&keys)[K], int begin = 0, int end = 8 * sizeof(T)) { sort<true, false>(keys, nullptr, begin, end); }
  void SortBlockedToStriped(T (&keys)[K], int begin = 0, int end = 8 * sizeof(T)) {
    sort<false, true>(keys, nullptr, begin, end);
  }
  void Sort(T (&keys)[K], V (&values)[K], int begin = 0, int end = 8 * sizeof(T)) {
    sort<false, false>(keys, values, begin, end);
  }
  void SortDescending(T (&keys)[K], V (&values)[K], int begin = 0, int end = 8 * sizeof(T)) {
    sort<true, false>(keys, values, begin, end);
  }
  void SortBlockedToStriped(T (&keys)[K], V (&values)[K], int begin = 0, int end = 8 * sizeof(T)) {
    sort<false, true>(keys, values, begin, end);
  }

 private:
  template <bool DESCENDING, bool STRIPED>
  void sort(T* keys, V* values, int begin, int end) {
    int places[K];
    for (int i = 0; i < K; ++i) storage_.keys[this->thread * K + i] = keys[i];
    __syncthreads();
    for (int i = 0; i < K; ++i)
      places[i] = details::count_before(&storage_.keys[0], Block::THREADS * K, this->thread * K + i, DESCENDING, begin, end);
    __syncthreads();
    for (int i = 0; i < K; ++i) {
      storage_.keys[places[i]] = keys[i];
      if (values) storage_.values[places[i]] = values[i];
    }
    __syncthreads();
    for (int i = 0; i < K; ++i) {
      const int place = STRIPED ? this->thread + i * Block::THREADS : this->thread * K + i;
      keys[i] = storage_.keys[place];
      if (values) values[i] = storage_.values[place];
    }
  }
  TempStorage& storage_;
};
template <class T, int X, int K, int BINS, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int Y = 1, int Z = 1>
class BlockHistogram : details::Block<X, Y, Z> {
 public:
  struct TempStorage {
    char unused;
  };
  BlockHistogram(TempStorage&) {}
  template <class C>
  void InitHistogram(C (&bins)[BINS]) {
    for (int bin = this->thread; bin < BINS; bin += this->THREADS) bins[bin] = 0;
  }
  template <class C>
  void Composite(T (&items)[K], C (&bins)[BINS]) {
    for (const T& item : items) atomicAdd(&bins[int(item)], C(1));
  }
  template <class C>
  void Histogram(T (&items)[K], C (&bins)[BINS]) {
    InitHistogram(bins);
    __syncthreads();
    Composite(items, bins);
  }
};

// --- the whole device --------------------------------------------------------------------------------------------------------
namespace details {
template <class I>
using ValueOf = typename std::iterator_traits<I>::value_type;
template <class I, class T>
using OutputOf = std::conditional_t<std::is_void_v<ValueOf<I>>, T, ValueOf<I>>;

// The first call, without storage, only says how many bytes the second needs.
inline bool asks_for_size(void* storage, size_t& bytes) {
  if (!storage) bytes = 1;
  return !storage;
}
// Whether the device has the elements. Iterators that are not pointers compute theirs.
template <class I, class N>
bool has(I first, N count, bool writes) {
  if constexpr (std::is_pointer_v<I>)
    return emulator::reach_from_library(first, size_t(count) * sizeof(*first), writes);
  else
    return true;
}
template <class I, class O, class N, class F, class T>
EMULATOR_FAST cudaError_t scan(I from, O to, N count, F function, const T* initial) {
  if (!has(from, count, false) || !has(to, count, true)) return cudaErrorIllegalAddress;
  std::conditional_t<std::is_void_v<T>, ValueOf<I>, T> sum{};
  if (initial) sum = *initial;
  for (N i = 0; i < count; ++i) {
    const auto item = from[i];  // the results may replace the items
    const auto next = i == 0 && !initial ? item : function(sum, item);
    if (initial)
      to[i] = sum;
    else
      to[i] = next;
    sum = next;
  }
  return cudaSuccess;
}
}  // namespace details

struct DeviceReduce {
  template <class I, class O, class N, class F, class T>
  static cudaError_t Reduce(void* storage, size_t& bytes, I from, O to, N count, F function, T sum, cudaStream_t = nullptr,
                            bool = false) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(from, count, false) || !details::has(to, 1, true)) return cudaErrorIllegalAddress;
    for (N i = 0; i < count; ++i) sum = function(sum, from[i]);
    *to = sum;
    return cudaSuccess;
  }
  template <class I, class O, class N>
  static cudaError_t Sum(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, from, to, count, cub::Sum(), details::OutputOf<O, details::ValueOf<I>>(0), stream);
  }
  template <class I, class O, class N>
  static cudaError_t Max(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t stream = nullptr, bool = false) {
    using T = details::ValueOf<I>;
    return Reduce(storage, bytes, from, to, count, cub::Max(), std::numeric_limits<T>::lowest(), stream);
  }
  template <class I, class O, class N>
  static cudaError_t Min(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t stream = nullptr, bool = false) {
    using T = details::ValueOf<I>;
    return Reduce(storage, bytes, from, to, count, cub::Min(), std::numeric_limits<T>::max(), stream);
  }
  template <class I, class O, class N>
  static cudaError_t ArgMax(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t = nullptr, bool = false) {
    return find(storage, bytes, from, to, count, cub::ArgMax());
  }
  template <class I, class O, class N>
  static cudaError_t ArgMin(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t = nullptr, bool = false) {
    return find(storage, bytes, from, to, count, cub::ArgMin());
  }
  template <class K, class U, class V, class A, class C, class F, class N>
  static cudaError_t ReduceByKey(void* storage, size_t& bytes, K keys, U unique, V values, A sums, C runs, F function, N count,
                                 cudaStream_t = nullptr, bool = false) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(keys, count, false) || !details::has(values, count, false)) return cudaErrorIllegalAddress;
    N run = 0;
    for (N i = 0; i < count; ++run) {
      const auto key = keys[i];
      auto sum = values[i];
      for (++i; i < count && keys[i] == key; ++i) sum = function(sum, values[i]);
      unique[run] = key, sums[run] = sum;
    }
    *runs = run;
    return details::has(unique, run, true) && details::has(sums, run, true) && details::has(runs, 1, true)
               ? cudaSuccess
               : cudaErrorIllegalAddress;
  }

 private:
  template <class I, class O, class N, class F>
  static cudaError_t find(void* storage, size_t& bytes, I from, O to, N count, F function) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(from, count, false) || !details::has(to, 1, true)) return cudaErrorIllegalAddress;
    KeyValuePair<int, details::ValueOf<I>> best(0, from[0]);
    for (N i = 1; i < count; ++i) best = function(best, {int(i), from[i]});
    *to = best;
    return cudaSuccess;
  }
};

struct DeviceScan {
  template <class I, class O, class N>
  static cudaError_t ExclusiveSum(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t = nullptr, bool = false) {
    const details::ValueOf<I> zero{};
    return details::asks_for_size(storage, bytes) ? cudaSuccess : details::scan(from, to, count, cub::Sum(), &zero);
  }
  template <class I, class O, class N>
  static cudaError_t InclusiveSum(void* storage, size_t& bytes, I from, O to, N count, cudaStream_t = nullptr, bool = false) {
    return InclusiveScan(storage, bytes, from, to, cub::Sum(), count);
  }
  template <class I, class O, class F, class T, class N>
  static cudaError_t ExclusiveScan(void* storage, size_t& bytes, I from, O to, F function, T initial, N count,
                                   cudaStream_t = nullptr, bool = false) {
    return details::asks_for_size(storage, bytes) ? cudaSuccess : details::scan(from, to, count, function, &initial);
  }
  template <class I, class O, class F, class N>
  static cudaError_t InclusiveScan(void* storage, size_t& bytes, I from, O to, F function, N count, cudaStream_t = nullptr,
                                   bool = false) {
    const details::ValueOf<I>* none = nullptr;
    return details::asks_for_size(storage, bytes) ? cudaSuccess : details::scan(from, to, count, function, none);
  }
};

// Two buffers, of which a sort may use the other one for its result.
template <class T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};
struct DeviceRadixSort {
#define EMULATOR_SORT(KEYS, PAIRS, DESCENDING)                                                                                \
  template <class K, class N>                                                                                                 \
  static cudaError_t KEYS(void* storage, size_t& bytes, const K* keys, K* keys_out, N count, int begin = 0,                   \
                          int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {                                    \
    const NullType* none = nullptr;                                                                                           \
    return sort(storage, bytes, keys, keys_out, none, const_cast<NullType*>(none), size_t(count), DESCENDING, begin, end);    \
  }                                                                                                                           \
  template <class K, class N>                                                                                                 \
  static cudaError_t KEYS(void* storage, size_t& bytes, DoubleBuffer<K>& keys, N count, int begin = 0,                        \
                          int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {                                    \
    const cudaError_t error = KEYS(storage, bytes, keys.Current(), keys.Alternate(), count, begin, end);                      \
    if (storage) keys.selector ^= 1;                                                                                          \
    return error;                                                                                                             \
  }                                                                                                                           \
  template <class K, class V, class N>                                                                                        \
  static cudaError_t PAIRS(void* storage, size_t& bytes, const K* keys, K* keys_out, const V* values, V* values_out, N count, \
                           int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {                    \
    return sort(storage, bytes, keys, keys_out, values, values_out, size_t(count), DESCENDING, begin, end);                   \
  }                                                                                                                           \
  template <class K, class V, class N>                                                                                        \
  static cudaError_t PAIRS(void* storage, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, N count,             \
                           int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {                    \
    const cudaError_t error =                                                                                                 \
        PAIRS(storage, bytes, keys.Current(), keys.Alternate(), values.Current(), values.Alternate(), count, begin, end);     \
    if (storage) keys.selector ^= 1, values.selector ^= 1;                                                                    \
    return error;                                                                                                             \
  }
  EMULATOR_SORT(SortKeys, SortPairs, false)
  EMULATOR_SORT(SortKeysDescending, SortPairsDescending, true)
#undef EMULATOR_SORT

 private:
  template <class K, class V>
  static cudaError_t sort(void* storage, size_t& bytes, const K* keys, K* keys_out, const V* values, V* values_out,
                          size_t count, bool descending, int begin, int end) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(keys, count, false) || !details::has(keys_out, count, true)) return cudaErrorIllegalAddress;
    if (values && (!details::has(values, count, false) || !details::has(values_out, count, true)))
      return cudaErrorIllegalAddress;
    details::sort_pairs(keys, keys_out, values, values_out, count, descending, begin, end);
    return cudaSuccess;
  }
};

struct DeviceSelect {
  template <class I, class O, class C, class N, class P>
  static cudaError_t If(void* storage, size_t& bytes, I from, O to, C selected, N count, P predicate, cudaStream_t = nullptr,
                        bool = false) {
    return select(storage, bytes, from, to, selected, count, [&](N i) { return predicate(from[i]); });
  }
  template <class I, class G, class O, class C, class N>
  static cudaError_t Flagged(void* storage, size_t& bytes, I from, G flags, O to, C selected, N count, cudaStream_t = nullptr,
                             bool = false) {
    return select(storage, bytes, from, to, selected, count, [&](N i) { return bool(flags[i]); });
  }
  template <class I, class O, class C, class N>
  static cudaError_t Unique(void* storage, size_t& bytes, I from, O to, C selected, N count, cudaStream_t = nullptr,
                            bool = false) {
    return select(storage, bytes, from, to, selected, count, [&](N i) { return i == 0 || !(from[i] == from[i - 1]); });
  }

 private:
  template <class I, class O, class C, class N, class P>
  static cudaError_t select(void* storage, size_t& bytes, I from, O to, C selected, N count, P is_selected) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(from, count, false) || !details::has(selected, 1, true)) return cudaErrorIllegalAddress;
    std::vector<details::ValueOf<I>> kept;
    for (N i = 0; i < count; ++i)
      if (is_selected(i)) kept.push_back(from[i]);
    if (!details::has(to, kept.size(), true)) return cudaErrorIllegalAddress;
    std::copy(kept.begin(), kept.end(), to);
    *selected = details::OutputOf<C, int>(kept.size());
    return cudaSuccess;
  }
};

struct DeviceRunLengthEncode {
  template <class I, class U, class L, class C, class N>
  static cudaError_t Encode(void* storage, size_t& bytes, I from, U unique, L lengths, C runs, N count, cudaStream_t = nullptr,
                            bool = false) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(from, count, false) || !details::has(runs, 1, true)) return cudaErrorIllegalAddress;
    N run = 0;
    for (N i = 0, begin = 0; i < count; begin = i, ++run) {
      while (i < count && from[i] == from[begin]) ++i;
      if (!details::has(unique, run + 1, true) || !details::has(lengths, run + 1, true)) return cudaErrorIllegalAddress;
      unique[run] = from[begin], lengths[run] = i - begin;
    }
    *runs = run;
    return cudaSuccess;
  }
};

struct DeviceHistogram {
  template <class I, class C, class L, class N>
  static cudaError_t HistogramEven(void* storage, size_t& bytes, I samples, C* bins, int levels, L lower, L upper, N count,
                                   cudaStream_t = nullptr, bool = false) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(samples, count, false) || !details::has(bins, levels - 1, true)) return cudaErrorIllegalAddress;
    std::fill(bins, bins + levels - 1, C(0));
    for (N i = 0; i < count; ++i)
      if (samples[i] >= lower && samples[i] < upper)
        ++bins[int((double(samples[i]) - double(lower)) * (levels - 1) / (double(upper) - double(lower)))];
    return cudaSuccess;
  }
};

struct DeviceSegmentedReduce {
  template <class I, class O, class B, class E, class F, class T>
  static cudaError_t Reduce(void* storage, size_t& bytes, I from, O to, int segments, B begins, E ends, F function, T initial,
                            cudaStream_t = nullptr, bool = false) {
    if (details::asks_for_size(storage, bytes)) return cudaSuccess;
    if (!details::has(to, segments, true)) return cudaErrorIllegalAddress;
    for (int segment = 0; segment < segments; ++segment) {
      T sum = initial;
      for (auto i = begins[segment]; i < ends[segment]; ++i) sum = function(sum, from[i]);
      to[segment] = sum;
    }
    return cudaSuccess;
  }
  template <class I, class O, class B, class E>
  static cudaError_t Sum(void* storage, size_t& bytes, I from, O to, int segments, B begins, E ends, cudaStream_t = nullptr,
                         bool = false) {
    return Reduce(storage, bytes, from, to, segments, begins, ends, cub::Sum(), details::ValueOf<I>(0));
  }
  template <class I, class O, class B, class E>
  static cudaError_t Max(void* storage, size_t& bytes, I from, O to, int segments, B begins, E ends, cudaStream_t = nullptr,
                         bool = false) {
    return Reduce(storage, bytes, from, to, segments, begins, ends, cub::Max(),
                  std::numeric_limits<details::ValueOf<I>>::lowest());
  }
  template <class I, class O, class B, class E>
  static cudaError_t Min(void* storage, size_t& bytes, I from, O to, int segments, B begins, E ends, cudaStream_t = nullptr,
                         bool = false) {
    return Reduce(storage, bytes, from, to, segments, begins, ends, cub::Min(),
                  std::numeric_limits<details::ValueOf<I>>::max());
  }
};

struct CachingDeviceAllocator {
  template <class... A>
  CachingDeviceAllocator(A...) {}
  template <class T>
  cudaError_t DeviceAllocate(T** pointer, size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(pointer, bytes);
  }
  cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
};
template <class T>
T DivideAndRoundUp(T a, T b) {
  return (a + b - 1) / b;
}
inline unsigned LaneId() { return details::thread_of_block() % 32; }
inline unsigned WarpId() { return details::thread_of_block() / 32; }
template <class T>
T ThreadLoad(T* place) {
  return *place;
}
}  // namespace cub
