// Who last wrote and read each place of memory, and whether an access now races with that.
//
// Two accesses of the same place race where one of them writes, not both are atomic, and nothing orders them: between blocks
// nothing does (but a fence and an atomic function, as in a last block that adds up), between warps __syncthreads(), within a
// warp __syncwarp() as well. Threads run one at a time here, so the order is kept as numbers: the epoch goes up at each barrier.
#pragma once
#include "machine.hpp"


#include <algorithm>

extern "C" char __data_start[];

namespace emulator {
struct Access {
  unsigned epoch, caller, warp_epoch;
  unsigned thread : 31, atomic : 1;
};

struct Cell {
  Access writer, reader, other_reader;
};

// The cells of a range of memory: one for each 4 bytes, and from the first smaller access on one for each byte.
struct Shadow {
  Cell* cells = nullptr;
  size_t count = 0;
  unsigned shift = 2;

  Cell* at(size_t offset, unsigned size, size_t range) {
    if (!cells) cells = static_cast<Cell*>(reserve((count = (range >> shift) + 1) * sizeof(Cell)));
    if (size < 4 && shift) split(range);
    return cells + (offset >> shift);
  }

  void split(size_t range) {
    Shadow fine{static_cast<Cell*>(reserve((range + 4) * sizeof(Cell))), range + 4, 0};
    for (size_t i = 0; i < count && 4 * i + 3 < fine.count; ++i)
      if (cells[i].writer.epoch || cells[i].reader.epoch)
        for (size_t k = 0; k < 4; ++k) fine.cells[4 * i + k] = cells[i];
    drop();
    *this = fine;
  }

  void drop() {
    if (cells) munmap(cells, count * sizeof(Cell));
    cells = nullptr;
  }
};

inline bool is_of_this_block(const Access& access) { return access.epoch >= now.block_began; }
inline bool is_of_this_launch(const Access& access) { return access.epoch >= now.launch_began; }

// A fence and then an atomic function publish what a block wrote to the blocks that call an atomic function afterwards. Which
// address the function changes is not looked at, so a wrong use of fences may pass.
struct Publishing {
  bool did_atomic = false, did_fence = false;  // this block
  std::vector<unsigned> blocks;                // first epochs of the blocks of this launch, in the order they ran
  std::vector<unsigned> published;             // those of them that have published
};
extern Publishing publishing;

inline void begin_block() {
  now.block_began = ++now.epoch;
  publishing.blocks.push_back(now.epoch);
  publishing.did_atomic = publishing.did_fence = false;
}

inline void note_atomic() {
  publishing.did_atomic = true;
  if (publishing.did_fence && (publishing.published.empty() || publishing.published.back() != now.block_began))
    publishing.published.push_back(now.block_began);
}

inline unsigned began_with(unsigned epoch) {
  return *(std::upper_bound(publishing.blocks.begin(), publishing.blocks.end(), epoch) - 1);
}

inline bool is_published(unsigned epoch) {
  const auto& published = publishing.published;
  return publishing.did_atomic && std::binary_search(published.begin(), published.end(), began_with(epoch));
}

// Whether nothing orders an earlier access before the one that is made now.
inline bool is_unordered(const Access& earlier) {
  if (!is_of_this_launch(earlier)) return false;
  if (!is_of_this_block(earlier)) return !is_published(earlier.epoch);
  if (earlier.epoch != now.epoch || earlier.thread == now.current) return false;
  const unsigned warp = now.current / WARP;
  return earlier.thread / WARP != warp || earlier.warp_epoch == now.warp_epoch[warp];
}

inline const Access* find_race(const Cell& cell, Kind kind) {
  if (is_unordered(cell.writer) && !(kind == ATOMIC && cell.writer.atomic)) return &cell.writer;
  if (kind == READ) return nullptr;
  if (is_unordered(cell.reader)) return &cell.reader;
  return is_unordered(cell.other_reader) ? &cell.other_reader : nullptr;
}

// Whether whatever races with the earlier read also races with one made now.
inline bool is_outdone(const Access& earlier) {
  if (!is_of_this_launch(earlier)) return true;
  if (!is_of_this_block(earlier)) return false;
  if (earlier.epoch != now.epoch || earlier.thread == now.current) return true;
  const unsigned warp = now.current / WARP;
  return earlier.thread / WARP == warp && earlier.warp_epoch != now.warp_epoch[warp];
}

// How far apart two threads of this block are: the further, the more writers race with one of them.
inline int distance(unsigned thread, unsigned other) { return thread == other ? 0 : thread / WARP == other / WARP ? 1 : 2; }

// Whether keeping this thread as the second reader finds more races than the second reader that is kept.
inline bool is_better_second(const Cell& cell) {
  if (!is_of_this_block(cell.reader)) return true;
  if (!is_of_this_block(cell.other_reader)) return false;
  return distance(cell.reader.thread, now.current) > distance(cell.reader.thread, cell.other_reader.thread);
}

inline void keep_access(Cell& cell, Kind kind, void* caller) {
  const Access access{now.epoch, unsigned(Place(caller)), now.warp_epoch[now.current / WARP], now.current, kind == ATOMIC};
  if (kind != READ) {
    cell.writer = access;
  } else if (is_outdone(cell.reader)) {
    cell.reader = access;
  } else if (is_outdone(cell.other_reader) || is_better_second(cell)) {
    cell.other_reader = access;
  }
}

inline Spot spot_of(const Access& access, bool wrote) {
  const Kind kind = !wrote ? READ : access.atomic ? ATOMIC : WRITE;
  return {place_in_block(access.thread), block_of_epoch(access.epoch), reinterpret_cast<void*>(Place(access.caller)), kind};
}

// Check an access of a range of memory against the earlier ones, and keep it. `what` is "shared" or "global".
inline void check_races(Shadow& shadow, size_t offset, unsigned size, size_t range, Kind kind, void* caller, const char* what) {
  Cell* cell = shadow.at(offset, size, range);
  const size_t cells = ((offset + size - 1) >> shadow.shift) - (offset >> shadow.shift) + 1;
  const bool is_shared = what[0] == 's';
  const long long place = is_shared ? (long long)(Place(__data_start) + offset) : 0;
  for (Cell* end = cell + cells; cell < end; ++cell) {
    if (is_shared) {
      for (Access* earlier : {&cell->writer, &cell->reader, &cell->other_reader})
        if (!is_of_this_block(*earlier)) *earlier = Access{};
      if (kind != WRITE && !cell->writer.epoch) note(now.report->unwritten_reads, what, here(caller, kind), {}, 0, 0, 0, place);
    }
    if (const Access* earlier = find_race(*cell, kind))
      note(now.report->races, what, here(caller, kind), spot_of(*earlier, earlier == &cell->writer), 0, 0, 0, place);
    keep_access(*cell, kind, caller);
  }
}
}  // namespace emulator
