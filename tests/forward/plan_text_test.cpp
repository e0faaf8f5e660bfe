#include "forward/plan_text.h"

#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "base/text.h"

namespace knap::plan_text_test {

void PrintTo(const ModulePlan& plan, std::ostream* out) {
    *out << to_string(plan) << " of " << plan.n_layers() << " layers";
}

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of(std::string_view text, int n_layers = 30) {
    try {
        parse_plan(text, n_layers);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

// Sets both modules of every layer in [first, last].
void set_layers(ModulePlan& plan, int first, int last, Level attention, Level mlp) {
    for (int layer = first; layer <= last; ++layer) {
        plan.set(layer, Module::attention, attention);
        plan.set(layer, Module::mlp, mlp);
    }
}

// Runs of layers at one level, so that ranges, exits and whole-model items all occur.
ModulePlan random_plan(std::mt19937& engine) {
    const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
    ModulePlan plan(1 + below(40));
    const Level levels[] = {Level::full, Level::skip, Level::windowed(16, 1 + below(3)),
                            Level::windowed(0, 256), Level::windowed(kMaxWindowRows, 0)};
    const Level mlps[] = {Level::full, Level::skip, Level::with_experts(1 + below(3)),
                          Level::with_experts(kMaxExpertsOfLevel)};
    for (const Module module : {Module::attention, Module::mlp}) {
        for (int layer = 0; layer < plan.n_layers();) {
            const Level& level = module == Module::attention ? levels[below(5)] : mlps[below(4)];
            for (int n = 1 + below(12); n > 0 && layer < plan.n_layers(); --n) {
                plan.set(layer++, module, level);
            }
        }
    }
    if (below(3) == 0) {
        plan.skip_from(below(plan.n_layers() + 1));
    }
    plan.set_head(below(4) == 0 ? HeadLevel::reduced : HeadLevel::full);
    return plan;
}

TEST(PlanText, RandomPlansRoundTrip) {
    std::mt19937 engine(7);
    for (int i = 0; i < 5000; ++i) {
        const ModulePlan plan = random_plan(engine);
        ASSERT_EQ(parse_plan(to_string(plan), plan.n_layers()), plan);
    }
}

TEST(PlanText, IsCanonical) {
    for (const auto& [written, canonical_text] : std::vector<std::pair<const char*, const char*>>{
             {"full", "full"},
             {"a=full", "full"},
             {"exit=30", "full"},
             {"exit=0", "exit=0"},
             {"l=skip", "exit=0"},
             {"a=skip", "a=skip"},
             {"m0-29=skip", "m=skip"},
             {"m5=skip,a5=skip", "l5=skip"},
             {"a1+2+3+5=skip", "a1-3+5=skip"},
             {"a0-28=w16+256,l29=skip", "a=w16+256,exit=29"},
             {"a29=skip,m28-29=skip", "m28=skip,exit=29"},
             {"a=w4+8,a3=w2+9,a0=w4+7", "a3=w2+9,a0=w4+7,a1-2+4-29=w4+8"},
             {"a3=w016+0256", "a3=w16+256"},
             {"m=e4", "m=e4"},
             {"m=e04,m3=e2,m5=skip", "m5=skip,m3=e2,m0-2+4+6-29=e4"},
             {"m=e4,exit=5", "m=e4,exit=5"},
             {"head=reduced", "head=reduced"},
             {"head=reduced,exit=4,head=full", "exit=4"},
         }) {
        EXPECT_EQ(to_string(parse_plan(written, 30)), canonical_text) << written;
    }
}

TEST(PlanText, UsesTheShorterFormForSkips) {
    // By module where ranges overlap, by layer where they coincide.
    const std::string example = "a3-7=skip,m5=skip,a8+10-29=w16+256,exit=30,head=reduced";
    EXPECT_EQ(to_string(parse_plan(example, 40)), example);
    EXPECT_EQ(to_string(parse_plan("a3-7=skip,m3-7+9=skip", 40)), "l3-7=skip,m9=skip");
}

TEST(PlanText, ReadsEveryKindOfItem) {
    ModulePlan expected(40);
    set_layers(expected, 3, 7, Level::skip, Level::full);
    expected.set(5, Module::mlp, Level::skip);
    set_layers(expected, 10, 29, Level::windowed(16, 256), Level::full);
    expected.set(8, Module::attention, Level::windowed(16, 256));
    set_layers(expected, 30, 39, Level::skip, Level::skip);
    expected.set_head(HeadLevel::reduced);
    EXPECT_EQ(parse_plan("a3-7=skip,m5=skip,a8+10-29=w16+256,exit=30,head=reduced", 40), expected);
}

TEST(PlanText, ReadsAndWritesNumbersOfExperts) {
    ModulePlan expected(6);
    for (const int layer : {0, 1, 2, 5}) {
        expected.set(layer, Module::mlp, Level::with_experts(4));
    }
    expected.set(3, Module::mlp, Level::with_experts(2));
    expected.set(3, Module::attention, Level::skip);
    EXPECT_EQ(parse_plan("m=e4,m3=e2,m4=full,a3=skip", 6), expected);
    EXPECT_EQ(to_string(expected), "a3=skip,m3=e2,m0-2+5=e4");
}

TEST(PlanText, LaterItemsWin) {
    ModulePlan expected(4);
    set_layers(expected, 0, 3, Level::windowed(1, 2), Level::full);
    expected.set(1, Module::attention, Level::full);
    expected.set(3, Module::attention, Level::skip);
    EXPECT_EQ(parse_plan("l=skip,m=full,a=w1+2,a1=full,a3=skip", 4), expected);
    EXPECT_EQ(parse_plan("exit=1,l1-3=full", 4), ModulePlan(4));
}

TEST(PlanText, WindowsBeyondTheLimitMayBeOverwritten) {
    EXPECT_EQ(refusal_of("a0=w1+1,a1=w1+2,a2=w1+3,a3=w1+4"), "accepted");
    EXPECT_EQ(refusal_of("a0=w1+1,a1=w1+2,a2=w1+3,a3=w1+4,a4=w1+5"),
              "`.settings[plan]`: expected at most 4 different windows, found 5");
    EXPECT_EQ(refusal_of("a0=w1+1,a1=w1+2,a2=w1+3,a3=w1+4,a4=w1+5,a0=full"), "accepted");
}

TEST(PlanText, RefusalStatesWhatWasExpectedAndWhere) {
    EXPECT_EQ(refusal_of("a31=skip"),
              "`.settings[plan]`: expected a layer below 30, found 31 in 'a31=skip'");
    EXPECT_EQ(refusal_of("a3=skip,m2-30=skip"),
              "`.settings[plan]`: expected a layer below 30, found 30 in 'm2-30=skip'");
    EXPECT_EQ(
        refusal_of("a7-3=skip"),
        "`.settings[plan]`: expected a range from the lower layer to the higher, found 7-3 in "
        "'a7-3=skip'");
    EXPECT_EQ(
        refusal_of("m=w16+256"),
        "`.settings[plan]`: expected full or skip, windows being for attention (a) alone, found "
        "w16+256 in 'm=w16+256'");
    EXPECT_EQ(
        refusal_of("x3=skip"),
        "`.settings[plan]`: expected a, m, l, exit or head before '=', found x3 in 'x3=skip'");
    EXPECT_EQ(refusal_of("a3=w0+0"),
              "`.settings[plan]`: expected a window of 1 to 1048576 rows, found w0+0 in 'a3=w0+0'");
    EXPECT_EQ(refusal_of("a3="),
              "`.settings[plan]`: expected full, skip, a window as wSINKS+RECENT or a number of "
              "experts as eN, found nothing in "
              "'a3='");
    EXPECT_EQ(refusal_of("exit=31"),
              "`.settings[plan]`: expected a number of layers up to 30, found 31 in 'exit=31'");
    EXPECT_EQ(
        refusal_of(""),
        "`.settings[plan]`: expected \"full\" or items such as a3-7=skip joined by commas, found "
        "''");
    EXPECT_THAT(refusal_of("a-3=skip"), HasSubstr("expected a layer below 30, found -3 in"));
}

TEST(PlanText, RefusalNamesTheSourceOfTheText) {
    try {
        parse_plan("a9=skip", 4, "plans.json");
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "plans.json: expected a layer below 4, found 9 in 'a9=skip'");
    }
}

class MalformedPlan : public ::testing::TestWithParam<const char*> {};

TEST_P(MalformedPlan, IsRefusedInOneLine) {
    const std::string refusal = refusal_of(GetParam());
    EXPECT_THAT(refusal, ::testing::StartsWith("`.settings[plan]`: expected "));
    EXPECT_THAT(refusal, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(Texts,
                         MalformedPlan,
                         ::testing::Values("",
                                           ",",
                                           "a=skip,",
                                           ",a=skip",
                                           "a=skip,,m=skip",
                                           " ",
                                           "a3 =skip",
                                           " a=skip",
                                           "full,a=skip",
                                           "Full",
                                           "skip",
                                           "a",
                                           "a3",
                                           "=skip",
                                           "=",
                                           "a=",
                                           "a==skip",
                                           "a=skip=skip",
                                           "x=skip",
                                           "A=skip",
                                           "am=skip",
                                           "3=skip",
                                           "a3-=skip",
                                           "a-3=skip",
                                           "a3--5=skip",
                                           "a3-5-7=skip",
                                           "a3+=skip",
                                           "a+3=skip",
                                           "a3++5=skip",
                                           "a7-3=skip",
                                           "a30=skip",
                                           "a2-30=skip",
                                           "a0x3=skip",
                                           "a99999999999999999999=skip",
                                           "a3=w",
                                           "a3=w16",
                                           "a3=w16+",
                                           "a3=w+256",
                                           "a3=w16+256+1",
                                           "a3=w-1+256",
                                           "a3=w16+-1",
                                           "a3=w16+256x",
                                           "a3=w0+0",
                                           "a3=w1048576+1",
                                           "a3=w2147483647+2147483647",
                                           "a3=w99999999999+1",
                                           "a3=W1+2",
                                           "a3=window",
                                           "m3=w16+256",
                                           "l3=w16+256",
                                           "a3=skipped",
                                           "a3=fullx",
                                           "a3=reduced",
                                           "exit=",
                                           "exit=-1",
                                           "exit=31",
                                           "exit=x",
                                           "exit=99999999999",
                                           "exit3=skip",
                                           "head=",
                                           "head=skip",
                                           "head3=full",
                                           "a3=skip\nm3=skip",
                                           "a\x80=skip"));

// Any text gives a plan or an error. This test also runs under the sanitizers.
TEST(PlanText, RandomTextNeverCrashes) {
    std::mt19937 engine(11);
    const std::string_view letters = "amlwexithdskpfu=,+-0123456789\n\xff";
    int n_accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text = i % 2 == 0 ? "a3-7=skip,m5=skip,a8+10-29=w16+256,exit=30" : "";
        for (unsigned n = engine() % 12; n > 0; --n) {
            const char letter = letters[engine() % letters.size()];
            text.insert(text.begin() + static_cast<std::ptrdiff_t>(engine() % (text.size() + 1)),
                        letter);
        }
        n_accepted += refusal_of(text) == "accepted" ? 1 : 0;
    }
    EXPECT_GT(n_accepted, 0) << "some are still plans";
    EXPECT_LT(n_accepted, 10000);
}

TEST(PlanText, RefusalOfALongTextStaysShort) {
    EXPECT_LT(refusal_of(std::string(1 << 20, 'a')).size(), 300u);
    EXPECT_LT(refusal_of("a3=" + std::string(1 << 20, '\x1b')).size(), 300u);
}

}  // namespace
}  // namespace knap::plan_text_test
