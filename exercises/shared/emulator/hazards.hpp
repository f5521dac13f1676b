// Copies between host and device, and the host's own accesses to memory that kernels also use: whether something orders them
// after earlier launches and copies. Kernels compare their accesses with launches (races.hpp) and with copies (here).
#pragma once
#include "memory.hpp"
#include "races.hpp"

namespace emulator {
bool is_registered(Place place);
bool is_of_device(Place place);
inline Shadow variable_shadow;  // of the variables of the device

struct Transfer {
  Place begin, end;
  Kind kind;
  unsigned stream, number;
  void* caller;

  bool conflicts(Place place, size_t bytes, Kind with) const {
    return place < end && begin < place + bytes && (kind != READ || with != READ);
  }
};
constexpr size_t MAX_TRANSFERS = 64;
inline std::deque<Transfer> transfers;             // that the host has not waited for
inline std::vector<Transfer> concurrent_transfers;  // with the kernel that runs

inline void note_hazard(Report& report, const char* what, const Spot& now_at, void* earlier, Kind kind) {
  note(report.stream_hazards, what, now_at, {{}, {}, earlier, kind});
}
inline Report& report_of_host() { return reports["host code"]; }

inline void begin_launch(CUstream_st* stream) {
  streams.begin_launch(stream);
  concurrent_transfers.clear();
  for (const Transfer& transfer : transfers)
    if (!streams.current.covers(transfer.stream, transfer.number)) concurrent_transfers.push_back(transfer);
}

inline void wait_for(const Clock& clock) {
  streams.wait(clock);
  const auto is_done = [](const Transfer& transfer) { return streams.host.covers(transfer.stream, transfer.number); };
  transfers.erase(std::remove_if(transfers.begin(), transfers.end(), is_done), transfers.end());
}

// The kernel that runs has accessed global memory.
inline void check_transfers(Place place, unsigned size, Kind kind, void* caller) {
  for (const Transfer& transfer : concurrent_transfers)
    if (transfer.conflicts(place, size, kind))
      note_hazard(*now.report, "kernel after copy", here(caller, kind), transfer.caller, transfer.kind);
}

// The first access to a range by a launch that a clock does not cover, if one of the two writes.
inline const Access* find_concurrent_access(Place begin, size_t bytes, Kind kind, const Clock& clock, bool* wrote) {
  const unsigned from = streams.find_concurrent(clock);
  if (from == NEVER) return nullptr;
  const Allocation* owner = arena.find(begin);
  const Shadow& shadow = owner ? owner->shadow : variable_shadow;
  const Place origin = owner ? owner->begin : Place(__data_start);
  if (!shadow.cells || (!owner && !is_of_device(begin)) || begin < origin) return nullptr;
  const size_t end = std::min(shadow.count, ((begin + bytes - 1 - origin) >> shadow.shift) + 1);
  for (size_t i = (begin - origin) >> shadow.shift; i < end; ++i)
    for (const Access* access : {&shadow.cells[i].writer, &shadow.cells[i].reader, &shadow.cells[i].other_reader}) {
      *wrote = access == &shadow.cells[i].writer;
      if ((*wrote || kind != READ) && access->epoch >= from && streams.is_concurrent(access->epoch, clock)) return access;
    }
  return nullptr;
}

// Compare an access by the host or by a copy with launches and copies that `clock` does not cover.
inline void check_range(Place begin, size_t bytes, Kind kind, const Clock& clock, void* caller, bool by_host) {
  const Spot spot{{}, {}, caller, kind};
  for (const Transfer& transfer : transfers)
    if (transfer.conflicts(begin, bytes, kind) && !clock.covers(transfer.stream, transfer.number))
      note_hazard(report_of_host(), by_host ? "host after copy" : "copy after copy", spot, transfer.caller, transfer.kind);
  bool wrote = false;
  if (const Access* access = find_concurrent_access(begin, bytes, kind, clock, &wrote))
    note_hazard(report_of_host(), by_host ? "host after kernel" : "copy after kernel", spot,
                reinterpret_cast<void*>(Place(access->caller)), kind_of(*access, wrote));
}

// One end of a copy. Memory of the host that is not page-locked is copied before the call returns.
inline bool add_transfer(const void* pointer, size_t bytes, Kind kind, const CUstream_st& stream, unsigned number,
                         void* caller) {
  const Place begin = Place(pointer);
  if (!arena.holds(begin) && !is_of_device(begin) && !is_registered(begin)) return false;
  check_range(begin, bytes, kind, stream.clock, caller, false);
  transfers.push_back({begin, begin + bytes, kind, stream.stream, number, caller});
  if (transfers.size() > MAX_TRANSFERS) transfers.pop_front();
  return true;
}

// A copy, or a memset without `from`. `waits`: the host waits for it.
inline void order_copy(const void* to, const void* from, size_t bytes, CUstream_st* of_copy, bool waits, void* caller) {
  if (!bytes) return;
  CUstream_st& stream = streams.find(of_copy);
  const unsigned number = streams.begin(stream);
  if (from) add_transfer(from, bytes, READ, stream, number, caller);
  const bool stays = add_transfer(to, bytes, WRITE, stream, number, caller);
  if (waits || !stays) wait_for(stream.clock);
}

// The host's program accesses memory that kernels may use as well.
inline void check_host(Place place, size_t bytes, Kind kind, void* caller) {
  if (now.running || streams.calls_host || (transfers.empty() && streams.open.empty())) return;
  const Allocation* owner = arena.find(place);
  if (owner && owner->kind != DEVICE) check_range(place, bytes, kind, streams.host, caller, true);
}
}  // namespace emulator
