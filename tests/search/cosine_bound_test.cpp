// The lemma of the KnapSpec paper: a cosine above its bound means the same argmax. On random heads
// and streams, and on the streams of a model.
#include "support/cosine_bound.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "search/cosine.h"
#include "support/search_rig.h"

namespace knap::test::cosine_bound_test {
namespace {

constexpr unsigned kHeads = 300;

std::vector<float> random_row(std::mt19937& random, std::size_t size) {
    std::normal_distribution<float> normal;
    std::vector<float> row(size);
    for (float& value : row) {
        value = normal(random);
    }
    return row;
}

double length_of(std::span<const float> row) {
    double sum = 0;
    for (const float value : row) {
        sum += static_cast<double>(value) * value;
    }
    return std::sqrt(sum);
}

// `stream` turned towards `direction` by an angle, and scaled: its length must not matter.
std::vector<float> turned(std::span<const float> stream,
                          std::vector<float> direction,
                          double angle,
                          double scale) {
    const double length = length_of(stream);
    double along = 0;
    for (std::size_t i = 0; i < stream.size(); ++i) {
        along += stream[i] * static_cast<double>(direction[i]) / (length * length);
    }
    for (std::size_t i = 0; i < stream.size(); ++i) {
        direction[i] -= static_cast<float>(along * stream[i]);
    }
    const double across = length_of(direction);
    std::vector<float> result(stream.size());
    for (std::size_t i = 0; i < stream.size(); ++i) {
        result[i] = static_cast<float>(scale * (std::cos(angle) * stream[i] +
                                                std::sin(angle) * length / across * direction[i]));
    }
    return result;
}

// A random head and a random stream. One token in two is given a wide margin, as a model's are.
struct RandomCase {
    explicit RandomCase(unsigned seed) : random(seed) {
        const auto up_to = [this](std::size_t least, std::size_t most) {
            return std::uniform_int_distribution<std::size_t>(least, most)(random);
        };
        const std::size_t n_embd = up_to(2, 48);
        const std::size_t n_vocab = up_to(2, 120);
        head = FoldedHead(random_row(random, n_embd * n_vocab), n_embd);
        stream = random_row(random, n_embd);
        if (seed % 2 == 0) {
            const auto favoured = head.row(up_to(0, n_vocab - 1));
            for (std::size_t i = 0; i < n_embd; ++i) {
                stream[i] += 2 * favoured[i];
            }
        }
    }

    // Towards the token that is reached first.
    std::vector<float> worst_direction(const CosineBound& bound) const {
        std::vector<float> direction(stream.size());
        for (std::size_t i = 0; i < direction.size(); ++i) {
            direction[i] = head.row(bound.nearest)[i] - head.row(bound.choice)[i];
        }
        return direction;
    }

    std::mt19937 random;
    FoldedHead head{{}, 1};
    std::vector<float> stream;
};

TEST(CosineBound, IsNeverViolatedOnRandomHeads) {
    int n_within = 0;
    for (unsigned seed = 0; seed < kHeads; ++seed) {
        RandomCase test(seed);
        const CosineBound bound = cosine_bound(test.head, test.stream);
        ASSERT_EQ(bound.choice, test.head.argmax(test.stream));
        ASSERT_GE(bound.of_paper, bound.least) << seed;
        for (const double share : {0.1, 0.5, 0.99, 1.5}) {
            const double angle = share * std::acos(bound.of_paper);
            for (const bool is_worst : {false, true}) {
                const auto other = turned(test.stream,
                                          is_worst ? test.worst_direction(bound)
                                                   : random_row(test.random, test.stream.size()),
                                          angle, 0.5 + share);
                if (cosine(test.stream, other) >= bound.of_paper) {
                    ++n_within;
                    EXPECT_EQ(test.head.argmax(other), bound.choice) << seed << ", " << share;
                }
            }
        }
    }
    // The cases beyond the bound are a quarter of all.
    EXPECT_GT(n_within, static_cast<int>(kHeads) * 5);
}

// So no better bound exists that holds in every direction.
TEST(CosineBound, TheLeastOneIsSharp) {
    constexpr double kResolved = 1e-3;  // angles that turning f32 values by a thousandth resolves
    int n_tested = 0;
    for (unsigned seed = 0; seed < kHeads; ++seed) {
        const RandomCase test(seed);
        const CosineBound bound = cosine_bound(test.head, test.stream);
        if (std::acos(bound.least) < kResolved) {
            continue;
        }
        ++n_tested;
        const auto argmax_at = [&](double share) {
            return test.head.argmax(turned(test.stream, test.worst_direction(bound),
                                           share * std::acos(bound.least), 1));
        };
        EXPECT_EQ(argmax_at(0.999), bound.choice) << seed;
        EXPECT_NE(argmax_at(1.001), bound.choice) << seed;
    }
    EXPECT_GT(n_tested, static_cast<int>(kHeads) * 9 / 10);
}

// Streams of drafts: those of a plan, and mixtures with the whole model's, because a model with
// random weights has narrow margins.
TEST(CosineBound, HoldsForTheStreamsOfAModel) {
    constexpr int kRows = 16;
    SearchRig rig;
    const TargetRows target = rig.target(kRows);
    const FoldedHead head(rig.model.weights->tensors());
    ModulePlan skipping(rig.n_layers());
    skipping.set(rig.n_layers() - 1, Module::mlp, Level::skip);
    const std::size_t n_embd = head.n_embd();
    int n_within = 0;
    int n_beyond = 0;
    for (const ModulePlan& plan :
         {uniform_window_plan(rig.n_layers(), {.sinks = 4, .recent = 28}), skipping}) {
        const std::vector<float> drafted = rig.end_state(plan, kRows);
        for (std::size_t row = 0; row < kRows; ++row) {
            const auto stream = std::span(target.streams.back()).subspan(row * n_embd, n_embd);
            const CosineBound bound = cosine_bound(head, stream);
            ASSERT_EQ(bound.choice, static_cast<std::size_t>(target.choices[row]));
            for (float share = 1; share > 1e-3F; share /= 4) {
                std::vector<float> mixed(stream.begin(), stream.end());
                for (std::size_t i = 0; i < n_embd; ++i) {
                    mixed[i] += share * (drafted[row * n_embd + i] - mixed[i]);
                }
                if (cosine(stream, mixed) >= bound.of_paper) {
                    ++n_within;
                    EXPECT_EQ(head.argmax(mixed), bound.choice) << row << ", " << share;
                } else {
                    ++n_beyond;
                }
            }
        }
    }
    EXPECT_GT(n_within, 20);
    EXPECT_GT(n_beyond, 20);
}

}  // namespace
}  // namespace knap::test::cosine_bound_test
