#include "search/cost/cost_model.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "forward/plan_cost.h"
#include "search/cost/probes.h"
#include "support/fake_machine.h"

namespace knap::cost_model_test {
namespace {

using test::FakeMachine;
using test::mixed_machine;
using test::plain_machine;
using test::random_steps;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kMaxContext = 8192;
constexpr int kMaxRows = 16;

CostProfile whole_profile(const FakeMachine& machine, double noise = 0) {
    return machine.profile(profile_probes(machine.layer_classes, kMaxContext, kMaxRows), noise);
}

Probe plain_step(int n_layers, int n_context) {
    return {.plan = ModulePlan(n_layers), .n_context = n_context};
}

double error_on(const CostModel& model, const FakeMachine& machine, const Probe& probe) {
    return std::abs(model.pass_ms(probe.plan, probe.n_context, probe.n_rows) / machine.ms(probe) -
                    1);
}

double worst_error(const CostModel& model, const FakeMachine& machine) {
    double worst = 0;
    for (const Probe& probe : random_steps(machine.n_layers(), 100)) {
        worst = std::max(worst, error_on(model, machine, probe));
    }
    return worst;
}

void expect_positive(const CostModel& model) {
    for (int layer = 0; layer < model.n_layers(); ++layer) {
        EXPECT_GT(model.attention_ms(layer, Level::full, 0), 0);
        EXPECT_GT(model.mlp_ms(layer), 0);
    }
    EXPECT_GT(model.head_ms(), 0);
    EXPECT_GT(model.fixed_ms(), 0);
    for (const int n_rows : {1, 2, 5, 16, 40}) {
        const double ms = model.verify_ms(n_rows, 100);
        EXPECT_TRUE(std::isfinite(ms) && ms > 0) << n_rows << " rows: " << ms;
    }
}

TEST(CacheRowsRead, EqualTheRowsThatTheEngineReads) {
    EXPECT_EQ(cache_rows_read(Level::full, 0, 0, 1), 64);
    EXPECT_EQ(cache_rows_read(Level::full, 0, 1000, 1), 1024);
    EXPECT_EQ(cache_rows_read(Level::full, 0, 4000, 16), 4096);
    EXPECT_EQ(cache_rows_read(Level::full, 0, 4090, 16), 4352);
    // The sinks take one step; the recent rows have room for a round and for an unaligned start.
    EXPECT_EQ(cache_rows_read(Level::windowed(16, 256), 0, 4000, 1), 64 + 384);
    EXPECT_EQ(cache_rows_read(Level::windowed(16, 256), 0, 8000, 16), 64 + 384);
    EXPECT_EQ(cache_rows_read(Level::skip, 0, 4000, 1), 0);
}

TEST(CacheRowsRead, StayWithinTheWindowOfALayer) {
    EXPECT_EQ(cache_rows_read(Level::full, 512, 100, 1), 128) << "a short context";
    EXPECT_EQ(cache_rows_read(Level::full, 512, 800, 1), 832 - 256);
    // From 1024 rows on a run begins and ends at multiples of 256.
    EXPECT_EQ(cache_rows_read(Level::full, 512, 4000, 1), 4096 - 3328);
    EXPECT_EQ(cache_rows_read(Level::full, 512, 100'000, 1), 100'096 - 99'328);
    EXPECT_EQ(cache_rows_read(Level::windowed(16, 64), 512, 4000, 1),
              cache_rows_read(Level::windowed(16, 64), 0, 4000, 1));
    EXPECT_EQ(cache_rows_read(Level::windowed(16, 2048), 512, 4000, 1),
              cache_rows_read(Level::full, 512, 4000, 1));
}

TEST(CacheRowsRead, EqualFullAttentionForAWindowThatCoversTheContext) {
    for (const int n_context : {0, 1, 100, 272}) {
        EXPECT_EQ(cache_rows_read(Level::windowed(16, 256), 0, n_context, 1),
                  cache_rows_read(Level::full, 0, n_context, 1));
    }
}

TEST(CostModel, RecoversThePartsOfAMachine) {
    const FakeMachine machine = plain_machine(30);
    const CostModel model(whole_profile(machine));
    EXPECT_NEAR(model.mlp_ms(7), 0.3, 0.003);
    // Every pass with logits has both; only one pass, without a head, separates them.
    EXPECT_NEAR(model.head_ms() + model.fixed_ms(), 2.1, 0.01);
    EXPECT_NEAR(model.head_ms(), 2.0, 0.1);
    EXPECT_NEAR(model.attention_ms(7, Level::full, 8000), 0.2 + 8192 * 1e-4, 0.01);
    EXPECT_NEAR(model.attention_ms(7, Level::windowed(16, 256), 8000), 0.2 + 448 * 1e-4, 0.003);
    EXPECT_LT(worst_error(model, machine), 0.01);
    EXPECT_LT(model.quality().worst_error, 0.01);
    EXPECT_TRUE(model.knows_rows());
}

TEST(CostModel, SeparatesClassesOfLayers) {
    const FakeMachine machine = mixed_machine(12);
    const CostModel model(whole_profile(machine));
    for (int layer = 0; layer < 2; ++layer) {
        const auto c = static_cast<std::size_t>(layer);
        EXPECT_NEAR(model.attention_ms(layer, Level::full, 63), machine.attention_ms[c] + 64e-4,
                    0.01);
        EXPECT_NEAR(model.mlp_ms(layer), machine.mlp_ms[c], 0.01);
    }
    EXPECT_LT(worst_error(model, machine), 0.01);
}

TEST(CostModel, ToleratesNoise) {
    const FakeMachine machine = plain_machine(30);
    const CostModel model(whole_profile(machine, 0.05));
    EXPECT_LT(worst_error(model, machine), 0.08);
    EXPECT_GT(model.quality().median_error, 0.001);
    EXPECT_LT(model.quality().median_error, 0.05);
    EXPECT_GE(model.quality().worst_error, model.quality().median_error);
    expect_positive(model);
}

TEST(CostModel, TrustsSteadyTimesMoreThanDisturbedOnes) {
    const FakeMachine machine = plain_machine(30);
    CostProfile profile = whole_profile(machine);
    for (std::size_t i = 0; i < profile.samples.size(); i += 4) {
        CostSample disturbed = profile.samples[i];
        disturbed.ms *= 1.5;
        disturbed.spread_ms = 0.4 * disturbed.ms;
        profile.samples.push_back(disturbed);
        disturbed.spread_ms = kNaN;
        profile.samples.push_back(disturbed);
    }
    const CostModel model(profile);
    EXPECT_LT(worst_error(model, machine), 0.02);
    for (const int n_rows : {4, 8, 16}) {
        const Probe probe{.plan = ModulePlan(30), .n_context = 1024, .n_rows = n_rows};
        EXPECT_LT(error_on(model, machine, probe), 0.02) << n_rows;
    }
}

TEST(CostModel, SeparatesWeightsFromCacheRowsInPassesOfSeveralRows) {
    FakeMachine machine = plain_machine(30);
    machine.weights_factor = [](int n) { return 0.25 + 0.75 * n; };
    machine.cache_factor = [](int) { return 1.5; };
    const CostModel model(whole_profile(machine));
    for (const int n_rows : {2, 4, 5, 8, 14, 16}) {
        for (const int n_context : {200, 3000, 8000}) {
            const Probe probe{.plan = ModulePlan(30), .n_context = n_context, .n_rows = n_rows};
            EXPECT_LT(error_on(model, machine, probe), 0.02) << n_rows << " at " << n_context;
            const Probe windowed{.plan = uniform_window_plan(30, {.sinks = 16, .recent = 64}),
                                 .n_context = n_context,
                                 .n_rows = n_rows};
            EXPECT_LT(error_on(model, machine, windowed), 0.02) << n_rows << " at " << n_context;
        }
    }
}

TEST(CostModel, ExtrapolatesBeyondTheMeasuredRowsWithTheLastSlope) {
    FakeMachine machine = plain_machine(4);
    machine.cache_row_ms = 1e-9;
    const auto measured = [&](std::vector<int> rows) {
        std::vector<Probe> probes{plain_step(4, 64)};
        for (const int n_rows : rows) {
            probes.push_back({.plan = ModulePlan(4), .n_context = 64, .n_rows = n_rows});
        }
        return CostModel(machine.profile(probes));
    };
    machine.weights_factor = [](int n) { return n <= 4 ? 1 : 1 + 0.5 * (n - 4); };
    const CostModel rising = measured({4, 8});
    const double step = rising.verify_ms(8, 64) - rising.verify_ms(7, 64);
    EXPECT_GT(step, 0.1);
    EXPECT_NEAR(rising.verify_ms(28, 64) - rising.verify_ms(8, 64), 20 * step, 1e-6);

    machine.weights_factor = [](int n) { return 3.0 - 0.1 * n; };
    const CostModel falling = measured({4, 8});
    EXPECT_LT(falling.verify_ms(8, 64), falling.verify_ms(4, 64));
    EXPECT_NEAR(falling.verify_ms(64, 64), falling.verify_ms(8, 64), 1e-3);
}

TEST(CostModel, PricesRowsAsWholePassesWhenNoneWereMeasured) {
    const FakeMachine machine = plain_machine(30);
    const CostModel model(machine.profile(std::vector{plain_step(30, 1000)}));
    EXPECT_FALSE(model.knows_rows());
    EXPECT_DOUBLE_EQ(model.verify_ms(6, 1000), 6 * model.plain_step_ms(1000));
    expect_positive(model);
}

TEST(CostModel, DividesASingleTimeByBytes) {
    const FakeMachine machine = plain_machine(10);
    CostProfile profile = machine.profile(std::vector{plain_step(10, 1000)});
    profile.bytes = {.attention = {1e6}, .mlp = {3e6}, .head = 20e6, .cache_row = 500};
    const CostModel model(profile);
    const double whole_ms = machine.ms(plain_step(10, 1000));
    const double whole_bytes = 10 * (1e6 + 3e6 + 1024 * 500.0) + 20e6;
    EXPECT_NEAR(model.plain_step_ms(1000), whole_ms, 0.001 * whole_ms);
    EXPECT_NEAR(model.mlp_ms(3) / whole_ms, 3e6 / whole_bytes, 0.002);
    EXPECT_NEAR(model.head_ms() / whole_ms, 20e6 / whole_bytes, 0.02);
    EXPECT_NEAR(model.attention_ms(3, Level::full, 1000) / whole_ms,
                (1e6 + 1024 * 500.0) / whole_bytes, 0.002);
}

TEST(CostModel, DividesASingleTimeEquallyWithoutBytes) {
    const FakeMachine machine = plain_machine(10);
    const CostModel model(machine.profile(std::vector{plain_step(10, 100)}));
    const double whole_ms = machine.ms(plain_step(10, 100));
    EXPECT_NEAR(model.plain_step_ms(100), whole_ms, 0.001 * whole_ms);
    EXPECT_NEAR(model.mlp_ms(3), model.head_ms(), 0.001 * whole_ms);
    EXPECT_NEAR(model.mlp_ms(3), whole_ms / 21, 0.1 * whole_ms / 21);
}

TEST(CostModel, IgnoresImplausibleBytes) {
    const FakeMachine machine = plain_machine(10);
    CostProfile profile = machine.profile(std::vector{plain_step(10, 100)});
    const double without_bytes = CostModel(profile).mlp_ms(0);
    profile.bytes = {.attention = {1e6}, .mlp = {kNaN}, .head = 20e6, .cache_row = 500};
    EXPECT_EQ(CostModel(profile).mlp_ms(0), without_bytes);
    profile.bytes.mlp = {3e6, 3e6};  // two classes instead of one
    EXPECT_EQ(CostModel(profile).mlp_ms(0), without_bytes);
}

TEST(CostModel, IsSensibleWithTheFewProbesOfARequest) {
    const FakeMachine machine = plain_machine(30);
    for (const int n_context : {60, 900, 4000}) {
        const CostModel model(
            machine.profile(first_probes(machine.layer_classes, n_context, kMaxRows)));
        EXPECT_LT(error_on(model, machine, plain_step(30, n_context)), 0.01);
        for (const int n_rows : {2, 3, 6, 12}) {
            const Probe verification{
                .plan = ModulePlan(30), .n_context = n_context, .n_rows = n_rows};
            EXPECT_LT(error_on(model, machine, verification), 0.05) << n_context;
        }
        const Probe windowed{.plan = uniform_window_plan(30, {.sinks = 16, .recent = 128}),
                             .n_context = n_context};
        EXPECT_LT(error_on(model, machine, windowed), 0.1) << n_context;
        expect_positive(model);
    }
}

// A single time has no spread that would tell.
TEST(CostModel, TimesOfABusyMachineCountLittle) {
    const FakeMachine machine = plain_machine(30);
    CostProfile profile = machine.profile(first_probes(machine.layer_classes, 900, kMaxRows));
    const std::vector<CostSample> quiet = profile.samples;
    for (CostSample sample : quiet) {
        sample.ms *= 2;
        sample.was_busy = true;
        profile.samples.push_back(sample);
    }
    const CostModel model(profile);
    for (const int n_rows : {1, 4, 8}) {
        const Probe pass{.plan = ModulePlan(30), .n_context = 900, .n_rows = n_rows};
        EXPECT_LT(error_on(model, machine, pass), 0.02) << n_rows;
    }
    std::erase_if(profile.samples, [](const CostSample& sample) { return !sample.was_busy; });
    EXPECT_NEAR(CostModel(profile).plain_step_ms(900), 2 * machine.ms(plain_step(30, 900)),
                0.02 * machine.ms(plain_step(30, 900)))
        << "but they count where there is nothing better";
}

TEST(CostModel, AQuietTimeReplacesThoseOfABusyMachine) {
    const FakeMachine machine = plain_machine(4);
    CostSample busy = machine.sample(plain_step(4, 100));
    busy.was_busy = true;
    CostSample other = busy;
    other.n_rows = 4;
    CostProfile profile{.layer_classes = machine.layer_classes};
    for (const CostSample& sample : {busy, busy, other, machine.sample(plain_step(4, 700))}) {
        add_measured(profile, sample);
    }
    ASSERT_EQ(profile.samples.size(), 2u);
    EXPECT_EQ(profile.samples[0].n_rows, 4) << "another pass";
    add_measured(profile, busy);
    add_measured(profile, machine.sample(plain_step(4, 800)));
    EXPECT_EQ(profile.samples.size(), 3u) << "quiet times are kept";
}

TEST(CostModel, TheShortestTimeOfABusyMachineStays) {
    const FakeMachine machine = plain_machine(4);
    CostProfile profile{.layer_classes = machine.layer_classes};
    const auto add = [&](int n_context, double factor) {
        CostSample busy = machine.sample(plain_step(4, n_context));
        busy.ms *= factor;
        busy.was_busy = true;
        add_measured(profile, busy);
    };
    const double quiet_ms = machine.ms(plain_step(4, 100));
    for (const double factor : {5.0, 2.0, 9.0}) {
        add(100, factor);
    }
    ASSERT_EQ(profile.samples.size(), 1u);
    EXPECT_EQ(profile.samples[0].ms, 2 * quiet_ms);
    EXPECT_EQ(profile.samples[0].n_measured, 3);
    add(4000, 1);
    EXPECT_EQ(profile.samples.size(), 2u) << "a longer context takes longer for another reason";
}

TEST(CostModel, IgnoresImplausibleSamples) {
    const FakeMachine machine = plain_machine(30);
    CostProfile profile = whole_profile(machine);
    const CostModel clean(profile);
    const CostSample good = profile.samples.front();
    for (const double ms : {kNaN, std::numeric_limits<double>::infinity(), 0.0, -3.0, 1e300}) {
        CostSample bad = good;
        bad.ms = ms;
        profile.samples.push_back(bad);
        bad.n_rows = 4;
        profile.samples.push_back(bad);
    }
    CostSample other_model = good;
    other_model.plan = ModulePlan(29);
    profile.samples.push_back(other_model);
    CostSample no_rows = good;
    no_rows.n_rows = 0;
    profile.samples.push_back(no_rows);
    CostSample negative_context = good;
    negative_context.n_context = -1;
    profile.samples.push_back(negative_context);

    const CostModel model(profile);
    EXPECT_EQ(model.quality().n_samples, clean.quality().n_samples);
    EXPECT_EQ(model.plain_step_ms(1000), clean.plain_step_ms(1000));
    EXPECT_EQ(model.verify_ms(4, 1000), clean.verify_ms(4, 1000));
}

TEST(CostModel, HasPositivePartsEvenIfSamplesContradictEachOther) {
    const FakeMachine machine = plain_machine(8);
    CostProfile profile = whole_profile(machine);
    for (CostSample& sample : profile.samples) {
        if (!sample.plan.is_full()) {
            sample.ms = 3 * machine.ms(plain_step(8, kMaxContext));  // less work takes longer
        }
        if (sample.n_rows > 1) {
            sample.ms = 1e-3;  // many rows take no time
        }
    }
    const CostModel model(profile);
    expect_positive(model);
    for (const Probe& probe : random_steps(8, 50)) {
        EXPECT_GT(model.draft_step_ms(probe.plan, probe.n_context), 0);
    }
}

TEST(CostModel, FitsAModelOfOneLayer) {
    const FakeMachine machine = plain_machine(1);
    const CostModel model(whole_profile(machine));
    EXPECT_EQ(model.n_layers(), 1);
    EXPECT_LT(worst_error(model, machine), 0.02);
    EXPECT_EQ(model.module_times(100, {}).size(), 2u);
    expect_positive(model);
}

TEST(CostModel, CountsAModuleOfARoundOnce) {
    const FakeMachine machine = plain_machine(10);
    const CostModel model(whole_profile(machine));
    const ModulePlan plan = uniform_window_plan(10, {.sinks = 16, .recent = 64});
    const RoundCost cost = model.round_cost(plan, 4000, 5);
    EXPECT_EQ(cost.max_length(), 5);
    EXPECT_EQ(cost.draft_step_ms, model.pass_ms(plan, 4000, 1));
    EXPECT_LT(cost.draft_step_ms, model.plain_step_ms(4000));
    EXPECT_EQ(cost.verify_ms[0], model.plain_step_ms(4000));
    EXPECT_EQ(cost.verify_ms[3], model.verify_ms(4, 4000));
}

TEST(CostModel, VerificationDoesNotPayForLayersThatDraftingComputed) {
    const FakeMachine machine = plain_machine(10);
    const CostModel model(whole_profile(machine));
    ModulePlan plan(10);
    plan.set(6, Module::attention, Level::skip);
    ModulePlan upper(10);
    for (int layer = 0; layer < 6; ++layer) {
        upper.set(layer, Module::attention, Level::skip);
        upper.set(layer, Module::mlp, Level::skip);
    }
    const RoundCost cost = model.round_cost(plan, 4000, 5);
    const double lower_ms =
        machine.ms({.plan = early_exit_plan(10, 6), .n_context = 4000, .has_head = false});
    const double upper_ms = machine.ms({.plan = upper, .n_context = 4000, .n_rows = 4});
    EXPECT_NEAR(cost.verify_ms[3], lower_ms + upper_ms, 0.02 * (lower_ms + upper_ms));
    EXPECT_LT(cost.verify_ms[3], 0.8 * model.verify_ms(4, 4000));
    EXPECT_EQ(cost.verify_ms[0], model.plain_step_ms(4000)) << "nothing was drafted";
    // A window that covers the context leaves the layer whole.
    plan.set(2, Module::attention, Level::windowed(16, 8000));
    EXPECT_EQ(model.round_cost(plan, 4000, 5).verify_ms, cost.verify_ms);
}

TEST(CostModel, GivesThePaperItsKindTimes) {
    const FakeMachine machine = mixed_machine(12);
    const KindTimes times = CostModel(whole_profile(machine)).kind_times(4000);
    EXPECT_NEAR(times.mlp_ms, (0.3 + 0.15) / 2, 0.005);
    EXPECT_NEAR(times.attention_ms, (0.2 + 0.5) / 2 + 4096 * 1e-4, 0.01);
}

TEST(CostModel, GivesTheKnapsackItsModuleTimes) {
    const FakeMachine machine = plain_machine(4);
    const CostModel model(whole_profile(machine));
    const std::vector<Window> windows{{16, 64}, {16, 1024}, {16, 8192}};
    const std::vector<ModuleTimes> modules = model.module_times(4000, windows);
    ASSERT_EQ(modules.size(), 8u);
    const ModuleTimes& attention = modules[2];
    EXPECT_DOUBLE_EQ(attention.full_ms, model.attention_ms(1, Level::full, 4000));
    // The largest window covers the context and saves nothing.
    ASSERT_EQ(attention.cheaper.size(), 3u);
    EXPECT_EQ(attention.cheaper[0].level, Level::windowed(16, 1024));
    EXPECT_EQ(attention.cheaper[1].level, Level::windowed(16, 64));
    EXPECT_EQ(attention.cheaper[2].level, Level::skip);
    EXPECT_EQ(attention.cheaper[2].ms, 0);
    EXPECT_GT(attention.full_ms, attention.cheaper[0].ms);
    EXPECT_GT(attention.cheaper[0].ms, attention.cheaper[1].ms);
    EXPECT_DOUBLE_EQ(modules[3].full_ms, model.mlp_ms(1));
    ASSERT_EQ(modules[3].cheaper.size(), 1u);
    EXPECT_EQ(modules[3].cheaper[0].level, Level::skip);
    // A context shorter than any window.
    EXPECT_EQ(model.module_times(10, windows)[0].cheaper.size(), 1u);
}

TEST(CostModel, OffersWindowsShorterThanThatOfTheLayer) {
    const FakeMachine machine = plain_machine(3);
    CostProfile profile = whole_profile(machine);
    profile.layer_windows = {0, 200, 2000};
    const CostModel model(profile);
    const std::vector<Window> windows{{16, 256}, {16, 1024}};
    const std::vector<ModuleTimes> modules = model.module_times(4000, windows);
    EXPECT_EQ(modules[0].cheaper.size(), 3u);
    EXPECT_EQ(modules[2].cheaper.size(), 1u) << "only to skip it";
    EXPECT_EQ(modules[4].cheaper.size(), 3u);
    EXPECT_LT(modules[2].full_ms, modules[4].full_ms);
    EXPECT_LT(modules[4].full_ms, modules[0].full_ms);
}

// Half of a row's MLP bytes are those of 4 of 16 experts.
TEST(CostModel, ExpertsAreReadByWhatRowsUse) {
    const FakeMachine machine = plain_machine(3);
    CostProfile profile = whole_profile(machine);
    const CostModel dense(profile);
    profile.expert_shares = {{.share = 0.5, .experts = {.bytes = 1, .n_experts = 16, .n_used = 4}}};
    const CostModel model(profile);
    EXPECT_DOUBLE_EQ(profile.expert_shares[0].relative(0, 1), 1);
    EXPECT_DOUBLE_EQ(profile.expert_shares[0].relative(1, 1), 0.5 + 0.5 / 4);
    EXPECT_DOUBLE_EQ(profile.expert_shares[0].relative(0, 2), 0.5 + 0.5 * 7 / 4);
    EXPECT_DOUBLE_EQ(model.mlp_ms(1, Level::with_experts(2)), 0.75 * model.mlp_ms(1));
    EXPECT_EQ(model.mlp_ms(1, Level::skip), 0);
    ModulePlan plan(3);
    plan.set(1, Module::mlp, Level::with_experts(2));
    EXPECT_NEAR(model.plain_step_ms(100) - model.draft_step_ms(plan, 100), 0.25 * model.mlp_ms(1),
                1e-9);
    const std::vector<ModuleTimes> modules = model.module_times(100, {});
    ASSERT_EQ(modules[3].cheaper.size(), 2u);
    EXPECT_EQ(modules[3].cheaper[0].level, Level::with_experts(2));
    EXPECT_DOUBLE_EQ(modules[3].cheaper[0].ms, 0.75 * modules[3].full_ms);
    EXPECT_EQ(modules[3].cheaper[1].level, Level::skip);
    // Passes of as many rows as were measured keep their times.
    EXPECT_NEAR(model.verify_ms(4, 100), dense.verify_ms(4, 100), 0.05 * dense.verify_ms(4, 100));
}

TEST(CostProfile, CanBeFittedWithAStepOfTheWholeModel) {
    const FakeMachine machine = plain_machine(4);
    const auto with = [&](const CostSample& sample) {
        return CostProfile{.layer_classes = machine.layer_classes, .samples = {sample}};
    };
    CostSample step = machine.sample(plain_step(4, 100));
    EXPECT_TRUE(can_fit(with(step)));
    EXPECT_FALSE(can_fit({.layer_classes = machine.layer_classes}));
    EXPECT_FALSE(can_fit({.samples = {step}}));
    EXPECT_FALSE(can_fit({.layer_classes = {0, 0, 0, -1}, .samples = {step}}));
    EXPECT_FALSE(can_fit({.layer_classes = {0, 0, 0, 1000000}, .samples = {step}}));
    CostSample several = step;
    several.n_rows = 2;
    EXPECT_FALSE(can_fit(with(several)));
    CostSample headless = step;
    headless.has_head = false;
    EXPECT_FALSE(can_fit(with(headless)));
    CostSample skipping = step;
    skipping.plan.set(0, Module::mlp, Level::skip);
    EXPECT_FALSE(can_fit(with(skipping)));
    step.ms = kNaN;
    EXPECT_FALSE(can_fit(with(step)));
}

TEST(CostProfile, BeginsWithTheBytesOfEveryClass) {
    const LayerCost small{.attention_bytes = 10, .mlp_bytes = 30};
    const LayerCost large{.attention_bytes = 20, .mlp_bytes = 60};
    const ModelCost cost{.layers = {small, large, small}, .head_bytes = 500, .cache_row_bytes = 7};
    const CostProfile profile = empty_profile(cost, {0, 1, 0});
    EXPECT_EQ(profile.n_layers(), 3);
    EXPECT_EQ(profile.n_classes(), 2);
    EXPECT_TRUE(profile.samples.empty());
    EXPECT_EQ(profile.bytes.attention, (std::vector{10.0, 20.0}));
    EXPECT_EQ(profile.bytes.mlp, (std::vector{30.0, 60.0}));
    EXPECT_EQ(profile.bytes.head, 500);
    EXPECT_EQ(profile.bytes.cache_row, 7);
}

}  // namespace
}  // namespace knap::cost_model_test
