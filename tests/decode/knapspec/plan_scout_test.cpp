#include "decode/knapspec/plan_scout.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "decode/knapspec/search_budget.h"
#include "search/cost/probes.h"
#include "support/fake_machine.h"
#include "support/search_rig.h"

namespace knap::test::plan_scout_test {
namespace {

constexpr int kText = 600;
const PlanScoutOptions kOptions{
    .windows = {{.sinks = 16, .recent = 64}, {.sinks = 16, .recent = 128}}};

// A scout on a model whose cache holds a text. Its machine makes cheaper plans pay.
class ScoutRig {
  public:
    explicit ScoutRig(const PlanScoutOptions& options = kOptions)
        : rig_({.n_text = kText}),
          profile_(profile_of(rig_.n_layers())),
          costs_(CostModel(profile_)),
          scout_({.config = rig_.model.config,
                  .forward = rig_.rig.forward,
                  .cache = rig_.rig.cache,
                  .profile = profile_,
                  .max_rows = 16},
                 options) {}

    // As if the last `n_answer` tokens of the text were the answer.
    void begin(std::size_t n_answer, const SamplingOptions& sampling = {}) {
        scout_.begin({.prompt = std::span(rig_.text).first(rig_.text.size() - n_answer),
                      .sampling = sampling});
    }

    // The text is the first `n` tokens of what it was.
    void cut(int n) { rig_.text.resize(static_cast<std::size_t>(n)); }

    // With the last token of the text pending.
    void look(double budget_ms, int n_expected = 1000) {
        const auto n_text = static_cast<int>(rig_.text.size());
        rig_.rig.cache.truncate(n_text - 1);
        SearchBudget budget(1);
        budget.begin();
        budget.advance(budget_ms, 0);
        scout_.look({.history = rig_.text, .n_room = 10, .n_expected = n_expected}, costs_, budget);
        left_ms_ = budget.left_ms();
        scout_.choose(costs_, n_text - 1);
    }

    bool use_idle_time() {
        const auto n_rows = static_cast<std::size_t>(rig_.rig.cache.committed());
        return scout_.use_idle_time(std::span(rig_.text).first(n_rows), costs_);
    }

    int n_idle_pieces() {
        int n = 0;
        while (use_idle_time()) {
            EXPECT_LT(++n, 1000);
        }
        return n;
    }

    SearchRig& rig() { return rig_; }
    PlanScout& scout() { return scout_; }
    double left_ms() const { return left_ms_; }

  private:
    static CostProfile profile_of(int n_layers) {
        const FakeMachine machine = long_context_machine(n_layers, /*row_price=*/0.02);
        return machine.profile(profile_probes(machine.layer_classes, 1024, 16));
    }

