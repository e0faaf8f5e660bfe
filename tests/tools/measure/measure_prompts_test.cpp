#include "tools/measure/measure_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/bench_example.h"

namespace knap::measure_prompts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

BenchPrompt prompt(const std::string& id, std::optional<int> depth = {}) {
    return {.data = "data.jsonl",
            .id = id,
            .depth = depth,
            .tokens = {1, 2, 3},
            .n_document_tokens = 5,
            .where = concat("data.jsonl:", id)};
}

const std::vector<BenchPrompt> kPrompts{prompt("1"), prompt("2"), prompt("3"), prompt("s", 16),
                                        prompt("s", 32)};

// Makes up measurements, the same ones for the same prompt.
class FakeRace {
  public:
    explicit FakeRace(int n_until_cancelled = 1000) : n_left_(n_until_cancelled) {}

    std::optional<PromptOutcome> operator()(const BenchPrompt& of) {
        if (n_left_-- == 0) {
            return std::nullopt;
        }
        measured.push_back(concat(of.id, of.depth.value_or(0)));
        PromptOutcome outcome;
        for (const char* strategy : {"autoregressive", "lookup"}) {
            outcome.rows.push_back(test::example_row(strategy));
            BenchRow& row = outcome.rows.back();
            row.id = of.id;
            row.depth = of.depth;
            row.n_prompt = static_cast<int>(of.tokens.size());
            row.n_document_tokens = of.n_document_tokens;
            row.prefill_ms = of.id.front() + of.depth.value_or(0);
        }
        return outcome;
    }

    std::vector<std::string> measured;

  private:
    int n_left_;
};

BenchReport blank_report() {
    BenchReport report = test::example_report();
    report.rows.clear();
    return report;
}

BenchReport run(std::span<const BenchRow> known, FakeRace& race) {
    BenchReport report = blank_report();
    measure_prompts(kPrompts, known, std::ref(race), report,
                    [](std::span<const BenchRow>, bool) {});
    return report;
}

TEST(MeasurePrompts, AResumedRunHasTheRowsOfAnUninterruptedOne) {
    FakeRace whole_race;
    const BenchReport whole = run({}, whole_race);
    ASSERT_TRUE(whole.is_complete);
    ASSERT_EQ(whole.rows.size(), 10u);
    for (int n = 0; n < 5; ++n) {
        FakeRace first_race(n);
        const BenchReport first = run({}, first_race);
        EXPECT_FALSE(first.is_complete);
        EXPECT_EQ(first.rows.size(), 2u * static_cast<std::size_t>(n));
        FakeRace second_race;
        const BenchReport second = run(first.rows, second_race);
        EXPECT_TRUE(second.is_complete);
        EXPECT_EQ(second.rows, whole.rows);
        EXPECT_EQ(second_race.measured.size(), 5u - static_cast<std::size_t>(n));
    }
}

TEST(MeasurePrompts, APromptWithAMissingRowIsMeasuredAgain) {
    FakeRace whole_race;
    const BenchReport whole = run({}, whole_race);
    std::vector<BenchRow> known = whole.rows;
    known.erase(known.begin() + 3);
    FakeRace race;
    EXPECT_EQ(run(known, race).rows, whole.rows);
    EXPECT_THAT(race.measured, ElementsAre("20"));
}

TEST(MeasurePrompts, ReportsWhichRowsAreNew) {
    FakeRace first_race(2);
    const BenchReport first = run({}, first_race);
    std::vector<bool> news;
    BenchReport report = blank_report();
    FakeRace race;
    measure_prompts(kPrompts, first.rows, std::ref(race), report,
                    [&](std::span<const BenchRow> rows, bool is_new) {
                        EXPECT_EQ(rows.size(), 2u);
                        news.push_back(is_new);
                    });
    EXPECT_THAT(news, ElementsAre(false, false, true, true, true));
}

TEST(MeasurePrompts, KeepsRowsMeasuredBeforeAFailure) {
    BenchReport report = blank_report();
    FakeRace race;
    int n_calls = 0;
    EXPECT_THROW(measure_prompts(
                     kPrompts, {},
                     [&](const BenchPrompt& of) {
                         if (of.id == "3") {
                             throw Error("another text");
                         }
                         return race(of);
                     },
                     report, [&](std::span<const BenchRow>, bool) { ++n_calls; }),
                 Error);
    EXPECT_EQ(n_calls, 2);
    EXPECT_EQ(report.rows.size(), 4u);
    EXPECT_FALSE(report.is_complete);
}

TEST(MeasurePrompts, RefusesRowsOfAnotherText) {
    FakeRace race;
    std::vector<BenchRow> known = run({}, race).rows;
    known[4].n_prompt = 4;
    EXPECT_THAT([&] { run(known, race); },
                ThrowsMessage<Error>(HasSubstr("prompt 3 of data.jsonl: expected 3 of 5 tokens")));
}

TEST(MeasurePrompts, ListsPromptsThatCannotBeMeasured) {
    BenchReport report = blank_report();
    measure_prompts(
        std::span(kPrompts).first(1), {},
        [](const BenchPrompt&) { return PromptOutcome{.skipped_because = "it is too short"}; },
        report, [](std::span<const BenchRow> rows, bool) { EXPECT_TRUE(rows.empty()); });
    EXPECT_TRUE(report.is_complete);
    EXPECT_THAT(report.skipped, ElementsAre(SkippedPrompt{"data.jsonl:1", "it is too short"}));
}

}  // namespace
}  // namespace knap::measure_prompts_test
