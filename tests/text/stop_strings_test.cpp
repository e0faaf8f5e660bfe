#include "text/stop_strings.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::stop_strings_test {
namespace {

struct Outcome {
    std::string text;
    bool stopped = false;
    std::string found{};
    bool operator==(const Outcome&) const = default;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pushes) {
    StopStrings watcher(stops);
    Outcome outcome;
    for (const std::string& text : pushes) {
        const auto step = watcher.push(text);
        outcome.text += step.text;
        outcome.stopped = step.stopped;
    }
    outcome.text += watcher.finish();
    outcome.found = watcher.found();
    return outcome;
}

TEST(StopStrings, WithoutAnyEverythingPasses) {
    EXPECT_EQ(run({}, {"a", "b"}), (Outcome{"ab", false}));
}

TEST(StopStrings, CutsBeforeTheStopString) {
    EXPECT_EQ(run({"END"}, {"text END more"}), (Outcome{"text ", true, "END"}));
}

TEST(StopStrings, MaySpanPushes) {
    EXPECT_EQ(run({"</s>"}, {"hi <", "/", "s", "> there"}), (Outcome{"hi ", true, "</s>"}));
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStopString) {
    StopStrings watcher({"abc"});
    EXPECT_EQ(watcher.push("xab").text, "x");
    EXPECT_EQ(watcher.push("a").text, "ab");
    EXPECT_EQ(watcher.push("b").text, "");
    EXPECT_EQ(watcher.push("d").text, "abd");
    EXPECT_EQ(watcher.push("ab").text, "");
    EXPECT_EQ(watcher.finish(), "ab");
}

TEST(StopStrings, AFailedMatchMayHideAnother) {
    EXPECT_EQ(run({"aab"}, {"aaa", "b"}), (Outcome{"a", true, "aab"}));
    EXPECT_EQ(run({"ababc"}, {"abababc"}), (Outcome{"ab", true, "ababc"}));
    EXPECT_EQ(run({"\n\nUser:"}, {"\n", "\n\n", "User:"}), (Outcome{"\n", true, "\n\nUser:"}));
}

TEST(StopStrings, TheFirstToCompleteWins) {
    EXPECT_EQ(run({"bcd", "c"}, {"abcd"}), (Outcome{"ab", true, "c"}));
    EXPECT_EQ(run({"bcd", "c"}, {"a", "b", "c", "d"}), (Outcome{"ab", true, "c"}));
}

TEST(StopStrings, OfThoseThatCompleteTogetherTheLongestCounts) {
    EXPECT_EQ(run({"c", "abc", "bc"}, {"xabc"}), (Outcome{"x", true, "abc"}));
}

TEST(StopStrings, APrefixEndsTheTextBeforeTheLongerString) {
    EXPECT_EQ(run({"abc", "ab"}, {"xabc"}), (Outcome{"x", true, "ab"}));
}

TEST(StopStrings, IgnoresTextAfterTheStop) {
    StopStrings watcher({"."});
    EXPECT_EQ(watcher.push("one. two").text, "one");
    const auto step = watcher.push("three. four");
    EXPECT_EQ(step.text, "");
    EXPECT_TRUE(step.stopped);
    EXPECT_EQ(watcher.finish(), "");
}

TEST(StopStrings, ZeroBytesAreOrdinary) {
    const std::string stop("a\0b", 3);
    EXPECT_EQ(run({stop}, {"xa", std::string("\0", 1), "b"}), (Outcome{"x", true, stop}));
    EXPECT_EQ(run({"a"}, {std::string("\0\0", 2)}), (Outcome{std::string("\0\0", 2), false}));
}

TEST(StopStrings, RefusesEmptyAndBrokenStrings) {
    EXPECT_THROW(StopStrings({"ok", ""}), Error);
    EXPECT_THROW(StopStrings({"\xC3"}), Error);
}

// The definition, without optimisation.
Outcome naive(const std::vector<std::string>& stops, const std::string& text) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        const std::string_view seen = std::string_view(text).substr(0, end);
        std::size_t longest = 0;
        for (const std::string& stop : stops) {
            longest = seen.ends_with(stop) ? std::max(longest, stop.size()) : longest;
        }
        if (longest > 0) {
            return {text.substr(0, end - longest), true, text.substr(end - longest, longest)};
        }
    }
    return {text, false};
}

TEST(StopStrings, AgreesWithTheDefinitionHoweverTheTextIsSplit) {
    std::mt19937 random(7);
    const auto random_text = [&](std::size_t n_bytes) {
        std::string text(n_bytes, 'a');
        for (char& byte : text) {
            byte = static_cast<char>('a' + random() % 2);
        }
        return text;
    };
    int n_stopped = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::string> stops(1 + random() % 3);
        for (std::string& stop : stops) {
            stop = random_text(1 + random() % 9);
        }
        const std::string text = random_text(random() % 40);
        std::vector<std::string> pushes;
        for (std::size_t begin = 0; begin < text.size(); begin += pushes.back().size()) {
            pushes.push_back(text.substr(begin, 1 + random() % 5));
        }
        const Outcome expected = naive(stops, text);
        ASSERT_EQ(run(stops, pushes), expected) << text;
        n_stopped += expected.stopped ? 1 : 0;
    }
    EXPECT_GT(n_stopped, 500);
    EXPECT_LT(n_stopped, 2900);
}

}  // namespace
}  // namespace knap::stop_strings_test
