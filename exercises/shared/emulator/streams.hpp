// The order of launches and copies. Each is an operation of a stream, with a number in it. A clock says for each stream how many
// of its operations come before a point in the program: of a stream, an event, or the host.
//
// The default stream orders itself with all streams but those of cudaStreamNonBlocking.
#pragma once
#include "machine.hpp"

#include <algorithm>
#include <deque>

namespace emulator {
struct Clock {
  std::vector<unsigned> counts;

  void join(const Clock& other) {
    if (counts.size() < other.counts.size()) counts.resize(other.counts.size());
    for (size_t i = 0; i < other.counts.size(); ++i) counts[i] = std::max(counts[i], other.counts[i]);
  }

  unsigned count(unsigned stream) {
    if (counts.size() <= stream) counts.resize(stream + 1);
    return ++counts[stream];
  }

  bool covers(unsigned stream, unsigned number) const { return stream < counts.size() && counts[stream] >= number; }
};
}  // namespace emulator

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  unsigned stream = 0;  // its place in a clock
  emulator::Clock clock{};
};

namespace emulator {
struct Launched {
  unsigned began;  // the epoch
  unsigned stream, number;
};

constexpr unsigned NEVER = ~0u;
constexpr size_t MAX_OPEN = 1024;  // launches that are kept; older ones count as ordered

struct Streams {
  CUstream_st default_stream{}, stream_of_thread{0, 0, 1};
  unsigned count = 2;
  Clock host, blocking, all;
  Clock current;  // of the operation that was begun last
  std::deque<Launched> open;  // launches that the host has not waited for
  unsigned concurrent_from = NEVER;  // no access before this epoch is concurrent with the kernel that runs
  bool calls_host = false;  // a host function runs as an operation of a stream

  CUstream_st& find(CUstream_st* stream) {
    if (!stream || stream == cudaStreamLegacy) return default_stream;
    return stream == cudaStreamPerThread ? stream_of_thread : *stream;
  }

  // Begin an operation. Returns its number.
  unsigned begin(CUstream_st& stream) {
    const bool blocks = !(stream.flags & cudaStreamNonBlocking);
    stream.clock.join(host);
    if (blocks) stream.clock.join(&stream == &default_stream ? blocking : default_stream.clock);
    const unsigned number = stream.clock.count(stream.stream);
    if (blocks) blocking.join(stream.clock);
    all.join(stream.clock);
    current = stream.clock;
    return number;
  }

  void begin_launch(CUstream_st* stream) {
    CUstream_st& of_launch = find(stream);
    open.push_back({now.epoch + 1, of_launch.stream, begin(of_launch)});
    if (open.size() > MAX_OPEN) open.pop_front();
    concurrent_from = find_concurrent(current);
  }

  // The host waits for what a clock covers.
  void wait(const Clock& clock) {
    host.join(clock);
    while (!open.empty() && host.covers(open.front().stream, open.front().number)) open.pop_front();
  }

  // The epoch of the first launch that a clock does not cover.
  unsigned find_concurrent(const Clock& clock) const {
    for (const Launched& launch : open)
      if (!clock.covers(launch.stream, launch.number)) return launch.began;
    return NEVER;
  }

  // Whether a clock does not cover the launch of an epoch.
  bool is_concurrent(unsigned epoch, const Clock& clock) const {
    const auto later = [](unsigned value, const Launched& launch) { return value < launch.began; };
    const auto next = std::upper_bound(open.begin(), open.end(), epoch, later);
    return next != open.begin() && !clock.covers(std::prev(next)->stream, std::prev(next)->number);
  }
};
inline Streams streams;
}  // namespace emulator
