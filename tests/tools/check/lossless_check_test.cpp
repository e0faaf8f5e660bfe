#include "tools/check/lossless_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"

namespace knap::test::lossless_check_test {
namespace {

Result answer(std::vector<Token> tokens, StopReason stop = StopReason::length) {
    Result result;
    result.tokens = std::move(tokens);
    result.stop = stop;
    result.n_prompt = 100;
    return result;
}

TEST(Divergence, EqualAnswersHaveNone) {
    EXPECT_FALSE(find_divergence(answer({1, 2, 3}), answer({1, 2, 3})));
    EXPECT_FALSE(find_divergence(answer({}), answer({})));
}

TEST(Divergence, IsTheFirstTokenThatDiffers) {
    const auto found = find_divergence(answer({1, 2, 3, 4}), answer({1, 2, 5, 6}));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->position, 102);
    EXPECT_EQ(found->expected, 3);
    EXPECT_EQ(found->found, 5);
    EXPECT_FALSE(found->gap.has_value());
}

TEST(Divergence, MayBeTheEndOfOneOfThem) {
    const auto shorter = find_divergence(answer({1, 2, 3}), answer({1, 2}, StopReason::eos));
    ASSERT_TRUE(shorter.has_value());
    EXPECT_EQ(shorter->position, 102);
    EXPECT_EQ(shorter->expected, 3);
    EXPECT_EQ(shorter->found, std::nullopt);
    const auto stopped = find_divergence(answer({1}), answer({1}, StopReason::eos));
    ASSERT_TRUE(stopped.has_value());
    EXPECT_EQ(stopped->position, 101);
}

TEST(Contenders, CoverEveryStrategyButPlainDecoding) {
    const auto names = [](bool has_adapter) {
        std::set<std::string> found;
        for (const Contender& contender : lossless_contenders(
                 {.n_layers = 30, .has_reduced_head = true, .has_adapter = has_adapter})) {
            found.insert(contender.speculation.strategy);
        }
        return found;
    };
    std::set<std::string> expected;
    for (const StrategyInfo& strategy : strategies()) {
        expected.emplace(strategy.name);
    }
    expected.erase("autoregressive");
    EXPECT_EQ(names(/*has_adapter=*/true), expected);
    expected.erase("kangaroo");
    EXPECT_EQ(names(/*has_adapter=*/false), expected);
}

std::set<std::string> plans(const EngineParts& parts) {
    std::set<std::string> found;
    for (const Contender& contender : lossless_contenders(parts)) {
        const StrategySettings& settings = contender.speculation.settings;
        if (settings.contains("plan")) {
            found.insert(settings.at("plan"));
        }
    }
    return found;
}

TEST(Contenders, HavePlansThatFitTheModel) {
    using Plans = std::set<std::string>;
    EXPECT_EQ(plans({.n_layers = 8}), (Plans{"a=w16+64", "l1+3+5=skip", "exit=4"}));
    EXPECT_EQ(plans({.n_layers = 2}), (Plans{"a=w16+64", "exit=1"}));
    EXPECT_EQ(plans({}), (Plans{"a=w16+64"}));
    EXPECT_EQ(plans({.has_reduced_head = true}), (Plans{"a=w16+64", "a=w16+64,head=reduced"}));
    EXPECT_EQ(plans({.n_experts_used = 1}), (Plans{"a=w16+64"}));
    EXPECT_EQ(plans({.n_experts_used = 8}), (Plans{"a=w16+64", "m=e4"}));
}

TEST(Contenders, HaveATree) {
    const auto contenders = lossless_contenders(EngineParts{.n_layers = 8});
    EXPECT_TRUE(std::ranges::any_of(contenders, [](const Contender& one) {
        return one.speculation.settings.contains("width");
    }));
}

// A contender whose text is wrong: drafts of half a model, all of them accepted.
Contender coin() {
    return {"coin",
            {.strategy = "static", .settings = {{"plan", "m=skip"}}, .assume_acceptance = 1.0}};
}

class LosslessCheck : public ::testing::Test {
  protected:
    LosslessCheck()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"),
                   .adapter_path = write_tiny(tiny_adapter(), "check-adapter.gguf"),
                   .n_threads = 1}),
          prompts_{{"a", random_tokens(12, 256, 1)}, {"b", random_tokens(90, 256, 2)}},
          options_{.contenders = lossless_contenders(engine_), .n_predict = 20} {}

    Engine engine_;
    std::vector<CheckPrompt> prompts_;
    LosslessOptions options_;
};