    SearchRig rig_;
    CostProfile profile_;
    CostTracker costs_;
    PlanScout scout_;
    double left_ms_ = 0;
};

TEST(PlanScout, ReplaysPlansOnTheAnswerWithoutThePromptOrTheWholeModel) {
    ScoutRig rig;
    rig.begin(/*n_answer=*/7);
    rig.look(/*budget_ms=*/1e6);
    EXPECT_EQ(rig.left_ms(), 1e6) << "too little is written";

    rig.begin(/*n_answer=*/24);
    const std::int64_t before = rig.rig().n_passes();
    rig.look(1e6);
    EXPECT_LT(rig.left_ms(), 1e6);
    EXPECT_EQ(rig.rig().n_passes() - before, 4) << "two windows, with each of two heads";
    const std::int64_t then = rig.rig().n_passes();
    rig.look(1e6);
    EXPECT_EQ(rig.rig().n_passes(), then) << "once at this context";
}

// A random model's choices have nothing to do with the text, so plans agree with none of it.
TEST(PlanScout, PlansThatDisagreeWithTheAnswerAreNotChosen) {
    ScoutRig rig;
    rig.begin(24);
    rig.look(/*budget_ms=*/0);
    ASSERT_TRUE(rig.scout().chosen()) << "windows are believed in before they are tried";
    const double believed = rig.scout().plan().acceptance.rate();
    for (const float temperature : {0.0f, 0.8f}) {
        rig.begin(24, {.temperature = temperature, .seed = 3});
        rig.look(1e6);
        EXPECT_TRUE(!rig.scout().chosen() || rig.scout().plan().acceptance.rate() < believed - 0.2);
    }
}

TEST(PlanScout, IdleTimeFindsPlansPieceByPiece) {
    ScoutRig rig;
    rig.begin(24);
    const auto bytes = rig.rig().rig.cache_bytes();
    const int n_pieces = rig.n_idle_pieces();
    EXPECT_GT(n_pieces, 2 * rig.rig().n_layers()) << "a module each, and replays";
    EXPECT_EQ(rig.rig().rig.cache_bytes(), bytes);
    EXPECT_FALSE(rig.use_idle_time()) << "once at this context";
}

// At a high temperature most draws are not the argmax, but those of a window that leaves out little
// are mostly those of the whole model.
TEST(PlanScout, IdleTimeComparesDrawsAfterASampledAnswer) {
    ScoutRig rig({.windows = {{.sinks = 16, .recent = 420}}});
    rig.begin(24, {.temperature = 2, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 3});
    EXPECT_GT(rig.n_idle_pieces(), 0);
    rig.look(/*budget_ms=*/0);
    ASSERT_TRUE(rig.scout().chosen());
    EXPECT_GT(rig.scout().plan().acceptance.rate(), 0.5);
}

TEST(PlanScout, IdleTimeGoesOnAfterItWasCancelled) {
    ScoutRig steady;
    steady.begin(24);
    const int n_all = steady.n_idle_pieces();

    ScoutRig rig;
    rig.begin(24);
    bool aborts = false;
    rig.rig().model.backend.set_abort([&] { return aborts; });
    int n = 0;
    for (int i = 0; i < 10 * n_all && n < n_all; ++i) {
        aborts = i % 3 == 0;
        n += rig.use_idle_time() ? 1 : 0;
    }
    aborts = false;
    EXPECT_EQ(n, n_all);
    EXPECT_FALSE(rig.use_idle_time());
}

TEST(PlanScout, IdleTimeBeginsAgainWhenTheTextIsAnother) {
    ScoutRig rig;
    rig.begin(24);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(rig.use_idle_time());
    }
    const int n_rest = rig.n_idle_pieces();

    ScoutRig other;
    other.begin(24);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(other.use_idle_time());
    }
    other.rig().rig.cache.truncate(0);
    std::ranges::reverse(other.rig().text);
    for (const Token token : other.rig().text) {
        other.rig().rig.feed(std::span(&token, 1));
    }
    EXPECT_GE(other.n_idle_pieces(), n_rest + 3);
}

TEST(PlanScout, IdleTimeIsNotUsedWithoutTheKnapsack) {
    PlanScoutOptions options = kOptions;
    options.knapsack = PlanScoutOptions::Knapsack::never;
    ScoutRig rig(options);
    rig.begin(24);
    EXPECT_FALSE(rig.use_idle_time());
}

// Streams of the rounds are the target: no pass of the whole model computes it.
TEST(PlanScout, KnapsackThatIsAlwaysRunTakesTheStreamsOfRounds) {
    PlanScoutOptions options = kOptions;
    options.knapsack = PlanScoutOptions::Knapsack::always;
    ScoutRig rig(options);
    rig.begin(24);
    EXPECT_FALSE(rig.scout().wants_streams());
    rig.look(0);
    EXPECT_TRUE(rig.scout().wants_streams());
}

TEST(PlanScout, KnapsackIsDueAgainForAMuchShorterText) {
    PlanScoutOptions options = kOptions;
    options.knapsack = PlanScoutOptions::Knapsack::always;
    ScoutRig rig(options);
    rig.begin(24);
    ASSERT_GT(rig.n_idle_pieces(), 0);
    const auto wants_streams_at = [&](int n_text) {
        rig.cut(n_text);
        rig.begin(24);
        rig.look(0);
        return rig.scout().wants_streams();
    };
    EXPECT_FALSE(wants_streams_at(kText));
    EXPECT_FALSE(wants_streams_at(kText * 3 / 4));
    EXPECT_TRUE(wants_streams_at(kText / 2));
}

}  // namespace
}  // namespace knap::test::plan_scout_test
