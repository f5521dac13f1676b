// Requests of a warp. The calls of a warp's lanes from the same place in the program, with the same count since the warp began
// this stretch, are one request; a stretch ends where the warp waits. A request costs sectors of 32 bytes, or turns of 32 banks.
#pragma once
#include "machine.hpp"

#include <algorithm>

namespace emulator {
struct Request {
  unsigned lanes;  // a bit each
  Place at[WARP];
};

struct Site {
  void* caller = nullptr;
  bool shared = false, write = false;
  unsigned size = 0, used = 0;
  unsigned count[WARP] = {};
  std::vector<Request> requests;
};

class Requests {
 public:
  Requests() : table_(1024) {}

  void add(void* caller, bool shared, bool write, unsigned size, Place place) {
    Site& site = find(caller, shared, write, size);
    const unsigned lane = now.current % WARP, number = site.count[lane]++;
    if (number >= site.used) {
      if (site.used == 0) touched_.push_back(&site);
      if (site.requests.size() <= site.used) site.requests.emplace_back();
      site.requests[site.used++].lanes = 0;
    }
    Request& request = site.requests[number];
    request.lanes |= 1u << lane;
    request.at[lane] = place;
  }

  // The stretch of the current warp has ended: count its requests.
  void flush() {
    for (Site* site : touched_) {
      Counts& counts = choose_counts(site->shared, site->write);
      for (unsigned i = 0; i < site->used; ++i) {
        count(counts, *site, site->requests[i]);
        if (now.report->trace.size() < most_traced_) trace(*site, site->requests[i]);
      }
      site->used = 0;
      memset(site->count, 0, sizeof site->count);
    }
    touched_.clear();
  }

  static Counts& choose_counts(bool shared, bool write) {
    Report& report = *now.report;
    return shared ? (write ? report.shared_store : report.shared_load) : (write ? report.global_store : report.global_load);
  }

 private:
  Site& find(void* caller, bool shared, bool write, unsigned size) {
    for (size_t i = hash(caller, shared, write);; ++i) {
      Site*& site = table_[i % table_.size()];
      if (!site) {
        site = new Site{};  // lives as long as the program
        site->caller = caller, site->shared = shared, site->write = write, site->size = size;
        Site& made = *site;
        if (++sites_ > table_.size() / 2) grow();
        return made;
      }
      if (site->caller == caller && site->size == size && site->shared == shared && site->write == write) return *site;
    }
  }

  static size_t hash(void* caller, bool shared, bool write) {
    return (Place(caller) * 4 + shared * 2 + write) * 0x9e3779b97f4a7c15u >> 20;
  }

  void grow() {
    std::vector<Site*> larger(4 * table_.size());
    for (Site* site : table_) {
      if (!site) continue;
      size_t i = hash(site->caller, site->shared, site->write);
      while (larger[i % larger.size()]) ++i;
      larger[i % larger.size()] = site;
    }
    table_.swap(larger);
  }

  static void trace(const Site& site, const Request& request) {
    Traced traced{site.caller, site.shared, site.write, site.size, request.lanes, {}};
    std::copy(request.at, request.at + WARP, traced.at);
    now.report->trace.push_back(traced);
  }

  static void count(Counts& counts, const Site& site, const Request& request) {
    const unsigned lanes = unsigned(__builtin_popcount(request.lanes));
    counts.requests++;
    counts.lanes += lanes;
    counts.bytes += uint64_t(lanes) * site.size;
    if (site.shared)
      counts.bank_conflicts += count_conflicts(site, request);
    else
      count_sectors(counts, site, request);
  }

  static void count_sectors(Counts& counts, const Site& site, const Request& request) {
    Place places[WARP];
    unsigned number = 0;
    for (unsigned lane = 0; lane < WARP; ++lane)
      if (request.lanes >> lane & 1) places[number++] = request.at[lane];
    if (!std::is_sorted(places, places + number)) std::sort(places, places + number);
    uint64_t sectors = 0, bytes = 0;
    Place next_sector = 0, next_byte = 0;
    for (unsigned i = 0; i < number; ++i) {
      const Place end = places[i] + site.size, first = std::max(places[i] / 32, next_sector);
      if ((end - 1) / 32 >= first) sectors += (end - 1) / 32 - first + 1, next_sector = (end - 1) / 32 + 1;
      if (end > next_byte) bytes += end - std::max(places[i], next_byte), next_byte = end;
    }
    counts.sectors += sectors;
    counts.sectors_ideal += (bytes + 31) / 32;
  }

  // Turns beyond the first: 32 lanes at a time for words of 4 bytes, 16 for 8 bytes, 8 for 16 bytes.
  static uint64_t count_conflicts(const Site& site, const Request& request) {
    const unsigned together = site.size <= 4 ? 32 : site.size <= 8 ? 16 : 8;
    uint64_t conflicts = 0;
    for (unsigned first = 0; first < WARP; first += together) {
      Place words[WARP];
      unsigned number = 0, banks[32] = {}, most = 0;
      for (unsigned lane = first; lane < first + together; ++lane)
        if (request.lanes >> lane & 1)
          for (Place word = request.at[lane] / 4; word <= (request.at[lane] + site.size - 1) / 4 && number < WARP; ++word)
            words[number++] = word;
      std::sort(words, words + number);
      for (unsigned i = 0; i < number; ++i)
        if (i == 0 || words[i] != words[i - 1]) most = std::max(most, ++banks[words[i] % 32]);
      conflicts += most ? most - 1 : 0;
    }
    return conflicts;
  }

  std::vector<Site*> table_, touched_;
  size_t sites_ = 0;
  const size_t most_traced_ = getenv("EMULATOR_TRACE") ? size_t(atol(getenv("EMULATOR_TRACE"))) : 0;
};
extern Requests requests;
}  // namespace emulator
