// What programs need of helper_timer.h of NVIDIA's samples: a stop watch of this computer's clock.
#pragma once
#include <chrono>

class StopWatchInterface {
 public:
  void start() { started_ = Clock::now(), running_ = true; }
  void stop() {
    total_ms_ += running_ms(), ++sessions_;
    running_ = false;
  }
  void reset() {
    total_ms_ = 0, sessions_ = 0;
    if (running_) started_ = Clock::now();
  }
  float getTime() const { return float(total_ms_ + (running_ ? running_ms() : 0)); }
  float getAverageTime() const { return sessions_ ? float(total_ms_ / sessions_) : 0.0f; }

 private:
  using Clock = std::chrono::steady_clock;
  double running_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - started_).count(); }

  Clock::time_point started_{};
  double total_ms_ = 0;
  int sessions_ = 0;
  bool running_ = false;
};
typedef StopWatchInterface StopWatchLinux;

inline bool sdkCreateTimer(StopWatchInterface** timer) { return *timer = new StopWatchInterface, true; }
inline bool sdkDeleteTimer(StopWatchInterface** timer) {
  delete *timer;
  *timer = nullptr;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface** timer) { return (*timer)->start(), true; }
inline bool sdkStopTimer(StopWatchInterface** timer) { return (*timer)->stop(), true; }
inline bool sdkResetTimer(StopWatchInterface** timer) { return (*timer)->reset(), true; }
inline float sdkGetTimerValue(StopWatchInterface** timer) { return (*timer)->getTime(); }
inline float sdkGetAverageTimerValue(StopWatchInterface** timer) { return (*timer)->getAverageTime(); }
