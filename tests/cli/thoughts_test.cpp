// `knap run` and `knap chat` of models that think: thoughts are not part of the answer. A grammar
// makes a tiny model write them.
#include "base/text.h"
#include "cli/command.h"
#include "text/chat_models.h"

namespace knap::thoughts_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// What a model with channels writes.
Words with_thoughts(const std::string& answer = "<|channel|>final<|message|>Yes.") {
    const auto file = write_text("thoughts.gbnf",
                                 "root ::= \"<|channel|>analysis<|message|>Hm.\\nSo.<|end|>"
                                 "<|start|>assistant" +
                                     answer + "\"\n");
    return {"--chat-template", test::kChannelTemplate, "--grammar-file", file.string()};
}

ProcessResult run(const Words& flags) {
    return run_knap(on_tiny_model("run") + Words{"-p", "hello"} + flags);
}

TEST(Thoughts, GoToStandardErrorAndTheAnswerToStandardOutput) {
    const auto result = run(with_thoughts());
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "Yes.\n");
    EXPECT_THAT(result.error,
                testing::StartsWith("[Start thinking]\nHm.\nSo.\n[End thinking]\n\nknap: "));
}

TEST(Thoughts, StayWithTheirMarksIfAsked) {
    const auto result = run(with_thoughts() + Words{"--reasoning-format", "none"});
    EXPECT_EQ(result.output,
              "<|channel|>analysis<|message|>Hm.\nSo.<|end|><|start|>assistant<|channel|>final"
              "<|message|>Yes.\n");
    EXPECT_THAT(result.error, Not(HasSubstr("thinking")));
}

TEST(Thoughts, EndWhereTheAnswerIsCut) {
    const auto result = run(with_thoughts() + Words{"-n", "37"});
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, testing::StartsWith("[Start thinking]\nHm."));
    EXPECT_THAT(result.error, HasSubstr("\n[End thinking]\n"));
}

TEST(Thoughts, AreAFieldOfTheirOwnInJson) {
    const json object = json::parse(run(with_thoughts() + Words{"--json"}).output);
    EXPECT_EQ(object["content"], "Yes.");
    EXPECT_EQ(object["reasoning"], "Hm.\nSo.");
    EXPECT_THAT(object["text"].get<std::string>(), HasSubstr("<|channel|>"));
    const json raw = json::parse(
        run_knap(on_tiny_model("run") + Words{"--raw", "-p", "a", "-n", "4", "--json"}).output);
    EXPECT_EQ(raw["content"], raw["text"]);
    EXPECT_EQ(raw["reasoning"], "");
}

TEST(Thoughts, AnAnswerOutOfFormatIsShownAsItIs) {
    const auto file = write_text("plain.gbnf", "root ::= \"<b>Yes.\"\n");
    const auto result =
        run({"--chat-template", test::kChannelTemplate, "--grammar-file", file.string()});
    EXPECT_EQ(result.output, "<b>Yes.\n");
}

TEST(Thoughts, AreNotPartOfTheConversation) {
    ProcessRequest request;
    request.arguments = on_tiny_model("chat") + with_thoughts();
    request.input = "hello\nhello\n/stats\n";
    const auto result = run_knap(request);
    EXPECT_EQ(result.output, "Yes.\nYes.\n");
    EXPECT_THAT(result.error, HasSubstr("[Start thinking]\nHm.\nSo.\n[End thinking]\n"));
    // The second prompt has the answer alone. Of the first one all is reused.
    const std::string turns =
        "<|start|>user<|message|>hello<|end|><|start|>assistant<|channel|>"
        "final<|message|>Yes.<|end|><|start|>user<|message|>hello<|end|>"
        "<|start|>assistant";
    const int n_prompt = plain_json({"--raw", "-n", "1", "-p", turns})["n_prompt"];
    EXPECT_THAT(result.error, HasSubstr(concat("last answer  ", n_prompt, " prompt tokens (")));
}

TEST(Thoughts, ASchemaIsForTheAnswerAlone) {
    const auto file = write_text(
        "schema.json", R"({"type":"object","properties":{"a":{"enum":[1]}},"required":["a"],)"
                       R"("additionalProperties":false})");
    const Words schema{"--json-schema-file", file.string(), "--json", "-n", "400"};
    const json plain = json::parse(run(schema).output);
    EXPECT_EQ(json::parse(plain["content"].get<std::string>()), json({{"a", 1}}));
    const Words channels{"--chat-template", test::kChannelTemplate, "--strategy", "lookup"};
    EXPECT_THAT(json::parse(run(schema + channels).output)["text"].get<std::string>(),
                testing::StartsWith("<|channel|>"))
        << "and not with the JSON";
}

TEST(Thoughts, CanBeSwitchedOffAndMeasured) {
    const auto n_prompt = [](const Words& flags) {
        const Words one_token{"--chat-template", test::kQwenTemplate, "-n", "1", "--json"};
        return json::parse(run(one_token + flags).output)["n_prompt"].get<int>();
    };
    EXPECT_GT(n_prompt({"-rea", "off"}), n_prompt({})) << "an empty thought";
    EXPECT_EQ(n_prompt({"--reasoning", "on"}), n_prompt({}));
    const Words effort{"--chat-template", "{{ messages[0].content }} {{ reasoning_effort }}",
                       "--reasoning-effort", "high"};
    EXPECT_EQ(json::parse(run(effort + Words{"-n", "1", "--json"}).output)["n_prompt"],
              plain_json({"--raw", "-n", "1", "-p", "hello high"})["n_prompt"]);
    expect_error(run({"--reasoning-effort", "very high"}), 2,
                 "--reasoning-effort: expected a level such as low, medium or high");
    expect_error(run({"--reasoning", "maybe"}), 2, "--reasoning: expected auto|on|off");
}

}  // namespace
}  // namespace knap::thoughts_test
