#include "decode/swift/options.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::swift_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Fields = std::map<std::string, double>;

// Every field, so that a test notices a key that changes the wrong one.
Fields fields_of(const SwiftOptions& options) {
    return {
        {"draft_max", options.draft_max},
        {"exit", static_cast<double>(options.exit_confidence)},
        {"tree", static_cast<double>(options.tree)},
        {"window", options.window},
        {"opt_interval", options.opt_interval},
        {"ratio", options.search.skip_ratio},
        {"max_score", options.search.max_score},
        {"patience", options.search.patience},
        {"iterations", options.search.max_iterations},
        {"bayes_interval", options.search.bayes_interval},
        {"seed", static_cast<double>(options.search.seed)},
    };
}

SwiftOptions parse(const std::string& text) {
    return read_swift_options({.strategy = "swift", .settings = parse_settings(text)});
}

std::string complaint(const std::string& text) {
    try {
        parse(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

const Fields kPublished = {
    {"draft_max", 25},    {"exit", static_cast<double>(0.8f)},
    {"tree", 0},          {"window", 32},
    {"opt_interval", 1},  {"ratio", 0.45},
    {"max_score", 0.95},  {"patience", 300},
    {"iterations", 1000}, {"bayes_interval", 25},
    {"seed", 0},
};

TEST(SwiftOptions, DefaultsMatchThePublishedCode) {
    EXPECT_EQ(fields_of(parse("")), kPublished);
}

TEST(SwiftOptions, EachKeyChangesOnlyItsField) {
    const std::map<std::string, std::pair<std::string, double>> effects = {
        {"window=50", {"window", 50}},
        {"ratio=0.5", {"ratio", 0.5}},
        {"max-score=0.75", {"max_score", 0.75}},
        {"patience=7", {"patience", 7}},
        {"iterations=0", {"iterations", 0}},
        {"bayes-interval=1", {"bayes_interval", 1}},
        {"opt-interval=3", {"opt_interval", 3}},
        {"tree=paper", {"tree", static_cast<double>(SwiftTree::paper)}},
        {"tree=off", {"tree", static_cast<double>(SwiftTree::off)}},
        {"tree=code", {"tree", 0}},
        {"seed=2147483647", {"seed", 2147483647}},
        {"exit-confidence=0.25", {"exit", 0.25}},
    };
    for (const auto& [text, changed] : effects) {
        Fields expected = kPublished;
        expected[changed.first] = changed.second;
        EXPECT_EQ(fields_of(parse(text)), expected) << text;
    }
}

TEST(SwiftOptions, DraftMaxReplacesThePublishedLength) {
    EXPECT_EQ(read_swift_options({.draft_max = 3}).draft_max, 3);
}

TEST(SwiftOptions, ErrorsStateWhatIsExpected) {
    for (const StrategyOptionInfo& info : swift_option_infos()) {
        EXPECT_FALSE(info.help.empty()) << info.key;
        const std::string key(info.key);
        for (const char* bad : {"", "Paper", "-1", "1e10", "nan"}) {
            EXPECT_THAT(complaint(key + "=" + bad),
                        HasSubstr("expected " + key + "=" + std::string(info.values)))
                << bad;
        }
    }
    for (const char* bad : {"window=0", "window=257", "ratio=1.5", "bayes-interval=0",
                            "opt-interval=0", "seed=2147483648"}) {
        EXPECT_NE(complaint(bad), "") << bad;
    }
}

std::vector<int> widths_of(SwiftTree tree, bool is_greedy) {
    const SwiftWidths widths = swift_widths(tree, is_greedy);
    std::vector<int> all;
    for (const WidthStep& step : widths.steps) {
        all.push_back(step.width);
    }
    all.push_back(widths.widest);
    return all;
}

TEST(SwiftOptions, WidthsMatchThePublishedOnes) {
    EXPECT_THAT(widths_of(SwiftTree::code, true), ElementsAre(3, 5, 8, 10));
    EXPECT_THAT(widths_of(SwiftTree::code, false), ElementsAre(1, 3, 5, 10));
    for (const bool is_greedy : {true, false}) {
        EXPECT_THAT(widths_of(SwiftTree::paper, is_greedy), ElementsAre(1, 3, 5, 10));
        EXPECT_THAT(widths_of(SwiftTree::off, is_greedy), ElementsAre(1));
        EXPECT_THAT(swift_widths(SwiftTree::off, is_greedy).steps, IsEmpty());
        std::vector<float> limits;
        for (const WidthStep& step : swift_widths(SwiftTree::code, is_greedy).steps) {
            limits.push_back(step.above);
        }
        EXPECT_THAT(limits, ElementsAre(0.95f, 0.8f, 0.5f));
    }
}

}  // namespace
}  // namespace knap::swift_options_test
