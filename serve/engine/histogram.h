// Counts values in buckets, for a metric of type histogram. Any thread may add and read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace knap {

class Histogram {
  public:
    explicit Histogram(std::vector<double> upper_bounds);  // ascending; infinity is added

    void add(double value);

    const std::vector<double>& upper_bounds() const { return bounds_; }
    // Values of at most upper_bounds()[bucket]; the last index counts all.
    std::int64_t cumulative(std::size_t bucket) const;
    double sum() const { return sum_.load(); }

  private:
    std::vector<double> bounds_;
    std::unique_ptr<std::atomic<std::int64_t>[]> counts_;  // one per bucket, and one beyond
    std::atomic<double> sum_ = 0;
};

}  // namespace knap
