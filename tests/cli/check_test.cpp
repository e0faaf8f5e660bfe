// `knap check`.
#include <algorithm>

#include <signal.h>

#include "cli/command.h"
#include "kernels/attention/attention.h"
#include "kernels/matmul/matmul.h"

namespace knap::check_test {
namespace {

using nlohmann::json;

// A small context and few tokens: seconds on any machine.
Words check_words(const std::string& type = "Q8_0") {
    return {"check", "-m", tiny_model("tiny-llama", type).string(), "-t", "1", "-c", "256",
            "-n",    "12"};
}

ProcessResult check(const Words& flags) {
    return run_knap(check_words() + flags);
}

TEST(Check, TableReportsSuccess) {
    const auto result = check({"--limit", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    for (const char* text :
         {"Batch sizes that are bit-identical", "Q8_0", "all tested (up to 16)",
          "passes of the whole model", "largest logit difference: chains 0, trees ",
          "a near tie is a gap below ", "Logits compared with libllama",
          "Texts compared with plain decoding", "lookup", "static, exit", "temp 0.8",
          "Every strategy wrote the same text as plain decoding, token for token.\n"}) {
        EXPECT_THAT(result.output, testing::HasSubstr(text));
    }
}

TEST(Check, JsonHasEveryPromisedField) {
    const auto result = check({"--limit", "3", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const json object = json::parse(result.output);
    EXPECT_EQ(object["ok"], true);
    EXPECT_EQ(object["n_prompts"], 3);
    EXPECT_EQ(object["n_predict"], 12);
    EXPECT_EQ(object["n_threads"], 1);
    EXPECT_EQ(object["n_mismatches"], 0);
    EXPECT_EQ(object["n_near_ties"], 0);
    EXPECT_EQ(object["near_tie_factor"], 2);
    const json& error = object["verification_error"];
    EXPECT_EQ(error["chains"], 0);
    EXPECT_EQ(error["trees"] == 0, has_fast_attention());
    EXPECT_EQ(object["near_tie_gap"] == 0, has_fast_attention()) << "any divergence is a mismatch";
    EXPECT_EQ(error["max_rows"], 64);
    EXPECT_GT(error["n_rows"], 1000);
    const json& product = object["rows"]["products"][0];
    EXPECT_EQ(product["type"], "Q8_0");
    EXPECT_EQ(product["layout"], has_fast_matmul() ? "packed" : "plain");
    EXPECT_GT(product["n_in"], 0);
    EXPECT_GT(product["n_out"], 0);
    EXPECT_GT(product["n_matrices"], 0);
    EXPECT_EQ(product["rows"], (json{{"n_exact", 16}, {"n_tested", 16}, {"is_exact", true}}));
    EXPECT_EQ(object["rows"]["passes"]["rows"]["n_exact"], 17);
    for (const char* side : {"knap", "flash"}) {
        for (const char* name : {"max_difference", "mean_difference", "max_gap_change",
                                 "equal_choices", "max_gap_of_unequal"}) {
            EXPECT_TRUE(object["libllama"][side][name].is_number()) << side << name;
        }
    }
    EXPECT_GT(object["libllama"]["n_rows"], 100);
    ASSERT_GE(object["strategies"].size(), 6u);
    for (const json& strategy : object["strategies"]) {
        EXPECT_EQ(strategy["n_equal"], 3);
        EXPECT_EQ(strategy["near_ties"], json::array());
        EXPECT_EQ(strategy["mismatches"], json::array());
        EXPECT_GT(strategy["n_tokens"], 0);
        EXPECT_TRUE(strategy["n_drafted"].is_number());
        EXPECT_TRUE(strategy["acceptance_rate"].is_number());
    }
}

TEST(Check, LongPromptsAreCutToTheContext) {
    const auto result = check({"--json", "-c", "128"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(json::parse(result.output)["n_prompts"], 8);
    EXPECT_THAT(result.error, testing::HasSubstr("knap: warning: prompt diary: "));
    EXPECT_THAT(result.error, testing::HasSubstr(" tokens, the first 116 are used"));
}

TEST(Check, RefusesMoreTokensThanTheContextHolds) {
    expect_error(check({"-n", "256"}), 1, "-n: expected fewer tokens than the context of 256");
}

TEST(Check, ReadsPromptsFromAFileAndSkipsBadLines) {
    const auto path = write_text("prompts.jsonl",
                                 "{\"id\": \"one\", \"task\": \"t\", \"prompt\": \"hello\"}\n"
                                 "\n"
                                 "not json\n"
                                 "[1, 2]\n"
                                 "{\"id\": \"no prompt\"}\n"
                                 "{\"prompt\": \"\"}\n"
                                 "{\"id\": 7, \"prompt\": \"a number as id\"}\n"
                                 "{\"prompt\": \"bad bytes \xff\"}\n"
                                 "{\"prompt\": \"no id\", \"reference\": 5}\r\n"
                                 "{\"id\": \"last\", \"prompt\": \"no newline after it\"}");
    const auto result = check({"--json", "--data", path.string()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(json::parse(result.output)["n_prompts"], 3);
    const std::string place = "knap: warning: " + path.string();
    EXPECT_THAT(result.error, testing::HasSubstr(place + ":3: expected a JSON object, found text"));
    EXPECT_THAT(result.error,
                testing::HasSubstr(place + ":4: expected a JSON object, found array"));
    EXPECT_THAT(result.error,
                testing::HasSubstr(place + ":5: expected a non-empty string `prompt`"));
    EXPECT_THAT(result.error,
                testing::HasSubstr(place + ":6: expected a non-empty string `prompt`"));
    EXPECT_THAT(result.error,
                testing::HasSubstr(place + ":7: expected a string `id`, found number"));
    EXPECT_THAT(result.error, testing::HasSubstr(place + ":8: expected a JSON object"));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 6) << result.error;
}

TEST(Check, LimitIsTheMaximumNumberOfPrompts) {
    std::string lines;
    for (int i = 0; i < 12; ++i) {
        lines += "{\"prompt\": \"number " + std::to_string(i) + "\"}\n";
    }
    const auto path = write_text("twelve.jsonl", lines + "not json\n").string();
    const auto n_prompts = [&](const Words& flags) {
        const auto result = check(Words{"--json", "-n", "2", "--data", path} + flags);
        return json::parse(result.output)["n_prompts"].get<int>();
    };
    EXPECT_EQ(n_prompts({}), 8);
    EXPECT_EQ(n_prompts({"--limit", "2"}), 2);
    EXPECT_EQ(n_prompts({"--limit", "0"}), 12);
}

TEST(Check, RefusesDataWithoutPrompts) {
    expect_error(check({"--data", "/no/such/file"}), 1, "data /no/such/file: cannot be opened");
    expect_error(check({"--data", temporary_folder().string()}), 1, "Is a directory");
    expect_error(check({"--data", "/dev/null"}), 1,
                 "data /dev/null: expected lines with a prompt, found none in 0 lines");
    const auto path = write_text("none.jsonl", "{}\n");
    const auto result = check({"--data", path.string()});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error, testing::HasSubstr("knap: error: data " + path.string()));
}

// ggml rounds F16 products of several rows differently from those of one row. The bound follows
// from the measured difference.
TEST(Check, FloatTypesDifferOnlyAtNearTies) {
    const auto result =
        run_knap(check_words("F16") + Words{"--json", "--limit", "2", "--kernels", "ggml"});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.error;
    const json object = json::parse(result.output);
    EXPECT_EQ(object["rows"]["products"][0]["type"], "F16");
    EXPECT_EQ(object["n_mismatches"], 0);
    const double change = object["verification_error"]["gap_change"];
    EXPECT_GT(change, 0);
    EXPECT_DOUBLE_EQ(object["near_tie_gap"], 2 * change);
    EXPECT_LE(change, object["verification_error"]["limit"]);
    EXPECT_DOUBLE_EQ(object["verification_error"]["limit"],
                     4 * object["libllama"]["flash"]["max_gap_change"].get<double>());
}

TEST(Check, CtrlCStopsIt) {
    ProcessRequest request;
    request.arguments = {"check", "-m", tiny_model("small-llama", "Q8_0").string(), "-t", "1"};
    request.is_on_terminal = true;  // a progress bar shows that the check has begun
    request.signals = {{SIGINT, "libllama ["}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output, testing::HasSubstr("knap: the check was interrupted"));
    EXPECT_THAT(result.output, testing::Not(testing::HasSubstr("Batch sizes")));
}

}  // namespace
}  // namespace knap::check_test
