// A program that crashes, or is told that its time is over (SIGALRM), still reports where it was.
#pragma once
#include "reporting.hpp"
#include "threads.hpp"

#include <unistd.h>

namespace emulator {
inline void* place_of_signal(void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] + 1);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc + 1);
#else
  return nullptr;
#endif
}

inline void end_by_signal(int number, siginfo_t* about, void* context) {
  const bool overflow = number == SIGSEGV && threads.is_guard(Place(about->si_addr));
  const char* end = number == SIGALRM ? "late" : overflow ? "stack" : "crash";
  Spot spot = now.inside ? here(place_of_signal(context), READ) : Spot{{}, {}, place_of_signal(context), READ};
  if (!now.inside) now.name = "";
  fflush(nullptr);
  write_report(end, number, spot);
  _exit(128 + number);
}

inline void watch_signals() {
  static char stack[64 << 10];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = end_by_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) sigaction(number, &action, nullptr);
}
}  // namespace emulator
