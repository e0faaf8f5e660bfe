// Measures the memory bandwidth of threads that only read. It bounds the speed of plain decoding,
// which reads every weight once per token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace knap {

class MemoryReader {
  public:
    // Allocates a gigabyte of memory. Throws knap::Error on failure.
    explicit MemoryReader(int n_threads);

    double gb_per_second();  // reads the whole memory once

  private:
    std::unique_ptr<std::uint64_t, void (*)(void*)> memory_;
    std::vector<std::uint64_t> sums_;  // [n_threads], kept so that the reads are not optimised away
};

// The median of a few readings.
double memory_gb_per_second(int n_threads);

}  // namespace knap
