// `knap run --logprobs N`.
#include "cli/command.h"

namespace knap::cli_logprobs_test {
namespace {

using nlohmann::json;

TEST(LogprobsFlag, AddsAnEntryPerTokenToTheJson) {
    const json object = run_json({"-p", "hello", "--logprobs", "3"});
    ASSERT_EQ(object["logprobs"].size(), 8u);
    std::string text;
    for (std::size_t i = 0; i < 8; ++i) {
        const json& entry = object["logprobs"][i];
        EXPECT_EQ(entry["token"], object["tokens"][i]);
        EXPECT_LT(entry["logprob"], 0);
        ASSERT_EQ(entry["top"].size(), 3u);
        // Greedy decoding takes the most probable token.
        EXPECT_EQ(entry["top"][0]["token"], entry["token"]);
        EXPECT_EQ(entry["top"][0]["text"], entry["text"]);
        EXPECT_EQ(entry["top"][0]["logprob"], entry["logprob"]);
        EXPECT_GE(entry["top"][0]["logprob"], entry["top"][1]["logprob"]);
        EXPECT_GE(entry["top"][1]["logprob"], entry["top"][2]["logprob"]);
        text += entry["text"];
    }
    EXPECT_EQ(text, object["text"].get<std::string>());
}

TEST(LogprobsFlag, ZeroAddsOnlyTheTokensOwn) {
    const json object = run_json({"-p", "hello", "--logprobs", "0"});
    ASSERT_EQ(object["logprobs"].size(), 8u);
    EXPECT_LT(object["logprobs"][0]["logprob"], 0);
    EXPECT_EQ(object["logprobs"][0]["top"], json::array());
    EXPECT_EQ(run_json({"-p", "hello", "--logprobs", "0", "-n", "0"})["logprobs"], json::array());
}

TEST(LogprobsFlag, NothingIsAddedWithoutIt) {
    EXPECT_FALSE(run_json({"-p", "hello"}).contains("logprobs"));
}

// On a model of a type whose passes are batch-invariant.
TEST(LogprobsFlag, ValuesDoNotDependOnDrafts) {
    const auto run = [](const Words& flags) {
        const Words words{"run",
                          "-m",
                          tiny_model("tiny-llama", "Q8_0").string(),
                          "-t",
                          "1",
                          "-p",
                          "hi",
                          "-n",
                          "40",
                          "--json",
                          "--ignore-eos",
                          "--logprobs",
                          "5"};
        return json::parse(run_knap(words + flags).output, nullptr, /*allow_exceptions=*/false);
    };
    const json plain = run({"--strategy", "autoregressive"});
    expect_plain_decoding(plain);
    const json drafted = run({"--strategy", "static", "--draft-plan", "m1=skip"});
    EXPECT_GT(drafted["n_accepted"], 0);
    EXPECT_EQ(drafted["row_invariant"], true);
    ASSERT_EQ(plain["logprobs"].size(), 40u);
    EXPECT_TRUE(drafted["logprobs"] == plain["logprobs"]);
}

// A byte that is no character on its own becomes U+FFFD, as in the text of an answer.
TEST(LogprobsFlag, PartsOfCharactersAreReplaced) {
    const json object =
        run_json({"-p", "hello", "-n", "2", "--logit-bias", "195+1000", "--logprobs", "1"});
    ASSERT_TRUE(object.is_object()) << "the output is not JSON";
    for (const json& entry : object["logprobs"]) {
        EXPECT_EQ(entry["token"], 195);
        EXPECT_EQ(entry["text"], "\uFFFD");
        // Before the bias, another token was more probable.
        EXPECT_NE(entry["top"][0]["token"], 195);
        EXPECT_LT(entry["logprob"], entry["top"][0]["logprob"]);
    }
}

TEST(LogprobsFlag, WithoutJsonTheTextIsAsUsual) {
    const Words words{"-p", "hello", "-n", "8", "--strategy", "autoregressive"};
    const auto result = run_tiny(words + Words{"--logprobs", "3"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, run_tiny(words).output);
    EXPECT_THAT(result.error, testing::HasSubstr("warning: --logprobs: only --json"));
}

}  // namespace
}  // namespace knap::cli_logprobs_test
