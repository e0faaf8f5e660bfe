// Several sessions of one engine, each on a thread of its own: whoever else is served, whoever
// comes, leaves or is cancelled, and however short pages are, every text is that of plain decoding
// alone.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "runtime/engine_impl.h"
#include "support/session_stress.h"
#include "support/strategy_cases.h"

#ifndef KNAP_STRESS_SEEDS
#define KNAP_STRESS_SEEDS 2  // of every case; slow_tests has more
#endif

namespace knap::test::sessions_stress_test {
namespace {

struct SessionsCase {
    const char* name;
    int n_sessions;
    int n_parallel;  // contexts for which there are pages
    int n_turns;     // of each session
    CacheType cache = CacheType::f16;
    bool is_eager = false;  // see StrategyCase

    bool has_pages_for_all() const { return n_parallel >= n_sessions; }
    bool is_crowded() const { return n_sessions >= 8; }
};

constexpr int kSmallPass = 64;  // rows; prompts then take several passes

constexpr SessionsCase kCases[] = {
    {"Two", 2, 1, 16},
    {"Five", 5, 2, 8},
    {"FiveWithPagesForAll", 5, 5, 6},
    {"Eight", 8, 2, 8},
    {"Twelve", 12, 3, 8},
    {"TwelveWithPagesForOne", 12, 1, 5},
    {"WithAQuantisedCache", 4, 1, 8, CacheType::q8_0},
    {.name = "OfATrainedModel", .n_sessions = 4, .n_parallel = 2, .n_turns = 3, .is_eager = true},
};

struct SeededCase {
    SessionsCase sessions;
    unsigned seed;

    bool has_small_passes() const { return seed % 2 == 1; }
};

void PrintTo(const SeededCase& c, std::ostream* out) {
    *out << c.sessions.name << c.seed;
}

std::vector<SeededCase> all_cases() {
    std::vector<SeededCase> cases;
    for (unsigned seed = 1; seed <= KNAP_STRESS_SEEDS; ++seed) {
        for (const SessionsCase& c : kCases) {
            cases.push_back({c, seed});
        }
    }
    return cases;
}

std::vector<StrategyCase> strategies_of(const SessionsCase& c) {
    std::vector<StrategyCase> chosen;
    std::ranges::copy_if(strategy_cases(), std::back_inserter(chosen),
                         [&](const StrategyCase& s) { return s.is_eager == c.is_eager; });
    return chosen;
}

RuntimeConfig config_of(const SeededCase& seeded) {
    constexpr int kContext = 700;  // more than two pages
    const SessionsCase& c = seeded.sessions;
    RuntimeConfig config = test::config_of(strategies_of(c).front());
    config.n_ctx = std::max(config.n_ctx, kContext);
    config.n_parallel = c.n_parallel;
    config.n_ubatch = seeded.has_small_passes() ? kSmallPass : config.n_ubatch;
    config.cache_type_k = config.cache_type_v = c.cache;
    return config;
}

// Most of this depends on who meets whom, but not whether there is any.
void expect_something_was_tested(const SeededCase& seeded,
                                 const StressCounts& counts,
                                 int n_pages) {
    const SessionsCase& c = seeded.sessions;
    EXPECT_GT(counts.n_cancelled, 0);
    EXPECT_GT(counts.n_shared, 0);
    EXPECT_GT(counts.n_accepted, 0);
    EXPECT_LT(counts.n_accepted, counts.n_drafted);
    if (c.n_sessions > 4) {
        EXPECT_GT(counts.n_other_rows, 0) << "no pass was shared";
    }
    if (c.has_pages_for_all()) {
        EXPECT_GT(counts.n_reused, 0) << "no session went on with its rows";
    }
    if (c.is_crowded() && seeded.has_small_passes()) {
        EXPECT_GT(counts.n_lost, 0) << "nobody gave up its pages";
    }
    if (c.is_crowded() && c.n_parallel == 1) {
        EXPECT_GT(std::ssize(counts.pages), n_pages) << "nothing left the prefix cache";
    }
}

class SessionsStress : public ::testing::TestWithParam<SeededCase> {
  protected:
    const SessionsCase& sessions() const { return GetParam().sessions; }

    std::vector<StressConversation> conversations(const RuntimeConfig& config) const {
        StressWriter writer(config, strategies_of(sessions()), GetParam().seed);
        std::vector<StressConversation> all;
        for (int i = 0; i < sessions().n_sessions; ++i) {
            all.push_back(writer.next(sessions().n_turns));
        }
        return all;
    }
};

TEST_P(SessionsStress, WriteWhatEachWritesAlone) {
    const RuntimeConfig config = config_of(GetParam());
    const auto all = conversations(config);
    Engine engine(config);
    const StressCounts counts = expect_conversations(engine, all);
    expect_something_was_tested(GetParam(), counts,
                                impl_of(engine).pipeline().memory().pool().n_pages());
}

INSTANTIATE_TEST_SUITE_P(Random,
                         SessionsStress,
                         ::testing::ValuesIn(all_cases()),
                         [](const auto& test) {
                             return test.param.sessions.name + std::to_string(test.param.seed);
                         });

}  // namespace
}  // namespace knap::test::sessions_stress_test
