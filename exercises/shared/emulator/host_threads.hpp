// Threads of the host. The emulator has one: a thread that a program creates runs to its end at once.
#pragma once
#include "machine.hpp"

#include <cerrno>
#include <csetjmp>
#include <pthread.h>

namespace emulator {
struct HostThread {
  void* result = nullptr;
  jmp_buf end;
};
inline HostThread* host_thread = nullptr;      // the one that runs; null for the program's first one
inline std::vector<void*> results_of_threads;  // their numbers count from 1
}  // namespace emulator

extern "C" {
int pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*run)(void*), void* argument) {
  emulator::HostThread mine, *const outer = emulator::host_thread;
  emulator::host_thread = &mine;
  if (!setjmp(mine.end)) mine.result = run(argument);
  emulator::host_thread = outer;
  emulator::results_of_threads.push_back(mine.result);
  *thread = pthread_t(emulator::results_of_threads.size());
  return 0;
}
int pthread_join(pthread_t thread, void** result) {
  if (size_t(thread) - 1 >= emulator::results_of_threads.size()) return ESRCH;
  if (result) *result = emulator::results_of_threads[size_t(thread) - 1];
  return 0;
}
int pthread_detach(pthread_t) { return 0; }
void pthread_exit(void* result) {
  if (!emulator::host_thread) exit(0);
  emulator::host_thread->result = result;
  longjmp(emulator::host_thread->end, 1);
}
}
