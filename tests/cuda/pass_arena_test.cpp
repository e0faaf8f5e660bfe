// What passes are asked for, on its way to the device.
#include "cuda/pass_arena.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace knap::test::pass_arena_test {
namespace {

// Puts two arrays, uploads them, and reads them back.
std::vector<std::int32_t> send(PassArena& arena,
                               CudaStream& stream,
                               const std::vector<std::int32_t>& first,
                               const std::vector<std::int32_t>& second) {
    arena.clear();
    const std::size_t at_first = arena.put(std::span<const std::int32_t>(first));
    const std::size_t at_second = arena.put(std::span<const std::int32_t>(second));
    arena.upload(stream);
    std::vector<std::int32_t> back(first.size() + second.size());
    const std::size_t n_bytes = first.size() * sizeof(std::int32_t);
    stream.download(back.data(), arena.at<std::int32_t>(at_first), n_bytes);
    stream.download(back.data() + first.size(), arena.at<std::int32_t>(at_second),
                    second.size() * sizeof(std::int32_t));
    stream.wait();
    return back;
}

std::vector<std::int32_t> numbers(std::size_t n, std::int32_t first) {
    std::vector<std::int32_t> all(n);
    std::iota(all.begin(), all.end(), first);
    return all;
}

std::vector<std::int32_t> joined(std::vector<std::int32_t> a, const std::vector<std::int32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

TEST(PassArena, BringsEveryArrayWhateverWasSentBefore) {
    PassArena arena;
    CudaStream stream;
    const auto phases = numbers(4000, 0);
    auto other = phases;
    other[3000] = -1;
    for (const auto& first : {phases, phases, other, phases, numbers(100, 7), numbers(9000, 1)}) {
        for (const auto& second : {numbers(10, 1), numbers(10, 1), numbers(11, 2)}) {
            EXPECT_EQ(send(arena, stream, first, second), joined(first, second));
        }
    }
}

TEST(PassArena, SendsWhatHasNotChangedOnlyOnce) {
    PassArena arena;
    CudaStream stream;
    const auto phases = numbers(4000, 0);
    send(arena, stream, phases, numbers(10, 1));
    EXPECT_GE(arena.n_uploaded(), 16000u);
    send(arena, stream, phases, numbers(10, 2));
    EXPECT_LT(arena.n_uploaded(), 2000u);
    send(arena, stream, numbers(4000, 1), numbers(10, 2));
    EXPECT_GE(arena.n_uploaded(), 16000u);
}

}  // namespace
}  // namespace knap::test::pass_arena_test
