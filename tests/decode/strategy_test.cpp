#include "decode/strategy.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/error.h"
#include "support/strategy_rig.h"

namespace knap::strategy_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Made once. Options are checked against its four layers.
StrategyParts parts() {
    static test::StrategyRig rig;
    return rig.parts();
}

// The error that make_strategy() throws; empty: none.
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
    SpeculationOptions options{.strategy = std::string(name)};
    if (needs_plan) {
        options.settings["plan"] = "exit=2";
    }
    return options;
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

TEST(StrategyList, EveryStrategyCanBeMade) {
    for (const StrategyInfo& info : list_strategies()) {
        EXPECT_EQ(complaint(options_for(info.name)), "") << info.name;
    }
}

TEST(StrategyList, UnknownNameErrorListsTheKnownOnes) {
    EXPECT_EQ(complaint({.strategy = "magic\n"}),
              "`.strategy`: expected one of autoregressive, static, lookup, cascade, knapspec, "
              "knapspec-paper, clasp, swift, del, draft-verify, asd, layerskip, kangaroo; "
              "found 'magic?'");
    EXPECT_THAT(complaint({.strategy = ""}), StartsWith("`.strategy`: "));
}

TEST(StrategyList, AutoregressiveNeverDrafts) {
    const auto strategy = make_strategy(plain_decoding(), parts());
    const std::vector<Token> looping(20, 7);
    strategy->begin({.prompt = looping});
    const Proposal proposal = strategy->propose({.history = looping, .n_room = kMaxDraft});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(proposal.draft));
    EXPECT_TRUE(proposal.captures.empty());
}

TEST(StrategyList, ValuesOutOfRangeNameTheirField) {
    SpeculationOptions options = options_for("static");
    for (const int value : {0, 1, kMaxDraft}) {
        options.draft_max = value;
        EXPECT_EQ(complaint(options), "") << value;
    }
    for (const int value : {-1, kMaxDraft + 1}) {
        options.draft_max = value;
        EXPECT_THAT(complaint(options),
                    AllOf(StartsWith("`.draft_max`: expected "), Not(HasSubstr("\n"))));
    }
    options.draft_max = 0;
    for (const char* value : {"0", "0.5", "1"}) {
        options.settings["exit-confidence"] = value;
        EXPECT_EQ(complaint(options), "") << value;
    }
    for (const char* value : {"-0.01", "1.01", "nan", ""}) {
        options.settings["exit-confidence"] = value;
        EXPECT_THAT(complaint(options),
                    StartsWith("`.settings`: expected exit-confidence=0..1, found "));
    }
    options.settings.erase("exit-confidence");
    for (const char* value : {"1", "16"}) {
        options.settings["width"] = value;
        EXPECT_EQ(complaint(options), "") << value;
    }
    for (const char* value : {"-1", "0", "17", "2.5"}) {
        options.settings["width"] = value;
        EXPECT_THAT(complaint(options), StartsWith("`.settings`: expected width=1..16, found "));
    }
}

TEST(StrategyList, SettingsOfOtherStrategiesAreRefused) {
    for (const char* name : {"autoregressive", "lookup"}) {
        for (const char* key : {"plan", "width", "exit-confidence"}) {
            EXPECT_THAT(complaint({.strategy = name, .settings = {{key, "1"}}}),
                        AllOf(StartsWith(std::string("`.settings[") + key +
                                         "]`: expected a strategy with this setting (static, "),
                              HasSubstr(std::string("found ") + name)));
        }
        EXPECT_EQ(complaint({.strategy = name, .draft_max = 4}), "");
    }
    for (const char* name : {"knapspec-paper", "clasp", "swift", "asd", "kangaroo"}) {
        EXPECT_THAT(complaint({.strategy = name, .settings = {{"plan", "full"}}}),
                    StartsWith("`.settings[plan]`: "));
        EXPECT_THAT(complaint({.strategy = name, .settings = {{"width", "2"}}}),
                    StartsWith("`.settings[width]`: "));
        EXPECT_EQ(
            complaint({.strategy = name, .draft_max = 4, .settings = {{"exit-confidence", "0.5"}}}),
            "");
    }
}

TEST(StrategyList, UnknownSettingErrorListsTheKnownOnes) {
    EXPECT_EQ(complaint({.strategy = "lookup", .settings = {{"pears", "1"}}}),
              "`.settings`: expected none for strategy lookup, found 'pears'");
    EXPECT_EQ(complaint({.strategy = "clasp", .settings = {{"a\n", "1"}}}),
              "`.settings`: expected one of layers, interval, exit-confidence for strategy clasp, "
              "found 'a?'");
    for (const StrategyInfo& info : list_strategies()) {
        SpeculationOptions options = options_for(info.name);
        options.settings["nonsense"] = "1";
        EXPECT_THAT(complaint(options),
                    AllOf(StartsWith("`.settings`: expected "), Not(HasSubstr("\n"))))
            << info.name;
    }
}

TEST(StrategyList, EverySettingAcceptsTheFirstValueThatItLists) {
    for (const StrategyInfo& info : list_strategies()) {
        for (const StrategyOptionInfo& option : info.options) {
            if (option.key == "plan" || option.key == "ratio") {  // 0 would skip nothing
                continue;
            }
            SpeculationOptions options = options_for(info.name);
            const std::string_view value =
                option.values.substr(0, option.values.find_first_of("|."));
            options.settings[std::string(option.key)] = value == "N/N/" ? "64/256" : value;
            EXPECT_EQ(complaint(options), "") << info.name << ' ' << option.key;
        }
    }
}

TEST(ParseSettings, ReadsKeysAndValues) {
    EXPECT_TRUE(parse_settings("").empty());
    EXPECT_EQ(parse_settings("tau=-0.5,plan=a=w16+64"),
              (StrategySettings{{"plan", "a=w16+64"}, {"tau", "-0.5"}}));
}

TEST(ParseSettings, ErrorsStateWhatIsExpected) {
    const auto error_of = [](std::string_view text) -> std::string {
        try {
            parse_settings(text);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(error_of("weight=0,apples"),
              "`.settings`: expected KEY=VALUE,KEY=VALUE, found 'apples'");
    EXPECT_EQ(error_of("apples=1,weight=0,apples=1"),
              "`.settings`: expected apples once, found it twice");
    for (const char* text : {",", "apples=1,", ",apples=1", "apples=1,,weight=0", " "}) {
        EXPECT_THAT(error_of(text), StartsWith("`.settings`: expected KEY=VALUE")) << text;
    }
}

}  // namespace
}  // namespace knap::strategy_test
