// <cuda/barrier>, <cuda/pipeline> and <cuda/atomic>.
//
// A copy is in flight until its thread waits for it, or arrives at a barrier. All threads of a block take part in a pipeline of the
// block, and each of its waits is a barrier.
#pragma once
#include <atomic>

#include "cooperative_groups.h"

namespace cuda {
namespace std {
using namespace ::std;
}
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

// --- barriers --------------------------------------------------------------------------------------------------------------
// Without a constructor, because a __shared__ variable has none: a program calls `init`.
template <thread_scope Scope>
class barrier {
 public:
  using arrival_token = unsigned;  // the phase

  [[nodiscard]] EMULATOR_UNSEEN arrival_token arrive(ptrdiff_t count = 1) { return emulator::arrive(state_, unsigned(count)); }
  EMULATOR_UNSEEN void wait(arrival_token phase) const { wait_in(phase, false, EMULATOR_CALLER); }
  EMULATOR_UNSEEN void wait_parity(bool parity) const { wait_in(parity, true, EMULATOR_CALLER); }
  EMULATOR_UNSEEN void arrive_and_wait() { wait_in(emulator::arrive(state_, 1), false, EMULATOR_CALLER); }
  EMULATOR_UNSEEN void arrive_and_drop() {
    --state_.expected;
    (void)emulator::arrive(state_, 0);
  }

  EMULATOR_UNSEEN friend void init(barrier* own, ptrdiff_t expected) { own->state_ = {unsigned(expected), 0, 0}; }

 private:
  void wait_in(unsigned phase, bool parity_only, void* caller) const __attribute__((no_sanitize("thread"))) {
    emulator::wait_for_phase(state_, phase, parity_only, caller);
  }
  emulator::PartBarrier state_;
};

template <size_t Bytes>
struct aligned_size_t {
  static constexpr size_t align = Bytes;
  size_t value;
  constexpr explicit aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

template <class T, class Size, class Waiting>
EMULATOR_UNSEEN void memcpy_async(T* to, const T* from, Size bytes, Waiting&) {
  for (size_t i = 0; i < size_t(bytes) / sizeof(T); ++i)
    emulator::copy_async(to + i, from + i, sizeof(T), sizeof(T), EMULATOR_CALLER);
}
template <class Group, class T, class Size, class Waiting>
EMULATOR_UNSEEN void memcpy_async(const Group& group, T* to, const T* from, Size bytes, Waiting&) {
  cooperative_groups::details::copy_share(group, to, from, size_t(bytes), EMULATOR_CALLER);
}

// --- pipelines -------------------------------------------------------------------------------------------------------------
template <thread_scope Scope, unsigned char Stages>
class pipeline_shared_state {};

template <thread_scope Scope>
class pipeline {
 public:
  void producer_acquire() const {}
  void producer_commit() const { emulator::commit_copies(); }
  void consumer_wait() const {
    emulator::wait_for_oldest_copies();
    meet();
  }
  void consumer_release() const { meet(); }
  bool quit() const { return true; }
  static void meet() {
    if constexpr (Scope != thread_scope_thread) __syncthreads();
  }
};
inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope Scope, unsigned char Stages>
pipeline<Scope> make_pipeline(const Group&, pipeline_shared_state<Scope, Stages>*) {
  return {};
}
template <unsigned char Prior, thread_scope Scope>
void pipeline_consumer_wait_prior(const pipeline<Scope>& pipe) {
  emulator::wait_for_copies(Prior);
  pipe.meet();
}

// --- atomics ---------------------------------------------------------------------------------------------------------------
namespace details {
// A function with release order acts as a fence followed by a relaxed function. Every function acquires.
inline void begin_atomic(memory_order order, void* place, unsigned bytes, void* caller) {
  if (order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst) __threadfence();
  emulator::check_atomic(place, bytes, caller);
}
}  // namespace details

template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref {
 public:
  explicit atomic_ref(T& value) : place_(&value) {}

#define EMULATOR_ATOMIC(NAME, RESULT)                                                                   \
  EMULATOR_UNSEEN T NAME(T given, memory_order order = memory_order_seq_cst) const {                          \
    details::begin_atomic(order, place_, sizeof(T), EMULATOR_CALLER);                                         \
    const T old = *place_;                                                                              \
    *place_ = T(RESULT);                                                                                \
    return old;                                                                                         \
  }
  EMULATOR_ATOMIC(exchange, given)
  EMULATOR_ATOMIC(fetch_add, old + given)
  EMULATOR_ATOMIC(fetch_sub, old - given)
  EMULATOR_ATOMIC(fetch_min, given < old ? given : old)
  EMULATOR_ATOMIC(fetch_max, old < given ? given : old)
  EMULATOR_ATOMIC(fetch_and, old & given)
  EMULATOR_ATOMIC(fetch_or, old | given)
  EMULATOR_ATOMIC(fetch_xor, old ^ given)
#undef EMULATOR_ATOMIC
  EMULATOR_UNSEEN T load(memory_order order = memory_order_seq_cst) const {
    details::begin_atomic(order, place_, sizeof(T), EMULATOR_CALLER);
    return *place_;
  }
  EMULATOR_UNSEEN void store(T value, memory_order order = memory_order_seq_cst) const {
    details::begin_atomic(order, place_, sizeof(T), EMULATOR_CALLER);
    *place_ = value;
  }
  EMULATOR_UNSEEN bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst,
                                               memory_order = memory_order_seq_cst) const {
    details::begin_atomic(order, place_, sizeof(T), EMULATOR_CALLER);
    const T old = *place_;
    const bool is_equal = old == expected;
    if (is_equal) *place_ = value;
    expected = old;
    return is_equal;
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst,
                             memory_order = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, value, order);
  }
  operator T() const { return load(); }
  T operator=(T value) const { return store(value), value; }
  T operator+=(T value) const { return fetch_add(value) + value; }
  T operator-=(T value) const { return fetch_sub(value) - value; }
  T operator++() const { return fetch_add(1) + 1; }
  T operator--() const { return fetch_sub(1) - 1; }
  T operator++(int) const { return fetch_add(1); }
  T operator--(int) const { return fetch_sub(1); }

