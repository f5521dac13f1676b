// Device memory: every allocation has a zone before and after it, so that an access out of bounds is detected and does no harm.
#pragma once
#include "machine.hpp"
#include "races.hpp"

#include <algorithm>

namespace emulator {
constexpr size_t PAGE = 64 << 10, NEAR = 4 << 10, GIB = size_t(1) << 30;
// What all allocations together may have: half of this computer's memory, from 2 to 8 GiB.
inline const size_t MAX_LIVE_BYTES =
    std::clamp(size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)) / 2, 2 * GIB, 8 * GIB);

struct Allocation {
  Place begin;
  size_t bytes;
  bool freed;
  MemoryKind kind;
  Shadow shadow;
  std::map<size_t, size_t> filled = {};  // what the host wrote or copied: where each range begins and ends
};

// One range of addresses, reserved at the start. Each address is handed out only once, so that freed memory is recognised.
struct Arena {
  Place begin = 0;
  size_t bytes = 0, next = 0, live = 0;
  bool sampled = false;  // some blocks were not watched, so what they wrote is unknown
  std::vector<Allocation> allocations;
  std::vector<unsigned> owner;  // for each page: the number of its allocation + 1

  Arena() {
    for (bytes = 4096 * GIB; bytes >= GIB; bytes /= 4) {
      void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (place != MAP_FAILED) {
        madvise(place, bytes, MADV_HUGEPAGE);  // allocate() fills it
        begin = (Place(place) + PAGE - 1) / PAGE * PAGE;
        bytes -= PAGE;
        seen = seen_of_host = {begin, bytes - 1};
        return;
      }
    }
    bytes = 0;
  }

  bool holds(Place place) const { return place - begin < bytes; }

  // The allocation that an address belongs to, by itself or by its zones; null if there is none.
  Allocation* find(Place place) {
    const size_t page = (place - begin) / PAGE;
    return holds(place) && page < owner.size() && owner[page] ? &allocations[owner[page] - 1] : nullptr;
  }

  // Whether these bytes belong to one live allocation.
  bool owns(Place place, size_t size) {
    const Allocation* owner_of = find(place);
    return owner_of && !owner_of->freed && place >= owner_of->begin && place + size <= owner_of->begin + owner_of->bytes;
  }

  // New memory. It and the bytes around it are filled with ones: read as a float, they are not a number. Null if none is left.
  void* allocate(size_t size, MemoryKind kind) {
    const size_t whole = (size + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
    if (live + whole > MAX_LIVE_BYTES || next + whole > bytes) return nullptr;
    char* zone = reinterpret_cast<char*>(begin + next);
    if (mprotect(zone, whole, PROT_READ | PROT_WRITE) != 0) return nullptr;
    memset(zone + PAGE - NEAR, 0xff, NEAR + size + NEAR);
    allocations.push_back({begin + next + PAGE, size, false, kind, {}, {}});
    next += whole;
    owner.resize(next / PAGE, unsigned(allocations.size()));
    live += whole;
    return zone + PAGE;
  }

  // The host has written or copied to this memory.
  void fill(Place place, size_t size) {
    Allocation* owner_of = find(place);
    if (!owner_of || !size || place < owner_of->begin) return;
    auto& filled = owner_of->filled;
    size_t first = place - owner_of->begin, end = first + size;
    auto next = filled.upper_bound(first);
    if (next != filled.begin() && std::prev(next)->second >= first) first = (--next)->first;
    for (; next != filled.end() && next->first <= end; next = filled.erase(next)) end = std::max(end, next->second);
    filled[first] = end;
  }

  // Whether this memory holds what `allocate` put there, and the host did not write the same.
  bool is_fresh(const Allocation& owner_of, size_t offset, unsigned size) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(owner_of.begin + offset);
    if (sampled || !std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0xff; })) return false;
    const auto next = owner_of.filled.upper_bound(offset);
    return next == owner_of.filled.begin() || std::prev(next)->second < offset + size;
  }

  bool release(Place place) {
    Allocation* owner_of = find(place);
    if (!owner_of || owner_of->begin != place || owner_of->freed) return false;
    const size_t whole = (owner_of->bytes + PAGE - 1) / PAGE * PAGE;
    madvise(reinterpret_cast<void*>(place), whole, MADV_DONTNEED);
    live -= whole + 2 * PAGE;
    owner_of->freed = true;
    owner_of->shadow.drop();
    return true;
  }
};

extern Arena arena;

// What `malloc` and `new` return in a kernel: each address once, so that two threads never meet in the same memory by chance.
struct Heap {
  static constexpr size_t BYTES = 64 << 20;
  char *begin = nullptr, *next = nullptr;
  size_t remaining = 0;
  std::map<Place, size_t> pieces;  // where each begins, and its bytes

  // The piece before an address, and its bytes; 0 and 0 if there is none.
  std::pair<Place, size_t> find_before(Place place) const {
    const auto after = pieces.upper_bound(place);
    return after == pieces.begin() ? std::pair<Place, size_t>{} : std::pair<Place, size_t>(*std::prev(after));
  }

  void* allocate(size_t bytes) {
    if (!next && (next = static_cast<char*>(arena.allocate(BYTES, DEVICE)))) begin = next, remaining = BYTES;
    const size_t whole = (bytes + 15) / 16 * 16 + 16;  // and a gap
    if (whole > remaining) return nullptr;
    void* place = next;
    pieces[Place(place)] = bytes;
    next += whole, remaining -= whole;
    return place;
  }
};
inline Heap heap;
}  // namespace emulator
