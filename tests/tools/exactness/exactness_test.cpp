// The long check on a tiny model: what it covers, that it goes on where it stopped, and that it
// finds a difference.
#include "tools/exactness/exactness.h"

#include <atomic>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"
#include "tools/exactness/eager_contenders.h"
#include "tools/exactness/summary.h"

namespace knap::test::exactness_test {
namespace {

const Contender kPlan{"plan", {.strategy = "static", .settings = {{"plan", "m1=skip"}}}};
const Contender kLookup{"lookup", {.strategy = "lookup"}};

ExactnessOptions options_with(std::vector<Contender> contenders, std::int64_t n_tokens) {
    return {
        .config = {.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 256, .n_threads = 2},
        .contenders = std::move(contenders),
        .texts = {{"text", random_tokens(100, 256, 1)}},
        .n_predict = 16,
        .seed = 5,
        .n_tokens = n_tokens};
}

std::string fresh_record(const char* name) {
    const auto path = temporary_folder() / name;
    std::filesystem::remove(path);
    return path.string();
}

bool run(const ExactnessOptions& options,
         ExactnessRecord& record,
         const CheckObserver& observer = {}) {
    return check_exactness(options, record, observer);
}

// What is the same in every run: drafts may depend on measured times.
std::map<int, std::vector<int>> tokens_of(std::span<const CompletedCase> cases) {
    std::map<int, std::vector<int>> tokens;
    for (const CompletedCase& done : cases) {
        EXPECT_FALSE(tokens.contains(done.number)) << "no case twice";
        for (const ComparedAnswer& answer : done.answers) {
            tokens[done.number].push_back(answer.n_tokens);
        }
    }
    return tokens;
}

TEST(Exactness, EveryContenderWritesWhatPlainDecodingWrites) {
    ExactnessOptions options = options_with({}, 2500);
    Engine engine(options.config);
    check_promises_exactness(engine);
    options.contenders = exactness_contenders(engine);
    ExactnessRecord record("");
    ASSERT_TRUE(run(options, record));
    const ExactnessSummary summary = summary_of(record.cases());
    EXPECT_EQ(summary.all.n_differing, 0);
    EXPECT_EQ(summary.contenders.size(), options.contenders.size());
    EXPECT_GE(summary.all.n_tokens, 2500);
    EXPECT_GT(summary.all.n_accepted, 0);
    EXPECT_LT(summary.all.n_accepted, summary.all.n_drafted);
    EXPECT_LT(summary.all.n_undrafted, summary.all.n_cases / 2);
}

TEST(Exactness, GoesOnWhereTheRecordEnds) {
    const std::string path = fresh_record("goes-on.jsonl");
    ExactnessRecord whole("");
    ASSERT_TRUE(run(options_with({kPlan, kLookup}, 2000), whole));
    {
        ExactnessRecord first(path);
        ASSERT_TRUE(run(options_with({kPlan, kLookup}, 700), first));
        EXPECT_LT(first.cases().size(), whole.cases().size());
    }
    ExactnessRecord second(path);
    const auto n_known = second.cases().size();
    EXPECT_GT(n_known, 0u);
    ASSERT_TRUE(run(options_with({kPlan, kLookup}, 700), second));
    EXPECT_EQ(second.cases().size(), n_known) << "the tokens are there already";
    ASSERT_TRUE(run(options_with({kPlan, kLookup}, 2000), second));
    EXPECT_EQ(tokens_of(second.cases()), tokens_of(whole.cases()));
    EXPECT_GE(summary_of(second.cases()).all.n_tokens, 2000);
}

TEST(Exactness, AnotherSeedIsAnotherRun) {
    ExactnessRecord record("");
    ExactnessOptions options = options_with({kLookup}, 100);
    ASSERT_TRUE(run(options, record));
    const auto n_cases = record.cases().size();
    options.seed = 6;
    ASSERT_TRUE(run(options, record));
    EXPECT_GT(record.cases().size(), n_cases);
    EXPECT_NE(record.cases().front().run, record.cases().back().run);
}

TEST(Exactness, LosesNothingWhenItIsCancelled) {
    const std::string path = fresh_record("cancelled.jsonl");
    const ExactnessOptions options = options_with({kPlan, kLookup}, 2000);
    int n_cancelled = 0;
    std::size_t n_known = 0;
    for (int n_polls = 2000;; n_polls += 2000) {
        ExactnessRecord record(path);
        EXPECT_GE(record.cases().size(), n_known);
        std::atomic<int> n_left = n_polls;
        const bool is_complete =
            run(options, record, {.is_cancelled = [&] { return n_left.fetch_sub(1) <= 0; }});
        n_known = record.cases().size();
        if (is_complete) {
            break;
        }
        ++n_cancelled;
    }
    EXPECT_GT(n_cancelled, 0);
    ExactnessRecord whole("");
    ASSERT_TRUE(run(options, whole));
    EXPECT_EQ(tokens_of(ExactnessRecord(path).cases()), tokens_of(whole.cases()));
}

// The rule `ratio` writes another text of the same distribution.
TEST(Exactness, FindsADifferenceAndRepeatsIt) {
    Contender wrong = kPlan;
    wrong.speculation.acceptance = AcceptanceRule::ratio;
    ExactnessOptions options = options_with({kLookup, wrong}, 1500);
    ExactnessRecord record("");
    ASSERT_TRUE(run(options, record));
    const ExactnessSummary summary = summary_of(record.cases());
    ASSERT_FALSE(summary.differing.empty());
    const CompletedCase& found = summary.differing.front();
    EXPECT_EQ(found.strategy, "static");
    const auto difference = [](const CompletedCase& done) {
        std::vector<int> positions;
        for (const ComparedAnswer& answer : done.answers) {
            positions.push_back(answer.difference ? answer.difference->position : -1);
        }
        return positions;
    };
    for (const ComparedAnswer& answer : found.answers) {
        if (answer.difference) {
            EXPECT_EQ(answer.difference->position, answer.n_prompt + answer.n_tokens);
            EXPECT_NE(answer.difference->expected, answer.difference->found);
        }
    }
    options.only = found.number;
    ExactnessRecord again("");
    ASSERT_TRUE(run(options, again));
    const auto repeated = std::ranges::find(again.cases(), found.number, &CompletedCase::number);
    ASSERT_NE(repeated, again.cases().end());
    EXPECT_EQ(difference(*repeated), difference(found));
    EXPECT_THAT(found.flags, testing::EndsWith(" --case " + std::to_string(found.number)));
}

TEST(Exactness, DrawsEverySettingAndKindOfRequest) {
    ExactnessRecord record("");
    ASSERT_TRUE(run(options_with({kLookup}, 4000), record));
    std::map<std::string, std::size_t> n_values;
    for (const auto& [name, rows] : summary_of(record.cases()).draws) {
        n_values[name] = rows.size();
    }
    EXPECT_EQ(n_values["cache"], 2u);
    EXPECT_EQ(n_values["threads"], 2u);
    EXPECT_EQ(n_values["sessions"], 3u);
    EXPECT_EQ(n_values["costs"], 3u);
    EXPECT_EQ(n_values["constraint"], 5u);
    EXPECT_GE(n_values["sampling"], 6u);
    EXPECT_GE(n_values["rows of a pass"], 5u);
}

TEST(Exactness, RefusesEnginesThatPromiseLess) {
    RuntimeConfig config = options_with({}, 0).config;
    config.kernels = Kernels::ggml;
    config.flash_attention = FlashAttention::on;
    Engine engine(config);
    EXPECT_THROW(check_promises_exactness(engine), Error);
}

TEST(EagerContenders, AskForNoMoreThanTheModelHas) {
    const auto names = [](const EngineParts& parts) {
        std::set<std::string> strategies;
        for (const Contender& contender : eager_contenders(parts)) {
            strategies.insert(contender.speculation.strategy);
        }
        return strategies;
    };
    EXPECT_FALSE(names({.n_layers = 1}).contains("clasp"));
    EXPECT_FALSE(names({.n_layers = 3}).contains("swift"));
    EXPECT_TRUE(names({.n_layers = 4}).contains("swift"));
    EXPECT_FALSE(names({.n_layers = 4}).contains("kangaroo"));
    EXPECT_TRUE(names({.n_layers = 4, .has_adapter = true}).contains("kangaroo"));
}

}  // namespace
}  // namespace knap::test::exactness_test
