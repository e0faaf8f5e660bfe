#include "decode/knapspec/options.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::knapspec_options_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Knapsack = PlanScoutOptions::Knapsack;

KnapspecOptions read(std::string text) {
    return read_knapspec_options(
        {.strategy = "knapspec", .settings = parse_settings(std::move(text))});
}

TEST(KnapspecOptions, DefaultsMatchTheHelpTexts) {
    const KnapspecOptions options = read("");
    EXPECT_FLOAT_EQ(options.budget, 0.01f);
    EXPECT_FLOAT_EQ(options.scout.margin, 0.03f);
    EXPECT_TRUE(options.copies && options.plans && options.cascades && options.memory);
    EXPECT_EQ(options.scout.max_length, 10);
    EXPECT_EQ(options.scout.knapsack, Knapsack::when_it_pays);
    ASSERT_EQ(options.scout.windows.size(), 5u);
    EXPECT_EQ(options.scout.windows.front(), (Window{16, 64}));
    EXPECT_EQ(options.scout.windows.back(), (Window{16, 1024}));
}

TEST(KnapspecOptions, EveryKeySetsItsField) {
    EXPECT_FLOAT_EQ(read("budget=0.5").budget, 0.5f);
    EXPECT_FLOAT_EQ(read("margin=0").scout.margin, 0);
    EXPECT_FALSE(read("copies=off").copies);
    EXPECT_FALSE(read("plans=off").plans);
    EXPECT_FALSE(read("cascade=off").cascades);
    EXPECT_FALSE(read("memory=off").memory);
    EXPECT_EQ(read("knapsack=always").scout.knapsack, Knapsack::always);
    EXPECT_EQ(read("knapsack=never").scout.knapsack, Knapsack::never);
    EXPECT_THAT(read("windows=32/700").scout.windows,
                ::testing::ElementsAre(Window{16, 32}, Window{16, 700}));
    EXPECT_EQ(read_knapspec_options({.draft_max = 4}).scout.max_length, 4);
}

TEST(KnapspecOptions, OnlyKnapspecCanBeginWithoutMemory) {
    EXPECT_FALSE(begins_with_memory({.strategy = "knapspec", .settings = {{"memory", "off"}}}));
    EXPECT_TRUE(begins_with_memory({.strategy = "knapspec", .settings = {{"copies", "off"}}}));
    EXPECT_TRUE(begins_with_memory({.strategy = "static", .settings = {{"plan", "m1=skip"}}}));
}

TEST(KnapspecOptions, InvalidValuesAreRefusedInOneLine) {
    for (const char* text : {"budget=2", "margin=-1", "copies=yes", "memory=1", "knapsack=maybe",
                             "windows=", "windows=64/", "windows=0", "windows=1/2/3/4/5/6/7/8/9"}) {
        try {
            read(text);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), StartsWith("`.settings`: ")) << text;
            EXPECT_THAT(error.what(), Not(HasSubstr("\n"))) << text;
        }
    }
}

}  // namespace
}  // namespace knap::knapspec_options_test
