// A bar on standard error for what takes a while. Draws only on a terminal and leaves nothing
// behind.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace knap {

class ProgressBar {
  public:
    explicit ProgressBar(std::string label);
    ~ProgressBar() { finish(); }
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    // 0..1, and what stands behind the bar; draws at most every 50 ms.
    void update(double fraction, std::string_view note = {});
    void finish();  // erases the bar

  private:
    std::string label_;
    bool is_terminal_;
    bool is_drawn_ = false;
    std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace knap
