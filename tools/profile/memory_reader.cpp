#include "tools/profile/memory_reader.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>
#include <thread>

#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/quantile.h"

namespace knap {
namespace {

constexpr int kReads = 5;
// Many times the largest CPU cache. An odd number of pages, because shares that are powers of two
// apart would collide in the same memory banks.
constexpr std::size_t kPage = std::size_t{1} << 21;
constexpr std::size_t kBytes = 509 * kPage;

// Reads a whole span as fast as one thread can. Two streams keep more requests in flight than one.
std::uint64_t read_all(std::span<const std::uint64_t> words) {
    constexpr std::size_t kLanes = 32;  // independent sums: no addition waits for another
    const std::span<const std::uint64_t> halves[] = {words.first(words.size() / 2),
                                                     words.last(words.size() / 2)};
    std::uint64_t sums[kLanes] = {};
    for (std::size_t i = 0; i + kLanes <= words.size() / 2; i += kLanes) {
        for (const std::span<const std::uint64_t> half : halves) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                sums[lane] += half[i + lane];
            }
        }
    }
    return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

}  // namespace

// Uses huge pages, like the weights.
MemoryReader::MemoryReader(int n_threads)
    : memory_(static_cast<std::uint64_t*>(std::aligned_alloc(kPage, kBytes)), std::free),
      sums_(static_cast<std::size_t>(n_threads)) {
    if (memory_ == nullptr) {
        fail("memory: expected ", kBytes, " free bytes for the bandwidth test, found fewer");
    }
    madvise(memory_.get(), kBytes, MADV_HUGEPAGE);
    std::memset(memory_.get(), 1, kBytes);
}

double MemoryReader::gb_per_second() {
    const std::span words(memory_.get(), kBytes / sizeof(std::uint64_t));
    const std::size_t share = words.size() / sums_.size();
    const Stopwatch watch;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        threads.emplace_back([=, this] { sums_[i] = read_all(words.subspan(i * share, share)); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return static_cast<double>(kBytes) / watch.elapsed_ms() * 1e-6;
}

double memory_gb_per_second(int n_threads) {
    MemoryReader reader(n_threads);
    std::vector<double> speeds;
    for (int i = 0; i < kReads; ++i) {
        speeds.push_back(reader.gb_per_second());
    }
    return median(std::move(speeds));
}

}  // namespace knap
