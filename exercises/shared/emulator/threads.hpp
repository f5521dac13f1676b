// The threads of a block: one fiber each. A fiber runs until it waits, ends, or has made so many accesses that others must have
// a turn. Warps take turns, and so do the lanes of a warp; in which order, EMULATOR_ORDER says.
#pragma once
#include "machine.hpp"
#include "requests.hpp"

#include <csetjmp>
#include <numeric>
#include <ucontext.h>

namespace emulator {
enum State : unsigned char { READY, AT_BLOCK, AT_WARP, DONE };
enum Meeting : unsigned char { SYNC, SHUFFLE, VOTE, ADDRESSES, QUIET };

constexpr size_t STACK = 160 << 10, GUARD = 16 << 10;
constexpr unsigned LONGEST_TURN = 4096;  // accesses

struct Fiber {
  jmp_buf at;
  ucontext_t birth;
  bool born = false;
  State state = READY;
  Meeting meeting = SYNC;
  unsigned mask = 0, turn = 0;
  int from = 0;
  uint64_t value = 0;
  void* caller = nullptr;  // where it waits
};

class Threads {
 public:
  Threads() {
    stacks_ = static_cast<char*>(reserve(MOST_THREADS * STACK));
    fibers_.resize(MOST_THREADS);
  }

  bool holds_stack(Place place) const { return place - Place(stacks_) < MOST_THREADS * STACK; }
  bool is_guard(Place place) const { return holds_stack(place) && (place - Place(stacks_)) % STACK < GUARD; }

  Fiber& current() { return fibers_[now.current]; }

  void run_block(void (*body)(void*), void* arguments, const std::vector<unsigned>& warps, const std::vector<unsigned>& lanes);
  void forget();
  void wait(State state, Meeting meeting, unsigned mask, void* caller);
  void give_turn();
  [[noreturn]] void leave_for_good();
  unsigned live_mask(unsigned warp) const;

  int block_count = 0;                     // of the last __syncthreads_count
  void* addresses[MOST_THREADS] = {};      // of the last gathering

 private:
  void resume(unsigned thread);
  bool run_warp(unsigned warp, const std::vector<unsigned>& lanes);
  bool release_warp(unsigned warp, bool force);
  void meet(unsigned warp, unsigned group);
  void release_block();
  void report_stuck(unsigned waiting);
  Spot spot_of_wait(unsigned thread) const { return {place_in_block(thread), block_index, fibers_[thread].caller, READ}; }
  static void live();
  void leave();

