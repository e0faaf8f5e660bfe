#include "decode/knapspec_paper/options.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config.h"

namespace knap::knapspec_paper_options_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Fields = std::map<std::string, double>;

constexpr double kNone = -99;

// Every field, so that a test notices a key that changes the wrong one.
Fields fields_of(const PaperOptions& options) {
    return {
        {"draft_max", options.draft_max},
        {"exit", static_cast<double>(options.exit_confidence)},
        {"tau", options.knapsack.min_cosine},
        {"strict", options.knapsack.strict_threshold},
        {"skip_wins", options.knapsack.skip_wins_ties},
        {"reuse", options.knapsack.reuse_target},
        {"dominated", options.knapsack.drop_dominated},
        {"max_cells", options.knapsack.max_cells},
        {"first_length", options.choice.lengths.first},
        {"last_length", options.choice.lengths.last},
        {"passes_first", options.choice.passes_over_first},
        {"forces", options.forces_outer_layers},
        {"cap", options.weight_cap.value_or(kNone)},
        {"interval", options.interval.rounds},
        {"large_interval", options.interval.rounds_of_large},
        {"most_probable", options.exits_by_most_probable},
        {"on_prompt", options.starts_on_prompt},
    };
}

PaperOptions parse(const std::string& text) {
    return read_paper_options({.strategy = "knapspec-paper", .settings = parse_settings(text)});
}

std::string complaint(const SpeculationOptions& options) {
    try {
        read_paper_options(options);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

const Fields kPublished = {
    {"draft_max", 10},
    {"exit", static_cast<double>(0.7f)},
    {"tau", 0.5},
    {"strict", 0},
    {"skip_wins", 0},
    {"reuse", 0},
    {"dominated", 0},
    {"max_cells", 0},
    {"first_length", 0},
    {"last_length", 17},
    {"passes_first", 1},
    {"forces", 1},
    {"cap", 5},
    {"interval", 64},
    {"large_interval", 64},
    {"most_probable", 0},
    {"on_prompt", 0},
};

TEST(PaperOptions, DefaultsMatchThePublishedCode) {
    EXPECT_EQ(fields_of(PaperOptions{}), kPublished);
    EXPECT_EQ(fields_of(parse("")), kPublished);
    EXPECT_EQ(fields_of(parse("variant=code")), kPublished);
}

struct Effect {
    const char* text;
    Fields changed;
};

TEST(PaperOptions, EachKeyChangesOnlyItsFields) {
    const std::vector<Effect> effects = {
        {"lengths=paper", {{"first_length", 1}, {"last_length", 10}}},
        {"candidates=paper", {{"passes_first", 0}}},
        {"forced=paper", {{"forces", 0}}},
        {"cap=paper", {{"cap", kNone}}},
        {"cap=7", {{"cap", 7}}},
        {"ties=paper", {{"skip_wins", 1}}},
        {"threshold=paper", {{"strict", 1}}},
        {"unskipped=paper", {{"reuse", 1}}},
        {"interval=paper", {{"large_interval", 128}}},
        {"interval=7", {{"interval", 7}, {"large_interval", 7}}},
        {"confidence=paper", {{"most_probable", 1}}},
        {"start=prompt", {{"on_prompt", 1}}},
        {"tau=-0.5", {{"tau", -0.5}}},
        {"exit-confidence=0.25", {{"exit", 0.25}}},
        {"exit-confidence=0", {{"exit", 0}}},
    };
    Fields all_of_the_paper = kPublished;
    for (const Effect& effect : effects) {
        Fields expected = kPublished;
        for (const auto& [field, value] : effect.changed) {
            expected[field] = value;
        }
        EXPECT_EQ(fields_of(parse(effect.text)), expected) << effect.text;

        const std::string text = effect.text;
        if (text.ends_with("=paper")) {
            for (const auto& [field, value] : effect.changed) {
                all_of_the_paper[field] = value;
            }
            const std::string back = text.substr(0, text.find('=')) + "=code";
            EXPECT_EQ(fields_of(parse(back)), kPublished) << back;
        }
    }
    EXPECT_EQ(fields_of(parse("start=code")), kPublished);
    EXPECT_EQ(fields_of(parse("variant=paper")), all_of_the_paper);
    EXPECT_EQ(std::ranges::count_if(
                  paper_option_infos(),
                  [](const auto& info) { return info.values.starts_with("code|paper"); }),
              10)
        << "the variant and nine differences";
}

TEST(PaperOptions, KeyOverridesTheVariantInAnyOrder) {
    for (const char* text : {"variant=paper,cap=code", "cap=code,variant=paper"}) {
        Fields expected = fields_of(parse("variant=paper"));
        expected["cap"] = 5;
        EXPECT_EQ(fields_of(parse(text)), expected) << text;
    }
}

TEST(PaperOptions, DraftMaxReplacesThePublishedLength) {
    EXPECT_EQ(read_paper_options({.draft_max = 3}).draft_max, 3);
}

TEST(PaperOptions, ErrorsStateWhatIsExpected) {
    for (const StrategyOptionInfo& info : paper_option_infos()) {
        const std::string key(info.key);
        for (const char* bad : {"", "Paper", "none", "-2", "1e9"}) {
            EXPECT_THAT(complaint({.settings = {{key, bad}}}),
                        HasSubstr("expected " + key + "=" + std::string(info.values)))
                << bad;
        }
    }
    for (const char* bad : {"interval=6", "cap=0", "cap=1001", "tau=1.5", "tau=nan",
                            "exit-confidence=1.5", "start=paper", "interval=7.5"}) {
        EXPECT_NE(complaint({.settings = parse_settings(bad)}), "") << bad;
    }
}

TEST(PaperOptions, EveryKeyHasAHelpText) {
    for (const StrategyOptionInfo& info : paper_option_infos()) {
        EXPECT_FALSE(info.help.empty()) << info.key;
    }
}

TEST(PaperOptions, PaperIntervalDependsOnTheModelSize) {
    const SearchInterval interval = parse("interval=paper").interval;
    EXPECT_EQ(interval.for_model(kLargeModel), 64);
    EXPECT_EQ(interval.for_model(kLargeModel + 1), 128);
    EXPECT_EQ(parse("").interval.for_model(2 * kLargeModel), 64);
}

TEST(PaperOptions, ParametersAreCountedFromTheShape) {
    // Llama 3.1 8B: 8.03e9.
    const ModelConfig config{.n_layers = 32,
                             .n_embd = 4096,
                             .n_heads = 32,
                             .n_kv_heads = 8,
                             .head_dim = 128,
                             .n_ff = 14336,
                             .n_vocab = 128256};
    EXPECT_NEAR(static_cast<double>(count_parameters(config)), 8.03e9, 0.01e9);
}

}  // namespace
}  // namespace knap::knapspec_paper_options_test