 private:
  T* place_;
};

// Behaves as a reference to itself. As in a __shared__ variable, its value is not set unless the program sets it.
template <class T, thread_scope Scope = thread_scope_system>
class atomic {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  T load(memory_order order = memory_order_seq_cst) const { return self().load(order); }
  void store(T value, memory_order order = memory_order_seq_cst) { self().store(value, order); }
  T exchange(T value, memory_order order = memory_order_seq_cst) { return self().exchange(value, order); }
  T fetch_add(T value, memory_order order = memory_order_seq_cst) { return self().fetch_add(value, order); }
  T fetch_sub(T value, memory_order order = memory_order_seq_cst) { return self().fetch_sub(value, order); }
  T fetch_min(T value, memory_order order = memory_order_seq_cst) { return self().fetch_min(value, order); }
  T fetch_max(T value, memory_order order = memory_order_seq_cst) { return self().fetch_max(value, order); }
  T fetch_and(T value, memory_order order = memory_order_seq_cst) { return self().fetch_and(value, order); }
  T fetch_or(T value, memory_order order = memory_order_seq_cst) { return self().fetch_or(value, order); }
  T fetch_xor(T value, memory_order order = memory_order_seq_cst) { return self().fetch_xor(value, order); }
  bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst) {
    return self().compare_exchange_strong(expected, value, order);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst,
                             memory_order = memory_order_seq_cst) {
    return self().compare_exchange_strong(expected, value, order);
  }
  operator T() const { return load(); }
  T operator=(T value) { return store(value), value; }
  T operator+=(T value) { return self() += value; }
  T operator-=(T value) { return self() -= value; }
  T operator++() { return ++self(); }
  T operator--() { return --self(); }
  T operator++(int) { return self()++; }
  T operator--(int) { return self()--; }

 private:
  atomic_ref<T, Scope> self() const { return atomic_ref<T, Scope>(const_cast<T&>(value_)); }

  T value_;
};
inline void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) { __threadfence(); }
}  // namespace cuda

// --- the functions of cuda_pipeline.h --------------------------------------------------------------------------------------
template <class To, class From>
EMULATOR_UNSEEN void __pipeline_memcpy_async(To* to, const From* from, size_t bytes, size_t zeros = 0) {
  emulator::copy_async(to, from, bytes, bytes - zeros, EMULATOR_CALLER);
}
inline void __pipeline_commit() { emulator::commit_copies(); }
inline void __pipeline_wait_prior(size_t most) { emulator::wait_for_copies(unsigned(most)); }
