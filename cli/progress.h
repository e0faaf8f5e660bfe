// A progress bar on standard error. Drawn only on a terminal, and erased at the end.
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

    // `fraction` is 0..1; `note` follows the bar. Draws at most every 50 ms.
    void update(double fraction, std::string_view note = {});
    void finish();  // erases the bar

  private:
    std::string label_;
    bool is_terminal_;
    bool is_drawn_ = false;
    std::chrono::steady_clock::time_point last_draw_;
};

std::string time_left(double seconds);  // "1:05:10 left", "0:42 left"

}  // namespace knap
