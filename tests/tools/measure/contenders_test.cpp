#include "tools/measure/contenders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::contenders_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Contender, ParsesStrategyDraftLengthAndPlan) {
    const Contender plain = parse_contender("knapspec");
    EXPECT_EQ(plain.name, "knapspec");
    EXPECT_EQ(plain.speculation, (SpeculationOptions{.strategy = "knapspec"}));
    EXPECT_EQ(parse_contender("lookup/4").speculation,
              (SpeculationOptions{.strategy = "lookup", .draft_max = 4}));
    EXPECT_EQ(
        parse_contender("static//a2=skip;m7=skip").speculation,
        (SpeculationOptions{.strategy = "static", .settings = {{"plan", "a2=skip,m7=skip"}}}));
}

TEST(Contender, ParsesOptionsInParentheses) {
    const Contender tuned = parse_contender("knapspec-paper(tau=0.3;interval=16)");
    EXPECT_EQ(tuned.name, "knapspec-paper(tau=0.3;interval=16)");
    EXPECT_EQ(tuned.speculation.strategy, "knapspec-paper");
    EXPECT_EQ(tuned.speculation.settings, (StrategySettings{{"interval", "16"}, {"tau", "0.3"}}));
    EXPECT_EQ(parse_contender("knapspec(windows=64/128)/4").speculation,
              (SpeculationOptions{
                  .strategy = "knapspec", .draft_max = 4, .settings = {{"windows", "64/128"}}}));
}

TEST(Contender, RefusesMalformedText) {
    EXPECT_THAT([] { parse_contender("luck/4"); },
                ThrowsMessage<Error>(HasSubstr("--strategies: expected autoregressive|static|")));
    for (const char* text : {"lookup/x", "lookup/4x", "lookup/-1", "lookup/65", "lookup/4/a=skip/x",
                             "clasp(interval=8", "clasp(interval=8)4"}) {
        EXPECT_THAT([=] { parse_contender(text); },
                    ThrowsMessage<Error>(HasSubstr("STRATEGY[(OPTIONS)][/DRAFT_MAX[/PLAN]]")))
            << text;
    }
}

TEST(Contender, DescribesTheGivenOptions) {
    EXPECT_EQ(describe_options(parse_contender("knapspec").speculation), "");
    EXPECT_EQ(describe_options(parse_contender("clasp(layers=8;interval=16)/5").speculation),
              "interval=16 layers=8 draft_max=5");
    EXPECT_EQ(describe_options(parse_contender("static/4/a=w16+256").speculation),
              "plan=a=w16+256 draft_max=4");
    EXPECT_EQ(describe_options({.strategy = "lookup", .assume_acceptance = 0.5}),
              "assume_acceptance=0.5");
}

}  // namespace
}  // namespace knap::contenders_test
