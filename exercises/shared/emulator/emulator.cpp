// A CUDA device on a CPU: launches, the runtime's functions, and the hooks that the compiler calls at each access to memory.
#include "machine.hpp"
#include "memory.hpp"
#include "races.hpp"
#include "reporting.hpp"
#include "requests.hpp"
#include "threads.hpp"
#include "variables.hpp"

#include "crashes.hpp"
#include "hooks.hpp"
#include "host_atomics.hpp"
#include "runtime.hpp"

uint3 thread_index, block_index;
dim3 block_size, grid_size;

namespace emulator {
Launching now;
std::map<std::string, Report> reports;
cudaError_t last_error = cudaSuccess;
Variables variables;
Arena arena;
Threads threads;
Requests requests;
Publishing publishing;
Order order;

namespace {
struct Start {
  Start() {
    watch_signals();
    atexit([] { write_report("exit", 0, {}); });
  }
} start;
}  // namespace
}  // namespace emulator
