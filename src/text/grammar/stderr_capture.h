// Collects what this process writes to standard error while the object lives. libllama's grammar
// parser tells what is wrong with a grammar nowhere else.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace knap {

// One at a time: a second thread waits. What other threads write meanwhile appears afterwards.
class StderrCapture {
  public:
    StderrCapture();
    ~StderrCapture();  // passes on what take() has left
    StderrCapture(const StderrCapture&) = delete;
    StderrCapture& operator=(const StderrCapture&) = delete;

    // Ends the collecting. Returns the text between `begin` and `end`, and removes all three;
    // empty: it was not written.
    std::string take(std::string_view begin, std::string_view end);

  private:
    void restore();
    void finish();

    std::unique_lock<std::mutex> lock_;
    int original_ = -1;   // standard error; -1: nothing is collected
    int collected_ = -1;  // a file in memory
    std::string text_;
};

}  // namespace knap