TEST_F(LosslessCheck, FindsEveryStrategyEqualOnAnExactModel) {
    double last = 0;
    const auto reports = check_lossless(engine_, prompts_, options_,
                                        {.on_progress = [&](double fraction) { last = fraction; }});
    ASSERT_TRUE(reports.has_value());
    ASSERT_EQ(reports->size(), 2 * options_.contenders.size());
    EXPECT_DOUBLE_EQ(last, 1.0);
    int n_drafted = 0;
    for (const LosslessReport& report : *reports) {
        EXPECT_EQ(report.n_prompts, 2) << report.contender.name;
        EXPECT_EQ(report.n_equal, 2) << report.contender.name;
        EXPECT_GT(report.n_tokens, 0);
        EXPECT_LE(report.n_accepted, report.n_drafted);
        EXPECT_TRUE(report.near_ties.empty() && report.mismatches.empty());
        n_drafted += report.n_drafted;
    }
    EXPECT_GT(n_drafted, 0);
    EXPECT_EQ(reports->front().sampling.temperature, 0);
    EXPECT_GT(reports->back().sampling.temperature, 0);
}

TEST_F(LosslessCheck, FindsAProjectionUnequal) {
    options_.contenders = {coin()};
    const auto reports = check_lossless(engine_, prompts_, options_, {});
    ASSERT_TRUE(reports.has_value());
    std::size_t n_mismatches = 0;
    for (const LosslessReport& report : *reports) {
        n_mismatches += report.mismatches.size();
        for (const Divergence& found : report.mismatches) {
            EXPECT_GE(found.position, found.prompt == "a" ? 12 : 90);
        }
    }
    EXPECT_GT(n_mismatches, 0u);
}

// Every divergence of `coin` on an engine, with this bound.
std::vector<LosslessReport> check_coin(Engine& engine,
                                       std::span<const CheckPrompt> prompts,
                                       double near_tie_gap) {
    const auto reports =
        check_lossless(engine, prompts,
                       {.contenders = {coin()}, .n_predict = 20, .near_tie_gap = near_tie_gap}, {});
    EXPECT_TRUE(reports.has_value());
    return reports.value_or(std::vector<LosslessReport>());
}

TEST_F(LosslessCheck, CountsEveryDivergenceOfABatchInvariantEngineAsAMismatch) {
    for (const LosslessReport& report : check_coin(engine_, prompts_, /*near_tie_gap=*/1e9)) {
        EXPECT_TRUE(report.near_ties.empty());
        ASSERT_FALSE(report.mismatches.empty());
        for (const Divergence& found : report.mismatches) {
            ASSERT_TRUE(found.gap.has_value());
            EXPECT_GE(*found.gap, 0);
        }
    }
}

// ggml's products with F32 weights round one row differently from several.
TEST_F(LosslessCheck, CountsADivergenceBelowTheBoundAsANearTieElsewhere) {
    Engine inexact(
        {.model_path = tiny_model("tiny-llama", "F32"), .n_threads = 1, .kernels = Kernels::ggml});
    for (const LosslessReport& all : check_coin(inexact, prompts_, 0)) {
        EXPECT_TRUE(all.near_ties.empty()) << "nothing is below 0";
        ASSERT_FALSE(all.mismatches.empty());
        const bool is_greedy = all.sampling.temperature == 0;
        const float gap = *all.mismatches.front().gap;
        EXPECT_GT(gap, 0);
        const auto first_of = [&](double bound) {
            return check_coin(inexact, prompts_, bound)[is_greedy ? 0 : 1];
        };
        const LosslessReport at = first_of(gap);
        EXPECT_EQ(at.mismatches.front().position, all.mismatches.front().position);
        const LosslessReport above = first_of(std::nextafter(gap, gap + 1));
        ASSERT_FALSE(above.near_ties.empty());
        EXPECT_EQ(above.near_ties.front().position, all.mismatches.front().position);
        EXPECT_EQ(above.near_ties.front().gap, gap);
    }
}

// The gap is that of plain decoding's logits, here computed by separate passes.
TEST_F(LosslessCheck, MeasuresTheGapOfPlainDecoding) {
    const LosslessReport report = check_coin(engine_, prompts_, 0).front();
    ASSERT_FALSE(report.mismatches.empty());
    const Divergence& found = report.mismatches.front();
    const CheckPrompt& prompt = prompts_[found.prompt == "a" ? 0 : 1];
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"), Repack::automatic, 1, Kernels::automatic);
    ForwardRig rig(model);
    Session session(engine_);
    std::vector<Token> text = prompt.tokens;
    const Result plain = plain_text(session, text, {.n_predict = 20});
    text.insert(text.end(), plain.tokens.begin(), plain.tokens.end());
    text.resize(static_cast<std::size_t>(found.position));
    EXPECT_EQ(*found.gap, top_two_gap(rig.feed(text).back()));
}

TEST_F(LosslessCheck, EndsWhenCancelled) {
    EXPECT_FALSE(
        check_lossless(engine_, prompts_, options_, {.is_cancelled = [] { return true; }}));
}

}  // namespace
}  // namespace knap::test::lossless_check_test
