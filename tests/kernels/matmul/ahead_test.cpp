#include "kernels/matmul/ahead.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace knap::test::ahead_test {
namespace {

std::vector<const std::byte*> fetched;

struct Recorder {
    static void prefetch(const std::byte* p) { fetched.push_back(p); }
    static void prefetch_to_second_cache(const std::byte* p) { fetched.push_back(p); }
};

constexpr std::size_t kLine = 64;

// The lines of these bytes that have been fetched, in order, without those behind them.
std::vector<std::size_t> lines_of(std::span<const std::byte> bytes) {
    std::vector<std::size_t> lines;
    for (const std::byte* p : fetched) {
        if (bytes.data() <= p && p < bytes.data() + bytes.size()) {
            lines.push_back(static_cast<std::size_t>(p - bytes.data()) / kLine);
        }
    }
    return lines;
}

std::vector<std::size_t> lines(std::size_t first, std::size_t last) {
    std::vector<std::size_t> all;
    for (std::size_t i = first; i <= last; ++i) {
        all.push_back(i);
    }
    return all;
}

class AheadTest : public ::testing::Test {
  protected:
    template <bool ToFirst>
    void run(std::size_t n_bytes, std::size_t distance, int n_steps, std::size_t n_next) {
        fetched.clear();
        Ahead<Recorder, ToFirst> ahead(memory_.data(), n_bytes, distance, n_steps,
                                       std::span(next_).first(n_next));
        for (int i = 0; i < n_steps; ++i) {
            ahead.fetch();
        }
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
    std::vector<std::byte> next_ = std::vector<std::byte>(1 << 14);
};

TEST_F(AheadTest, FetchesWhatLiesAhead) {
    run<true>(6400, 1280, 10, 0);
    EXPECT_EQ(lines_of(memory_), lines(20, 119));
    EXPECT_EQ(lines_of(next_), std::vector<std::size_t>());
    run<false>(6400, 6400, 50, 0);
    EXPECT_EQ(lines_of(memory_), lines(100, 199));
}

TEST_F(AheadTest, FetchesTheRestOfTheGroupAndThenWhatIsReadNext) {
    for (const std::size_t n_next : {640, 4096, 16384}) {
        for (const int n_steps : {18, 100, 1000}) {
            run<false>(6400, 1280, n_steps, n_next);
            const auto rest = lines_of(std::span(memory_).first(6400));
            const auto next = lines_of(std::span(next_).first(n_next));
            EXPECT_EQ(rest, lines(20, 99)) << n_next << " bytes in " << n_steps;
            // Steps are whole lines, and two streams may take one step more than one.
            ASSERT_FALSE(next.empty());
            EXPECT_EQ(next, lines(0, next.size() - 1));
            const std::size_t step = (6400 - 1280 + n_next) / static_cast<std::size_t>(n_steps);
            EXPECT_GE(next.size() * kLine + 2 * step + kLine, n_next) << n_steps;
        }
    }
}

TEST_F(AheadTest, FetchesOnlyWhatIsReadNextAtTheDistanceOfAGroup) {
    run<true>(6400, 6400, 64, 4096);
    EXPECT_EQ(lines_of(memory_), std::vector<std::size_t>());
    EXPECT_EQ(lines_of(next_), lines(0, 63));
}

}  // namespace
}  // namespace knap::test::ahead_test
