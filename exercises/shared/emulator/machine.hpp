// State that the parts of the emulator share: the current launch, block and thread, and what is reported about a kernel.
#pragma once
#define EMULATOR_ITSELF
#include "cuda_runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

// The kernel's built-in variables. The kernel sees them as constants; they change whenever another thread runs.
extern uint3 thread_index asm("threadIdx"), block_index asm("blockIdx");
extern dim3 block_size asm("blockDim"), grid_size asm("gridDim");

namespace emulator {
using Place = uintptr_t;
enum Kind : unsigned { READ, WRITE, ATOMIC };
constexpr unsigned WARP = 32, MAX_THREADS = 1024;
constexpr int MULTIPROCESSORS = 4, RESIDENT_THREADS = 2048;  // of each
constexpr size_t SHARED_LIMIT = 48 << 10;  // without an attribute of the kernel
constexpr size_t MAX_SHARED = 163 << 10;

struct Counts {
  uint64_t requests = 0, sectors = 0, sectors_ideal = 0, bytes = 0, lanes = 0, bank_conflicts = 0;
};

// A thread at an access or a barrier, as named in a fault.
struct Spot {
  uint3 thread, block;
  void* caller;
  Kind kind;
};

// How often a fault happened at two places in the program, and its first occurrence there: which thread, which other thread, and
// details for kernels.py: numbers, the last of which is the address of a variable.
struct Fault {
  uint64_t count = 0;
  Spot first{}, other{};
  long long detail[4] = {};
  const char* what = "";
};

// All faults of a kind. Those at the first MAX_KEPT pairs of places are kept.
struct Faults {
  uint64_t count = 0;
  std::vector<Fault> kept;
};
constexpr size_t MAX_KEPT = 8;

// A request as it was made, for pictures: the bits of `lanes` say which of the addresses are set.
struct Traced {
  void* caller;
  bool shared, write;
  unsigned size, lanes;
  Place at[WARP];
};

// A place in the program that loads from or stores to one of the two memories.
struct Accessing {
  void* caller;
  bool shared, write;
  bool operator<(const Accessing& other) const {
    return std::tie(caller, shared, write) < std::tie(other.caller, other.shared, other.write);
  }
};

struct Report {
  uint64_t launches = 0, threads = 0, atomics = 0;
  uint64_t blocks = 0, watched_threads = 0;
  uint64_t accesses = 0, waiting = 0;  // that were watched, and of blocks that waited for others
  const char* file = "";               // of the first launch
  unsigned line = 0;
  dim3 grid, block;  // of the launch with the most threads
  size_t dynamic_bytes = 0;
  std::map<Accessing, Counts> lines;
  std::vector<Traced> trace;  // the first requests, as many as EMULATOR_TRACE asks for
  Faults races, stream_hazards, unwritten_reads, out_of_bounds, used_after_free, barrier_divergence, illegal_address, refused_launches;
};

struct Launching {
  bool inside = false;   // a thread of a kernel runs
  bool watched = false;  // and its accesses are checked and counted
  bool running = false;  // a kernel runs, one of its threads or the scheduler
  bool watches_block = true;
  uint64_t watched_until = 0;  // accesses of the kernel after which the block is no longer watched
  bool resumed = false;  // the block has waited for others, so it may read what it wrote to shared memory before
  unsigned block = 0;    // its number in the grid
  bool named = true;     // the kernel has shown which function it is
  void* last = nullptr;  // the place of the last access
  bool aborted = false;  // as on a GPU, an illegal address ends the kernel
  Report* report = nullptr;
  const char* name = "";
  unsigned threads = 0;       // of a block
  size_t dynamic_bytes = 0;   // of shared memory
  Range arguments{};          // of the kernel: it may read them
  unsigned current = 0;       // thread of the block that runs
  unsigned epoch = 0;         // increases at each barrier of each block, never decreases
  unsigned block_began = 0, launch_began = 0;  // epochs
  unsigned warp_epoch[MAX_THREADS / WARP] = {};
  bool bytes_only = false;
  bool is_volatile = false;  // the current access, which is to global memory
  bool cooperative = false;  // the launch may use grid.sync()
  bool varies = false;       // its result depends on more than memory, or it does more than change memory
  bool copies = false;       // one of its threads has begun a copy that is in flight, or a group of them
};

extern Launching now;

// The addresses whose accesses the hooks must see: all of a kernel's, and those of the host to memory of the device. The program
// compares with them before it calls a hook (assembly.py).
struct Seen {
  Place begin;
  size_t last;  // the offset of the last one
};
extern Seen seen asm("emulator_seen");
inline Seen seen_of_host{};
inline void set_inside(bool inside) {
  now.inside = inside;
  seen = inside ? Seen{0, ~size_t(0)} : seen_of_host;
}
// Accesses, or rounds of loops of a block that is not watched, until another thread gets a turn.
extern unsigned turn asm("emulator_turn");

// The address of the first access of this turn, its word then, and how many accesses to it are not plain stores.
struct Repeated {
  Place place = 0;
  unsigned word = 0, count = 0;
};
inline Repeated repeated{};
inline unsigned word_at(Place place) { return *reinterpret_cast<const volatile unsigned*>(place / sizeof(unsigned) * sizeof(unsigned)); }
extern std::map<std::string, Report> reports;
extern cudaError_t last_error;
inline bool has_handles = false;  // kernels may depend on memory of the host: it is registered, or describes a texture or a surface
inline size_t refused_bytes = 0;  // of the largest allocation for which there was no memory

// On a GPU such an error is permanent: nothing more runs.
inline bool is_lasting(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorMisalignedAddress || error == cudaErrorAssert;
}

inline uint3 place_in_block(unsigned thread) {
  if (thread < block_size.x) return {thread, 0, 0};
  return {thread % block_size.x, thread / block_size.x % block_size.y, thread / (block_size.x * block_size.y)};
}
inline Spot here(void* caller, Kind kind) { return {thread_index, block_index, caller, kind}; }

// Record a fault. The first one of each pair of places is kept in full.
inline void note(Faults& faults, const char* what, const Spot& first, const Spot& other = {}, long long a = 0, long long b = 0,
                 long long c = 0, long long d = 0) {
  faults.count++;
  for (Fault& fault : faults.kept) {
    if (fault.first.caller != first.caller || fault.other.caller != other.caller || fault.what != what) continue;
    fault.count++;
    return;
  }
  if (faults.kept.size() < MAX_KEPT) faults.kept.push_back({1, first, other, {a, b, c, d}, what});
}

// Zeroed memory for the emulator itself; it takes up space only where it is used.
inline void* reserve(size_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place != MAP_FAILED) return place;
  fprintf(stderr, "emulator: no memory to keep account of the program's (%zu bytes)\n", bytes);
  _exit(70);
}

uint3 block_of_epoch(unsigned epoch);
[[noreturn]] void abandon_kernel(cudaError_t error);
}  // namespace emulator
