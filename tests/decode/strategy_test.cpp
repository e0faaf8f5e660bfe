#include "decode/strategy.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/strategy_rig.h"

namespace knap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Made once: options are checked against its four layers.
StrategyParts parts() {
    static test::StrategyRig rig;
    return rig.parts();
}

// What make_strategy() throws; empty: nothing.
std::string complaint(const SpeculationOptions& options) {
    try {
        EXPECT_NE(make_strategy(options, parts()), nullptr);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

SpeculationOptions options_for(std::string_view name) {
    const bool needs_plan = name == "static" || name == "cascade" || name == "draft-verify";
    return {.strategy = std::string(name), .draft_plan = needs_plan ? "exit=2" : ""};
}

TEST(StrategyList, StartsWithPlainDecodingAndNamesEachOnce) {
    std::vector<std::string_view> names;
    for (const StrategyInfo& info : list_strategies()) {
        names.push_back(info.name);
        EXPECT_FALSE(info.summary.empty()) << info.name;
    }
    EXPECT_THAT(names, ::testing::ElementsAre("autoregressive", "static", "lookup", "cascade",
                                              "knapspec", "knapspec-paper", "clasp", "swift", "del",
                                              "draft-verify", "asd", "layerskip", "kangaroo"));
    EXPECT_EQ(plain_decoding().strategy, names.front());
    EXPECT_EQ(SpeculationOptions{}.strategy, "knapspec");
}

TEST(StrategyList, EveryOneCanBeMade) {
    for (const StrategyInfo& info : list_strategies()) {
        EXPECT_EQ(complaint(options_for(info.name)), "") << info.name;
    }
}

TEST(StrategyList, AnUnknownNameIsAnsweredWithTheKnownOnes) {
    EXPECT_EQ(complaint({.strategy = "magic\n"}),
              "--strategy: expected one of autoregressive, static, lookup, cascade, knapspec, "
              "knapspec-paper, clasp, swift, del, draft-verify, asd, layerskip, kangaroo; "
              "found 'magic?'");
    EXPECT_THAT(complaint({.strategy = ""}), StartsWith("--strategy: "));
}

TEST(StrategyList, AutoregressiveNeverDrafts) {
    const auto strategy = make_strategy(plain_decoding(), parts());
    const std::vector<Token> looping(20, 7);
    strategy->begin({.prompt = looping});
    const Proposal proposal = strategy->propose({.history = looping, .n_room = kMaxDraft});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(proposal.draft));
    EXPECT_TRUE(proposal.captures.empty());
}

struct Bounds {
    const char* flag;
    std::vector<float> inside;
    std::vector<float> outside;
    void (*set)(SpeculationOptions& options, float value);
};

TEST(StrategyList, ValuesOutOfRangeNameTheirFlag) {
    const Bounds all[] = {
        {.flag = "--draft-max",
         .inside = {0, 1, kMaxDraft},
         .outside = {-1, kMaxDraft + 1},
         .set = [](auto& options, float value) { options.draft_max = static_cast<int>(value); }},
        {.flag = "--draft-width",
         .inside = {1, kMaxDraftWidth},
         .outside = {-1, 0, kMaxDraftWidth + 1},
         .set = [](auto& options, float value) { options.draft_width = static_cast<int>(value); }},
        {.flag = "--exit-confidence",
         .inside = {0, 0.5f, 1},
         .outside = {-0.01f, 1.01f, std::numeric_limits<float>::quiet_NaN()},
         .set = [](auto& options, float value) { options.exit_confidence = value; }},
    };
    for (const Bounds& bounds : all) {
        SpeculationOptions options = options_for("static");
        for (const float value : bounds.inside) {
            bounds.set(options, value);
            EXPECT_EQ(complaint(options), "") << bounds.flag << value;
        }
        for (const float value : bounds.outside) {
            bounds.set(options, value);
            EXPECT_THAT(
                complaint(options),
                AllOf(StartsWith(std::string(bounds.flag) + ": expected "), Not(HasSubstr("\n"))));
        }
    }
}

TEST(StrategyList, OptionsThatAStrategyHasNoUseForAreRefused) {
    for (const char* name : {"autoregressive", "lookup"}) {
        const auto refuses = [&](const char* flag) {
            return AllOf(StartsWith(std::string(flag) + ": "), HasSubstr(name));
        };
        EXPECT_THAT(complaint({.strategy = name, .draft_plan = "full"}), refuses("--draft-plan"));
        EXPECT_THAT(complaint({.strategy = name, .draft_width = 2}), refuses("--draft-width"));
        EXPECT_THAT(complaint({.strategy = name, .exit_confidence = 0.5f}),
                    refuses("--exit-confidence"));
        EXPECT_EQ(complaint({.strategy = name, .draft_max = 4}), "");
    }
}

TEST(StrategyList, AStrategyThatFindsItsPlanTakesNone) {
    for (const char* name : {"knapspec-paper", "clasp", "swift", "asd", "kangaroo"}) {
        EXPECT_THAT(complaint({.strategy = name, .draft_plan = "full"}),
                    StartsWith("--draft-plan: "));
        EXPECT_THAT(complaint({.strategy = name, .draft_width = 2}), StartsWith("--draft-width: "));
        EXPECT_EQ(complaint({.strategy = name, .draft_max = 4, .exit_confidence = 0.5f}), "");
    }
}

TEST(StrategyList, StrategiesWithoutOptionsOfTheirOwnRefuseAny) {
    for (const StrategyInfo& info : list_strategies()) {
        SpeculationOptions options = options_for(info.name);
        options.strategy_options = "nonsense=1";
        EXPECT_THAT(complaint(options),
                    AllOf(StartsWith("--strategy-options: expected "), Not(HasSubstr("\n"))))
            << info.name;
        if (!info.options.empty()) {
            const StrategyOptionInfo& first = info.options.front();
            const std::size_t end = first.values.find_first_of("|.");
            options.strategy_options =
                std::string(first.key) + "=" + std::string(first.values.substr(0, end));
            EXPECT_EQ(complaint(options), "") << info.name;
        }
    }
}

}  // namespace
}  // namespace knap
