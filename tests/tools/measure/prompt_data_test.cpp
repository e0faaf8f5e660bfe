#include "tools/measure/prompt_data.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/tiny_model.h"

namespace knap::prompt_data_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string write_data(const std::string& name, const std::string& text) {
    const auto path = temporary_folder() / name;
    std::ofstream(path) << text;
    return path.string();
}

std::string mixed_file() {
    return write_data("mixed.jsonl",
                      "{\"id\": \"a\", \"task\": \"qa\", \"prompt\": \"one\"}\n"
                      "nonsense\n"
                      "\n"
                      "{\"id\": \"a\", \"task\": \"math\", \"prompt\": \"two\", \"reference\": 2}\n"
                      "{\"prompt\": 3}\n"
                      "{\"task\": \"qa\", \"prompt\": \"three\"}\n");
}

auto ids_are(const std::vector<std::string>& ids) {
    std::vector<testing::Matcher<DataPrompt>> matchers;
    for (const std::string& id : ids) {
        matchers.emplace_back(Field(&DataPrompt::id, id));
    }
    return testing::ElementsAreArray(matchers);
}

TEST(PromptData, BrokenLinesAreListedByFileAndLine) {
    const PromptData data = read_prompt_source(mixed_file(), 0);
    EXPECT_THAT(data.prompts, ids_are({"a", "a (line 4)", "line 6"}));
    EXPECT_THAT(data.prompts[2].where, EndsWith("mixed.jsonl:6"));
    ASSERT_EQ(data.skipped.size(), 2u);
    EXPECT_THAT(data.skipped[0].where, EndsWith("mixed.jsonl:2"));
    EXPECT_THAT(data.skipped[0].why, HasSubstr("not JSON"));
    EXPECT_THAT(data.skipped[1].where, EndsWith("mixed.jsonl:5"));
    EXPECT_THAT(data.skipped[1].why, HasSubstr("expected a string `prompt`"));
}

TEST(PromptData, IdsDifferWhateverTheyAre) {
    const auto file = write_data("ids.jsonl",
                                 "{\"id\": \"a (line 3)\", \"prompt\": \"one\"}\n"
                                 "{\"id\": \"a\", \"prompt\": \"two\"}\n"
                                 "{\"id\": \"a\", \"prompt\": \"three\"}\n");
    EXPECT_THAT(read_prompt_source(file, 0).prompts,
                ids_are({"a (line 3)", "a", "a (line 3) (line 3)"}));
}

TEST(PromptData, ReadsThePromptsOfOneTaskUpToTheLimit) {
    EXPECT_THAT(read_prompt_source(mixed_file() + ":qa", 0).prompts, ids_are({"a", "line 6"}));
    EXPECT_THAT(read_prompt_source(mixed_file() + ":qa", 1).prompts, ids_are({"a"}));
    EXPECT_THAT(read_prompt_source(mixed_file() + ":math", 0).prompts, ids_are({"a (line 4)"}));
    EXPECT_THAT([] { read_prompt_source(mixed_file() + ":none", 0); },
                ThrowsMessage<Error>(HasSubstr("found none in 6 lines")));
}

TEST(PromptData, TheFirstPromptsOfASourceCanBeLeftOut) {
    EXPECT_THAT(read_prompt_source(mixed_file(), 0, 1).prompts, ids_are({"a (line 4)", "line 6"}));
    EXPECT_THAT(read_prompt_source(mixed_file(), 1, 1).prompts, ids_are({"a (line 4)"}));
    EXPECT_THAT(read_prompt_source(mixed_file() + ":qa", 0, 1).prompts, ids_are({"line 6"}));
    EXPECT_THAT([] { read_prompt_source(mixed_file() + ":qa", 0, 2); },
                ThrowsMessage<Error>(HasSubstr("more than the 2 prompts of --skip, found 2")));
}

TEST(PromptData, SourcesNameTheirFile) {
    EXPECT_EQ(file_of_source("x/y.jsonl"), "x/y.jsonl");
    EXPECT_EQ(file_of_source("x/y.jsonl:qa"), "x/y.jsonl");
    EXPECT_EQ(file_of_source("odd:name.txt"), "odd:name.txt");
}

}  // namespace
}  // namespace knap::prompt_data_test
