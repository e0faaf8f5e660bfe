// What stands beside the progress bar of a download: "4.7 GB, 85.0 MB/s, 00:41 left".
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

namespace knap {

class FetchNote {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // The rate is that of the last few seconds.
    std::string received(std::uint64_t n_done, std::uint64_t n_bytes, Time now);
    // Something other than receiving: the rate begins anew.
    std::string other(const std::string& note);

  private:
    struct Sample {
        Time time;
        std::uint64_t n_done;
    };
    std::deque<Sample> samples_;
};

}  // namespace knap
