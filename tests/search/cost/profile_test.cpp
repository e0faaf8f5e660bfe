#include "search/cost/profile.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "model/layer_classes.h"
#include "search/cost/cost_model.h"
#include "search/some_tokens.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::cost_profile_test {
namespace {

using test::ForwardRig;
using test::LoadedModel;

constexpr int kGraphs = 64;  // size of the graph cache

const std::vector<int> kOneClass(30, 0);
const std::vector<int> kTwoClasses{0, 0, 1, 0, 1, 1};

void expect_each_once(const std::vector<Probe>& probes) {
    for (std::size_t i = 0; i < probes.size(); ++i) {
        EXPECT_EQ(std::ranges::count(probes, probes[i]), 1) << i;
    }
}

std::set<int> rows_of(const std::vector<Probe>& probes) {
    std::set<int> rows;
    for (const Probe& probe : probes) {
        rows.insert(probe.n_rows);
    }
    return rows;
}

TEST(ProfileProbes, CoverContextsAndRows) {
    const std::vector<Probe> probes = profile_probes(kOneClass, 8192, 16);
    expect_each_once(probes);
    EXPECT_LE(probes.size(), kGraphs);
    EXPECT_EQ(rows_of(probes), (std::set{1, 2, 3, 4, 5, 6, 8, 10, 12, 16}));
    std::set<int> contexts;
    for (const Probe& probe : probes) {
        if (probe.plan.is_full() && probe.has_head && probe.n_rows == 1) {
            contexts.insert(probe.n_context);
        }
    }
    EXPECT_EQ(contexts, (std::set{128, 362, 1024, 2896, 8192}));
}

TEST(ProfileProbes, KeepToTheMaximumNumberOfRows) {
    EXPECT_EQ(rows_of(profile_probes(kOneClass, 8192, 7)), (std::set{1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(rows_of(profile_probes(kOneClass, 8192, 20)),
              (std::set{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20}));
    EXPECT_EQ(rows_of(profile_probes(kOneClass, 8192, 1)), (std::set{1}));
}

TEST(ProfileProbes, SkipEachClassSeparately) {
    const std::vector<Probe> probes = profile_probes(kTwoClasses, 8192, 16);
    expect_each_once(probes);
    EXPECT_LE(probes.size(), kGraphs);
    for (const int c : {0, 1}) {
        for (const Module skipped : {Module::attention, Module::mlp}) {
            EXPECT_TRUE(std::ranges::any_of(
                probes,
                [&](const Probe& probe) {
                    for (int layer = 0; layer < 6; ++layer) {
                        const bool is_of_class = kTwoClasses[static_cast<std::size_t>(layer)] == c;
                        for (const Module module : {Module::attention, Module::mlp}) {
                            const bool runs = !is_of_class || module != skipped;
                            if (probe.plan.runs(layer, module) != runs) {
                                return false;
                            }
                        }
                    }
                    return true;
                }))
                << "class " << c;
        }
    }
}

TEST(ProfileProbes, FitAContextShorterThanAnyWindow) {
    for (const int max_context : {0, 1, 40, 80}) {
        const std::vector<Probe> probes = profile_probes({{0}}, max_context, 4);
        expect_each_once(probes);
        for (const Probe& probe : probes) {
            EXPECT_LE(probe.n_context, max_context);
            EXPECT_TRUE(distinct_windows(probe.plan).empty());
        }
    }
}

TEST(FirstProbes, AreFewAndStartWithAPlainStep) {
    const std::vector<Probe> probes = first_probes(kOneClass, 3000, 16);
    expect_each_once(probes);
    EXPECT_LE(probes.size(), 8u);
    EXPECT_TRUE(probes.front().plan.is_full());
    EXPECT_EQ(probes.front().n_rows, 1);
    EXPECT_TRUE(std::ranges::any_of(
        probes, [](const Probe& probe) { return !distinct_windows(probe.plan).empty(); }));
    for (const Probe& probe : probes) {
        EXPECT_EQ(probe.n_context, 3000);
    }
}

TEST(FirstProbes, KeepToTheMaximumNumberOfRows) {
    EXPECT_EQ(rows_of(first_probes(kOneClass, 3000, 7)), (std::set{1, 2, 4, 7}));
    EXPECT_EQ(rows_of(first_probes(kOneClass, 3000, 1)), (std::set{1}));
    EXPECT_EQ(rows_of(first_probes(kOneClass, 3000, 0)), (std::set{1}));
}

class ProfileTest : public testing::Test {
  protected:
    std::vector<int> classes() const { return classify_layers(*model_.weights); }

    LoadedModel model_{tiny_model()};
    ForwardRig rig_{model_, {.capacity = 256, .n_ubatch = 256}};
};

TEST_F(ProfileTest, MeasuringWritesOnlyAboveTheContext) {
    rig_.feed(test::random_tokens(100, model_.config.n_vocab, 1));
    const std::vector<std::byte> before = rig_.cache_bytes();
    const int n_layers = model_.config.n_layers;
    const std::vector<Probe> probes{
        {.plan = ModulePlan(n_layers), .n_context = 100},
        {.plan = ModulePlan(n_layers), .n_context = 100, .n_rows = 5},
        {.plan = ModulePlan(n_layers), .n_context = 100, .has_head = false},
        {.plan = uniform_window_plan(n_layers, {.sinks = 4, .recent = 16}), .n_context = 100},
        {.plan = early_exit_plan(n_layers, 0), .n_context = 100},
    };
    for (const Probe& probe : probes) {
        const std::optional<PassTime> time = measure_pass(rig_.forward, probe);
        ASSERT_TRUE(time);
        EXPECT_GT(time->ms, 0);
    }
    EXPECT_EQ(rig_.cache.committed(), 100);
    EXPECT_EQ(rig_.cache_bytes(), before);
}

// Rows of one token would choose the same experts, and look cheap.
TEST_F(ProfileTest, RowsOfAProbeAreDifferentTokens) {
    const int n_vocab = model_.config.n_vocab;
    ASSERT_TRUE(measure_pass(
        rig_.forward, {.plan = ModulePlan(model_.config.n_layers), .n_context = 0, .n_rows = 5}));
    rig_.cache.commit(5);
    const std::vector<std::byte> measured = rig_.cache_bytes();
    const std::vector<Token> tokens = some_tokens(5, n_vocab);
    EXPECT_EQ(std::set(tokens.begin(), tokens.end()).size(), 5U);
    EXPECT_LT(*std::ranges::max_element(tokens), n_vocab);
    rig_.forward.run({.tokens = tokens});
    EXPECT_EQ(rig_.cache_bytes(), measured);
    const std::vector<Token> same(5, tokens[0]);
    rig_.forward.run({.tokens = same});
    EXPECT_NE(rig_.cache_bytes(), measured);
}

// A windowed pass after the committed rows would be rejected if its context were not the probe's.
TEST_F(ProfileTest, MeasuresAtTheProbesContext) {
    const int n_layers = model_.config.n_layers;
    rig_.feed(test::random_tokens(200, model_.config.n_vocab, 1));
    rig_.cache.truncate(0);
    rig_.cache.commit(200);
    EXPECT_TRUE(measure_pass(
        rig_.forward,
        {.plan = uniform_window_plan(n_layers, {.sinks = 4, .recent = 16}), .n_context = 50}));
}

TEST_F(ProfileTest, MeasuringCanBeCancelled) {
    model_.backend.set_abort([] { return true; });
    EXPECT_FALSE(
        measure_pass(rig_.forward, {.plan = ModulePlan(model_.config.n_layers), .n_context = 0}));
    EXPECT_FALSE(measure_profile(rig_.forward, rig_.cache, classes(), {.max_context = 200}));
}

// Thousands of rows are written before the first measurement.
TEST_F(ProfileTest, CanBeCancelledWhileTheCacheIsFilled) {
    const auto n_before = rig_.forward.pass_totals().n_passes;
    const std::function<bool()> has_computed = [&] {
        return rig_.forward.pass_totals().n_passes > n_before;
    };
    rig_.forward.set_cancel(&has_computed);
    EXPECT_FALSE(measure_profile(rig_.forward, rig_.cache, classes(), {.max_context = 200}));
    rig_.forward.set_cancel(nullptr);
    rig_.cache.commit(rig_.cache.capacity());
    const std::vector<std::byte> bytes = rig_.cache_bytes();
    const auto n_empty = std::ranges::count(bytes, std::byte{0});
    EXPECT_GT(n_empty, static_cast<std::ptrdiff_t>(bytes.size() / 2)) << "most rows are not copied";
}

TEST_F(ProfileTest, CanBeCancelledInTheMiddle) {
    int n_reports = 0;
    bool is_cancelled = false;
    model_.backend.set_abort([&] { return is_cancelled; });
    const auto profile =
        measure_profile(rig_.forward, rig_.cache, classes(),
                        {.max_context = 200, .seconds = 0, .on_progress = [&](double) {
                             is_cancelled = ++n_reports == 40;
                         }});
    EXPECT_FALSE(profile);
    EXPECT_EQ(n_reports, 40);
}

TEST_F(ProfileTest, MeasuresEveryProbeAtLeastThreeTimes) {
    rig_.feed(test::random_tokens(30, model_.config.n_vocab, 1));
    std::vector<double> progress;
    const PartBytes bytes{.attention = {1}, .mlp = {2}, .head = 3, .cache_row = 4};
    const auto profile = measure_profile(rig_.forward, rig_.cache, classes(),
                                         {.max_context = 100000,
                                          .max_rows = 8,
                                          .seconds = 0,
                                          .bytes = bytes,
                                          .on_progress = [&](double f) { progress.push_back(f); }});
    ASSERT_TRUE(profile);
    // The longest context that leaves room for the rows of a pass.
    EXPECT_EQ(profile->samples.size(),
              profile_probes(classes(), rig_.cache.capacity() - 8, 8).size());
    for (const CostSample& sample : profile->samples) {
        EXPECT_EQ(sample.n_measured, 3);
        EXPECT_TRUE(is_plausible(sample, model_.config.n_layers));
        EXPECT_GE(sample.spread_ms, 0);
    }
    EXPECT_EQ(profile->layer_classes, classes());
    EXPECT_EQ(profile->bytes.cache_row, 4);
    ASSERT_TRUE(can_fit(*profile));
    EXPECT_GT(CostModel(*profile).plain_step_ms(50), 0);

    EXPECT_TRUE(std::ranges::is_sorted(progress));
    EXPECT_GT(progress.front(), 0);
    EXPECT_EQ(progress.back(), 1);
    EXPECT_EQ(rig_.cache.committed(), 0);
}

TEST_F(ProfileTest, WritesEveryCacheRow) {
    ASSERT_TRUE(measure_profile(rig_.forward, rig_.cache, classes(),
                                {.max_context = 100, .max_rows = 2, .seconds = 0}));
    const int n_rows = rig_.cache.capacity();
    const std::size_t row_bytes = rig_.cache.saved_row_bytes();
    for (int layer = 0; layer < model_.config.n_layers; ++layer) {
        std::vector<std::byte> rows(static_cast<std::size_t>(n_rows) * row_bytes);
        rig_.cache.read_rows(layer, n_rows, rows.data());
        // Heads are stored one by one, 16 values of a row together: no run is all zeros.
        constexpr std::size_t kRun = 16 * 2;
        for (std::size_t begin = 0; begin < rows.size(); begin += kRun) {
            const auto run = std::span(rows).subspan(begin, kRun);
            ASSERT_TRUE(std::ranges::any_of(run, [](std::byte b) { return b != std::byte{0}; }))
                << "layer " << layer << ", run " << begin / kRun;
        }
    }
}

TEST_F(ProfileTest, RepeatsWhileThereIsTime) {
    const std::size_t n_enough = 6 * profile_probes(classes(), 20, 2).size();
    std::size_t n_measured = 0;
    bool is_cancelled = false;
    model_.backend.set_abort([&] { return is_cancelled; });
    const auto count = [&](double fraction) {
        EXPECT_LT(fraction, 1);
        is_cancelled = ++n_measured == n_enough;
    };
    EXPECT_FALSE(
        measure_profile(rig_.forward, rig_.cache, classes(),
                        {.max_context = 20, .max_rows = 2, .seconds = 1e6, .on_progress = count}));
    EXPECT_EQ(n_measured, n_enough);
}

TEST(PassTimes, DisturbedOnesAreLeftOut) {
    const PassTime disturbed{.ms = 50, .was_disturbed = true};
    const std::vector<PassTime> mostly_quiet{{.ms = 10}, disturbed, {.ms = 12}, {.ms = 11}};
    const Probe probe{.plan = ModulePlan(1), .n_context = 7, .n_rows = 2};
    const CostSample quiet = summary_of(probe, mostly_quiet);
    EXPECT_EQ(quiet.n_context, 7);
    EXPECT_EQ(quiet.n_rows, 2);
    EXPECT_EQ(quiet.ms, 11);
    EXPECT_EQ(quiet.n_measured, 3);
    EXPECT_FALSE(quiet.was_busy);
    const std::vector<PassTime> mostly_busy{disturbed, {.ms = 10}, disturbed, {.ms = 11}};
    const CostSample busy = summary_of(probe, mostly_busy);
    EXPECT_EQ(busy.n_measured, 4);
    EXPECT_TRUE(busy.was_busy);
}

}  // namespace
}  // namespace knap::cost_profile_test
