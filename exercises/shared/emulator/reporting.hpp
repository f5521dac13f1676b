// The report as JSON, in the file that EMULATOR_REPORT names. Places in the program are addresses; kernels.py makes lines of them.
#pragma once
#include "variables.hpp"

#include <csignal>

namespace emulator {
class Writer {
 public:
  explicit Writer(FILE* file) : file_(file) {}

  void write(const std::map<std::string, Report>& kernels, const char* end, int number, const Spot& spot) {
    fprintf(file_, "{\"end\":\"%s\",\"signal\":%d,\"kernel\":", end, number);
    text(now.name);
    fprintf(file_, ",\"spot\":");
    write_spot(spot);
    fprintf(file_, ",\"kernels\":{");
    const char* comma = "";
    for (const auto& [name, report] : kernels) {
      fprintf(file_, "%s", comma);
      text(name.c_str());
      fprintf(file_, ":{\"launches\":%llu,\"threads\":%llu", (unsigned long long)report.launches, (unsigned long long)report.threads);
      fprintf(file_, ",\"atomics\":%llu", (unsigned long long)report.atomics);
      write_trace(report.trace);
      write_counts("global_load", report.global_load);
      write_counts("global_store", report.global_store);
      write_counts("shared_load", report.shared_load);
      write_counts("shared_store", report.shared_store);
      write_fault("races", report.races);
      write_fault("unwritten_reads", report.unwritten_reads);
      write_fault("out_of_bounds", report.out_of_bounds);
      write_fault("used_after_free", report.used_after_free);
      write_fault("barrier_divergence", report.barrier_divergence);
      write_fault("illegal_address", report.illegal_address);
      write_fault("too_many_threads", report.too_many_threads);
      fprintf(file_, "}");
      comma = ",";
    }
    fprintf(file_, "}}\n");
  }

 private:
  void text(const char* words) {
    fputc('"', file_);
    for (; *words; ++words) {
      if (*words == '"' || *words == '\\') fputc('\\', file_);
      fputc(static_cast<unsigned char>(*words) < ' ' ? ' ' : *words, file_);
    }
    fputc('"', file_);
  }

  void write_counts(const char* key, const Counts& counts) {
    const unsigned long long values[] = {counts.requests, counts.sectors, counts.sectors_ideal,
                                         counts.bytes,    counts.lanes,   counts.bank_conflicts};
    fprintf(file_, ",\"%s\":[", key);
    for (int i = 0; i < 6; ++i) fprintf(file_, "%s%llu", i ? "," : "", values[i]);
    fprintf(file_, "]");
  }

  void write_trace(const std::vector<Traced>& trace) {
    fprintf(file_, ",\"trace\":[");
    for (const Traced& request : trace) {
      fprintf(file_, "%s{\"caller\":%llu,\"shared\":%s,\"write\":%s,\"size\":%u,\"at\":[", &request == &trace[0] ? "" : ",",
              (unsigned long long)(Place)request.caller, request.shared ? "true" : "false", request.write ? "true" : "false",
              request.size);
      for (unsigned lane = 0; lane < WARP; ++lane) {
        const char* comma = lane ? "," : "";
        if (request.lanes >> lane & 1)
          fprintf(file_, "%s%llu", comma, (unsigned long long)request.at[lane]);
        else
          fprintf(file_, "%snull", comma);
      }
      fprintf(file_, "]}");
    }
    fprintf(file_, "]");
  }

  void write_spot(const Spot& spot) {
    const char* const kinds[] = {"reads", "writes", "changes atomically"};
    fprintf(file_, "{\"thread\":[%u,%u,%u],\"block\":[%u,%u,%u],\"caller\":%llu,\"kind\":\"%s\"}", spot.thread.x, spot.thread.y,
            spot.thread.z, spot.block.x, spot.block.y, spot.block.z, (unsigned long long)(Place)spot.caller, kinds[spot.kind]);
  }

  void write_fault(const char* key, const Fault& fault) {
    if (!fault.count) return;
    fprintf(file_, ",\"%s\":{\"count\":%llu,\"what\":\"%s\",\"detail\":[%lld,%lld,%lld],\"variable\":", key,
            (unsigned long long)fault.count, fault.what, fault.detail[0], fault.detail[1], fault.detail[2]);
    text(Variables::name_of(fault.detail[3] ? variables.find(Place(fault.detail[3])) : nullptr).c_str());
    fprintf(file_, ",\"first\":");
    write_spot(fault.first);
    fprintf(file_, ",\"other\":");
    write_spot(fault.other);
    fprintf(file_, "}");
  }

  FILE* file_;
};

// Write the report once, however the program ends.
inline void write_report(const char* end, int number, const Spot& spot) {
  static bool written = false;
  const char* path = getenv("EMULATOR_REPORT");
  if (written || !path) return;
  written = true;
  if (FILE* file = fopen(path, "w")) {
    Writer(file).write(reports, end, number, spot);
    fclose(file);
  }
}
}  // namespace emulator
