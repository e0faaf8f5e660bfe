// What the machine's memory gives to threads that do nothing but read it: the bound of plain
// decoding, which reads every weight for a token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace knap {

class MemoryReader {
  public:
    // Takes a gigabyte of memory. Throws knap::Error where there is none.
    explicit MemoryReader(int n_threads);

    double gb_per_second();  // of one reading of all of it

  private:
    std::unique_ptr<std::uint64_t, void (*)(void*)> memory_;
    std::vector<std::uint64_t> sums_;  // [n_threads] kept, so that nobody leaves out the reading
};

// The median of a few readings.
double memory_gb_per_second(int n_threads);

}  // namespace knap
