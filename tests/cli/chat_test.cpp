// `knap chat` with input from a pipe: answers go to standard output, everything else to standard
// error.
#include "cli/command.h"

namespace knap::chat_test {
namespace {

ProcessResult chat(const std::string& lines, const Words& flags = {}) {
    ProcessRequest request;
    request.arguments = on_tiny_model("chat") + flags;
    request.input = lines;
    return run_knap(request);
}

// Every answer is one line, "AAA".
const Words kThreeLetters{"-n", "3", "--logit-bias", "65+1000"};

TEST(Chat, AnswersEachLineAndEndsWithItsInput) {
    const auto result = chat("hello\nagain", kThreeLetters);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "AAA\nAAA\n");
    EXPECT_EQ(result.error, "");
}

TEST(Chat, ComputesOnlyTheNewTurn) {
    // <|im_start|>user.hello<|im_end|>.<|im_start|>assistant. is 20 tokens. The second prompt
    // consists of these, the answer of 3, and the new turn. All but the answer's last token and the
    // new turn are in the cache.
    const auto result = chat("hello\nhello\n/stats\n", kThreeLetters);
    EXPECT_THAT(result.error, testing::HasSubstr("last answer  45 prompt tokens ("));
    EXPECT_THAT(result.error, testing::HasSubstr(", 22 reused), 3 generated"));
    EXPECT_THAT(result.error, testing::HasSubstr("context      48 of 1024 tokens"));
}

TEST(Chat, ContinuesAsIfTheWholeConversationWereThePrompt) {
    // The model chooses among three letters, each a token, so the text has only one tokenization.
    const Words flags{"-n",           "6",      "--logit-bias", "65+100",
                      "--logit-bias", "66+100", "--logit-bias", "67+100"};
    const auto talked = chat("hello\nwhy?\n", flags).output;
    const auto first = talked.substr(0, talked.find('\n'));
    const std::string turns =
        "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n" + first +
        "<|im_end|>\n<|im_start|>user\nwhy?<|im_end|>\n<|im_start|>assistant\n";
    const std::string at_once = plain_json(Words{"--raw", "-p", turns} + flags)["text"];
    EXPECT_EQ(talked.substr(first.size() + 1), at_once + "\n");
}

TEST(Chat, ResetForgetsTheConversation) {
    const auto result = chat("hello\n/reset\n/stats\nhello\n/stats\n", kThreeLetters);
    EXPECT_EQ(result.output, "AAA\nAAA\n");
    EXPECT_THAT(result.error, testing::HasSubstr("Started a new conversation.\nNo answer yet.\n"));
    EXPECT_THAT(result.error, testing::HasSubstr("last answer  20 prompt tokens ("));
    EXPECT_THAT(result.error, testing::Not(testing::HasSubstr("reused), 3")));
}

TEST(Chat, HelpExitAndUnknownCommands) {
    const auto result = chat("/help\n\n/dance\n/exit\nhello\n");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "");
    for (const char* text : {"/reset", "/stats", "/exit", "Unknown command /dance"}) {
        EXPECT_THAT(result.error, testing::HasSubstr(text));
    }
}

TEST(Chat, ReportsAConversationThatDoesNotFitTheContext) {
    const auto result = chat("hello\nhello\n/reset\nhello\n", kThreeLetters + Words{"-c", "40"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output,
              "AAA\nAAA\n");  // the second question is refused, the third starts over
    EXPECT_THAT(result.error,
                testing::HasSubstr("does not fit the context: 45 tokens, and 40 fit. Type /reset"));
}

TEST(Chat, ReportsAFullContext) {
    const auto result = chat("hello\n", {"-c", "32", "--logit-bias", "65+1000"});
    EXPECT_EQ(result.output, std::string(12, 'A') + "\n");
    EXPECT_THAT(result.error, testing::HasSubstr("The context of 32 tokens is full."));
}

TEST(Chat, AStopStringIsNotPartOfTheConversation) {
    const auto result =
        chat("hello\nhello\n/stats\n", {"--stop", "AAA", "--logit-bias", "65+1000"});
    EXPECT_EQ(result.output, "");  // nothing comes before the stop string
    // The same two turns with empty answers: 20, and 22 more.
    EXPECT_THAT(result.error, testing::HasSubstr("last answer  42 prompt tokens ("));
}

TEST(Chat, SystemMessageComesFirst) {
    const auto result = chat("hello\n/stats\n", kThreeLetters + Words{"--system", "xyz"});
    // <|im_start|>system.xyz<|im_end|>. before the 20 tokens of the question.
    EXPECT_THAT(result.error, testing::Not(testing::HasSubstr("last answer  20 prompt tokens (")));
    EXPECT_THAT(result.error, testing::HasSubstr("prompt tokens ("));
}

TEST(Chat, NeedsATemplate) {
    const auto model = patched_model("chat_no_template.gguf", "tokenizer.chat_template",
                                     "tokenizer.chat_templatX");
    expect_error(run_knap({"chat", "-m", model.string()}), 1,
                 "choose one with --chat-template NAME");
    expect_error(run_knap(on_tiny_model("chat") + Words{"--chat-template", "nonesuch"}), 1,
                 "'nonesuch'");
}

}  // namespace
}  // namespace knap::chat_test
