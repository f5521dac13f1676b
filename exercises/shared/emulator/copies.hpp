// Asynchronous copies, each of them in flight until its thread waits for it, and barriers of some of a block's threads.
#pragma once
#include "hooks.hpp"

namespace emulator {
struct AsyncCopy {
  char* to;
  const char* from;
  unsigned bytes, from_bytes;  // the other bytes become zero
  unsigned group;
  void* caller;
};

// The copies of one thread: `group` is the number of the group that is open, `complete` that of the first one that is not complete.
struct CopiesOfThread {
  std::vector<AsyncCopy> in_flight;
  unsigned group = 0, complete = 0;
};
inline CopiesOfThread copies[MAX_THREADS];

inline void access_range(char* place, unsigned bytes, Kind kind, void* caller) {
  if (bytes == 4 || bytes == 8 || bytes == 16)
    see(place, bytes, kind, caller);
  else if (bytes)
    touch_words(place, bytes, kind, caller);
}

inline void complete_copies(unsigned first_open) {
  CopiesOfThread& mine = copies[now.current];
  mine.complete = std::max(mine.complete, first_open);
  if (mine.in_flight.empty()) return;
  std::vector<AsyncCopy> ready;
  const auto is_open = [&mine](const AsyncCopy& copy) { return copy.group >= mine.complete; };
  const auto first_ready = std::stable_partition(mine.in_flight.begin(), mine.in_flight.end(), is_open);
  ready.assign(first_ready, mine.in_flight.end());
  mine.in_flight.erase(first_ready, mine.in_flight.end());
  for (const AsyncCopy& copy : ready) {
    access_range(const_cast<char*>(copy.from), copy.from_bytes, READ, copy.caller);
    access_range(copy.to, copy.bytes, WRITE, copy.caller);
    memcpy(copy.to, copy.from, copy.from_bytes);
    memset(copy.to + copy.from_bytes, 0, copy.bytes - copy.from_bytes);
  }
}

void copy_async(void* to, const void* from, size_t bytes, size_t from_bytes, void* caller) {
  CopiesOfThread& mine = copies[now.current];
  now.copies = true;
  mine.in_flight.push_back({static_cast<char*>(to), static_cast<const char*>(from), unsigned(bytes),
                            unsigned(std::min(bytes, from_bytes)), mine.group, caller ? caller : __builtin_return_address(0)});
}
void commit_copies() {
  now.copies = true;
  copies[now.current].group++;
}

// Wait until at most this many of the latest groups are in flight.
void wait_for_copies(unsigned most) {
  const unsigned group = copies[now.current].group;
  complete_copies(group - std::min(group, most));
}
void wait_for_oldest_copies() {
  CopiesOfThread& mine = copies[now.current];
  complete_copies(std::min(mine.group, mine.complete + 1));
}
void wait_for_all_copies() {
  commit_copies();
  wait_for_copies(0);
}
void forget_copies() {  // of a kernel that was abandoned
  for (CopiesOfThread& of_thread : copies) of_thread.in_flight.clear();
}

// --- barriers ----------------------------------------------------------------------------------------------------------------
// An arrival also makes sure that the copies of its thread are complete when the phase is.
unsigned arrive(PartBarrier& barrier, unsigned count) {
  wait_for_all_copies();
  handing.fence();
  handing.acquire();
  handing.release();
  const unsigned phase = barrier.phase;
  barrier.arrived += count;
  if (barrier.arrived >= barrier.expected) barrier.arrived = 0, barrier.phase++;
  return phase;
}

// Wait while the barrier is in a phase, or in any with the same parity.
void wait_for_phase(const PartBarrier& barrier, unsigned phase, bool parity_only, void* caller) {
  Fiber& fiber = threads.current();
  fiber.barrier = &barrier, fiber.phase = phase, fiber.parity_only = parity_only;
  if (!threads.has_passed(fiber)) threads.wait(AT_PHASE, SYNC, ~0u, caller);
  handing.acquire();
}

inline PartBarrier numbered[BARRIERS];
void forget_barriers() {
  for (PartBarrier& barrier : numbered) barrier = {};
}
void meet_at(unsigned number, unsigned count, bool waits) {
  PartBarrier& barrier = numbered[number % BARRIERS];
  barrier.expected = count;
  const unsigned phase = arrive(barrier, 1);
  if (waits) wait_for_phase(barrier, phase, false, __builtin_return_address(0));
}
}  // namespace emulator
