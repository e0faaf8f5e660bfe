#include "tools/exactness/record.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/tiny_model.h"
#include "tools/exactness/summary.h"

namespace knap::test::record_test {
namespace {

CompletedCase some_case(int number) {
    return {.run = "12ab",
            .number = number,
            .model = "some/model.gguf",
            .kernels = "avx2 Q8_0",
            .contender = "lookup",
            .strategy = "lookup",
            .variant = {{"cache", "q8_0"}, {"sessions", "2"}},
            .answers = {{.sampling = "greedy",
                         .constraint = "none",
                         .n_prompt = 7,
                         .n_tokens = 20,
                         .n_drafted = 9,
                         .n_accepted = 4,
                         .n_copied = 5,
                         .n_planned = 3,
                         .n_cascaded = 1,
                         .n_forced = 2},
                        {.sampling = "sampled",
                         .constraint = "schema",
                         .n_prompt = 5,
                         .n_tokens = 3,
                         .difference = Divergence{.position = 8, .expected = 17, .found = {}}}},
            .flags = "-c 256"};
}

std::filesystem::path write(const char* name, const std::string& text) {
    auto path = temporary_folder() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

std::string refusal(const std::filesystem::path& path) {
    try {
        ExactnessRecord record(path);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

TEST(ExactnessRecord, LinesAreReadAsTheyAreWritten) {
    const CompletedCase done = some_case(3);
    const CompletedCase read = case_from(to_line(done));
    EXPECT_EQ(to_line(read), to_line(done));
    EXPECT_EQ(read.answers.at(1).difference->expected, 17);
    EXPECT_EQ(read.answers.at(1).difference->found, std::nullopt);
    EXPECT_FALSE(read.answers.at(0).difference.has_value());
    EXPECT_TRUE(read.differs());
    EXPECT_EQ(to_line(done).find('\n'), std::string::npos);
}

TEST(ExactnessRecord, DropsALineThatWasNotFinished) {
    const std::string line = to_line(some_case(1)) + "\n";
    const auto path = write("unfinished.jsonl", line + line.substr(0, 40));
    {
        ExactnessRecord record(path);
        EXPECT_EQ(record.cases().size(), 1u);
        EXPECT_TRUE(record.has("12ab", 1));
        EXPECT_FALSE(record.has("12ab", 2));
        EXPECT_FALSE(record.has("other", 1));
        record.add(some_case(2));
    }
    ExactnessRecord again(path);
    ASSERT_EQ(again.cases().size(), 2u);
    EXPECT_EQ(to_line(again.cases()[1]), to_line(some_case(2)));
}

TEST(ExactnessRecord, RefusesWhatIsNone) {
    const std::string line = to_line(some_case(1)) + "\n";
    const auto path = write("other.jsonl", line + "{\"prompt\": \"text\"}\n");
    EXPECT_EQ(refusal(path), "record " + path.string() + ":2: expected a text `run`, found none");
    const auto prose = write("prose.txt", "not a record\n");
    EXPECT_EQ(refusal(prose),
              "record " + prose.string() + ":1: expected a JSON object, found damaged text");
    EXPECT_EQ(std::filesystem::file_size(prose), 13u) << "and leaves it as it was";
    EXPECT_THAT(refusal("/no/such/folder/record"), testing::HasSubstr("cannot create"));
}

TEST(ExactnessRecord, HasOneWriter) {
    const auto path = write("shared.jsonl", "");
    {
        ExactnessRecord first(path);
        EXPECT_EQ(refusal(path), path.string() + ": another process is writing this record");
    }
    EXPECT_EQ(refusal(path), "accepted");
}

TEST(ExactnessSummary, CountsAnswersByWhatWasDrawn) {
    CompletedCase silent = some_case(2);
    silent.contender = "lookup, eager";
    silent.answers = {{.sampling = "greedy", .constraint = "none", .n_prompt = 1, .n_tokens = 10}};
    const std::vector<CompletedCase> cases{some_case(1), silent};
    const ExactnessSummary summary = summary_of(cases);
    EXPECT_EQ(summary.all.n_tokens, 33);
    EXPECT_EQ(summary.all.n_cases, 2);
    EXPECT_EQ(summary.all.n_undrafted, 1);
    EXPECT_EQ(summary.all.n_differing, 1);
    ASSERT_EQ(summary.strategies.size(), 1u);
    EXPECT_EQ(summary.strategies[0].second.n_accepted, 4);
    EXPECT_EQ(summary.contenders.size(), 2u);
    EXPECT_EQ(summary.models.at(0).first, "model.gguf, avx2 Q8_0");
    ASSERT_EQ(summary.draws.at(0).first, "sampling");
    EXPECT_EQ(summary.draws[0].second.at(0).first, "greedy");
    EXPECT_EQ(summary.draws[0].second.at(0).second.n_tokens, 30);
    EXPECT_EQ(summary.draws[0].second.at(1).second.n_undrafted, 1) << "of the sampled answers";
    EXPECT_EQ(summary.differing.size(), 1u);
}

}  // namespace
}  // namespace knap::test::record_test