  std::vector<Fiber> fibers_;
  char* stacks_ = nullptr;
  jmp_buf scheduler_;
  void (*body_)(void*) = nullptr;
  void* arguments_ = nullptr;
};
extern Threads threads;

inline unsigned lanes_of(unsigned warp) {
  const unsigned rest = now.threads - warp * WARP;
  return rest >= WARP ? ~0u : (1u << rest) - 1;
}

inline void Threads::live() {
  for (;;) {
    threads.body_(threads.arguments_);
    threads.current().state = DONE;
    threads.leave();
  }
}

inline void Threads::leave() {
  if (_setjmp(current().at) == 0) _longjmp(scheduler_, 1);
}

inline void Threads::leave_for_good() { _longjmp(scheduler_, 1); }

inline void Threads::resume(unsigned thread) {
  now.current = thread;
  thread_index = place_in_block(thread);
  Fiber& fiber = fibers_[thread];
  fiber.turn = LONGEST_TURN;
  now.inside = true;
  if (_setjmp(scheduler_) == 0) {
    if (fiber.born) _longjmp(fiber.at, 1);
    fiber.born = true;
    char* stack = stacks_ + thread * STACK;
    mprotect(stack, GUARD, PROT_NONE);
    getcontext(&fiber.birth);
    fiber.birth.uc_stack.ss_sp = stack;
    fiber.birth.uc_stack.ss_size = STACK;
    fiber.birth.uc_link = nullptr;
    makecontext(&fiber.birth, &Threads::live, 0);
    setcontext(&fiber.birth);
  }
  now.inside = false;
}

// The contexts of an abandoned kernel are of no use.
inline void Threads::forget() {
  for (Fiber& fiber : fibers_) fiber.born = false;
}

inline void Threads::wait(State state, Meeting meeting, unsigned mask, void* caller) {
  Fiber& fiber = current();
  const unsigned own = 1u << now.current % WARP;
  if (!(mask & own)) note(now.report->barrier_divergence, "own lane", here(caller, READ));
  mask |= own;
  fiber.state = state;
  fiber.meeting = meeting;
  fiber.mask = mask;
  fiber.caller = caller;
  leave();
}

inline void Threads::give_turn() { leave(); }

inline unsigned Threads::live_mask(unsigned warp) const {
  unsigned mask = 0;
  for (unsigned lane = 0; lane < WARP; ++lane)
    if ((lanes_of(warp) >> lane & 1) && fibers_[warp * WARP + lane].state != DONE) mask |= 1u << lane;
  return mask;
}

inline bool Threads::run_warp(unsigned warp, const std::vector<unsigned>& lanes) {
  bool ran = false;
  do {
    for (unsigned lane : lanes) {
      const unsigned thread = warp * WARP + lane;
      if (thread >= now.threads || fibers_[thread].state != READY) continue;
      resume(thread);
      ran = true;
      if (now.aborted) return false;
    }
    requests.flush();
  } while (release_warp(warp, false));
  return ran;
}

// The lanes of a group have all come: give each what it came for.
inline void Threads::meet(unsigned warp, unsigned group) {
  Fiber* lanes = &fibers_[warp * WARP];
  const unsigned first = unsigned(__builtin_ctz(group));
  for (unsigned lane = first + 1; lane < WARP; ++lane)
    if ((group >> lane & 1) && lanes[lane].caller != lanes[first].caller)
      note(now.report->barrier_divergence, "two barriers", spot_of_wait(warp * WARP + first), spot_of_wait(warp * WARP + lane));
  uint64_t brought[WARP];
  unsigned votes = 0;
  for (unsigned lane = 0; lane < WARP; ++lane) {
    brought[lane] = group >> lane & 1 ? lanes[lane].value : ~uint64_t(0);
    if (group >> lane & 1 && lanes[lane].value) votes |= 1u << lane;
  }
  for (unsigned lane = 0; lane < WARP; ++lane) {
    if (!(group >> lane & 1)) continue;
    Fiber& fiber = lanes[lane];
    fiber.state = READY;
    if (fiber.meeting == SHUFFLE) fiber.value = brought[fiber.from & 31];
    if (fiber.meeting == VOTE) fiber.value = votes;
    if (fiber.meeting == ADDRESSES) addresses[warp * WARP + lane] = reinterpret_cast<void*>(brought[lane]);
    if (fiber.meeting == SYNC) now.warp_epoch[warp] += lane == first;
  }
}

// Let those lanes of a warp go on whose whole group waits. With `force`, those whose group will never be whole, too.
inline bool Threads::release_warp(unsigned warp, bool force) {
  const unsigned live = live_mask(warp);
  unsigned released = 0;
  for (unsigned lane = 0; lane < WARP; ++lane) {
    if (!(live >> lane & 1) || released >> lane & 1) continue;
    const Fiber& first = fibers_[warp * WARP + lane];
    if (first.state != AT_WARP) continue;
    unsigned group = 0;
    for (unsigned other = lane; other < WARP; ++other) {
      const Fiber& fiber = fibers_[warp * WARP + other];
      if ((live >> other & 1) && fiber.state == AT_WARP && fiber.mask == first.mask && !(released >> other & 1))
        group |= 1u << other;
    }
    if (!force && group != (first.mask & live)) continue;
    meet(warp, group);
    released |= group;
  }
  return released != 0;
}

inline void Threads::report_stuck(unsigned waiting) {
  const Fiber& fiber = fibers_[waiting];
  const unsigned missing = fiber.mask & live_mask(waiting / WARP);
  unsigned other = waiting;
  for (unsigned lane = 0; lane < WARP && other == waiting; ++lane) {
    const Fiber& candidate = fibers_[waiting / WARP * WARP + lane];
    if ((missing >> lane & 1) && (candidate.state != AT_WARP || candidate.mask != fiber.mask)) other = waiting / WARP * WARP + lane;
  }
  const char* what = fibers_[other].state == AT_BLOCK ? "warp and block" : "two masks";
  note(now.report->barrier_divergence, what, spot_of_wait(waiting), spot_of_wait(other));
}

// Nobody can run: threads wait for each other. Where they do not all wait at one barrier, that is a fault; then let them go on.
inline void Threads::release_block() {
  bool stuck = false;
  for (unsigned thread = 0; thread < now.threads; ++thread) {
    if (fibers_[thread].state != AT_WARP) continue;
    stuck = true;
    report_stuck(thread);
    release_warp(thread / WARP, true);
  }
  if (stuck) return;
  unsigned ended = 0, first = MOST_THREADS, other = MOST_THREADS, left = MOST_THREADS;
  block_count = 0;
  for (unsigned thread = 0; thread < now.threads; ++thread) {
    Fiber& fiber = fibers_[thread];
    if (fiber.state == DONE) {
      ++ended, left = std::min(left, thread);
      continue;
    }
    if (first == MOST_THREADS) first = thread;
    if (fiber.caller != fibers_[first].caller) other = std::min(other, thread);
    block_count += fiber.value != 0;
    fiber.state = READY;
  }
  if (ended)
    note(now.report->barrier_divergence, "ended", spot_of_wait(first), spot_of_wait(left), ended, now.threads);
  else if (other != MOST_THREADS)
    note(now.report->barrier_divergence, "two barriers", spot_of_wait(first), spot_of_wait(other));
  now.epoch++;
  memset(now.warp_epoch, 0, sizeof now.warp_epoch);
}

inline void Threads::run_block(void (*body)(void*), void* arguments, const std::vector<unsigned>& warps,
                               const std::vector<unsigned>& lanes) {
  body_ = body, arguments_ = arguments;
  for (unsigned thread = 0; thread < now.threads; ++thread) fibers_[thread].state = READY;
  for (;;) {
    bool ran = false, all_ended = true;
    for (unsigned warp : warps) {
      ran |= run_warp(warp, lanes);
      if (now.aborted) return;
    }
    if (ran) continue;
    for (unsigned thread = 0; thread < now.threads; ++thread) all_ended &= fibers_[thread].state == DONE;
    if (all_ended) return;
    release_block();
  }
}
}  // namespace emulator
