// Answers of /v1/chat/completions from the text of a model with channels.
#include "serve/answer/chat_answer.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_models.h"

namespace knap::chat_answer_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kThought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
constexpr std::string_view kAnswer = "<|channel|>final<|message|>Yes.";

// What a client puts together from the chunks of a stream.
struct Received {
    std::string content;
    std::string reasoning;
    std::string finish;
};

class ChatAnswers : public ::testing::Test {
  protected:
    ChatAnswers() : prompt_(model_.format.render({.messages = {{"user", "a"}}})) {}

    ChatAnswer answer(bool streams) const {
        return ChatAnswer({.format = model_.format, .prompt = prompt_, .streams = streams});
    }
    static JobEnd end(StopReason reason) { return {.result = {.stop = reason}}; }

    // A byte at a time.
    Received stream(const std::string& text, StopReason reason) const {
        ChatAnswer streamed = answer(/*streams=*/true);
        Received received;
        const auto take = [&](const std::vector<Json>& chunks) {
            for (const Json& chunk : chunks) {
                const Json& choice = chunk["choices"][0];
                const Json& delta = choice["delta"];
                received.content += delta.value("content", "");
                received.reasoning += delta.value("reasoning_content", "");
                received.finish = choice["finish_reason"].is_null()
                                      ? received.finish
                                      : choice["finish_reason"].get<std::string>();
            }
        };
        for (const char byte : text) {
            take(streamed.add(0, {.text = std::string(1, byte)}));
            EXPECT_THAT(received.content, Not(HasSubstr("|"))) << "part of a mark";
            EXPECT_THAT(received.reasoning, Not(HasSubstr("<"))) << "part of a mark";
        }
        take(streamed.finish(0, end(reason)));
        return received;
    }

    Json whole(const std::string& text, StopReason reason) const {
        ChatAnswer collected = answer(/*streams=*/false);
        EXPECT_TRUE(collected.add(0, {.text = text}).empty());
        collected.finish(0, end(reason));
        return collected.whole()["choices"][0]["message"];
    }

    test::ChatModel model_{test::kChannelTemplate};
    ChatPrompt prompt_;
};

TEST_F(ChatAnswers, ThoughtsAndContentStreamInFieldsOfTheirOwn) {
    const std::string text = std::string(kThought).append(kAnswer);
    const Received received = stream(text, StopReason::eos);
    EXPECT_EQ(received.reasoning, "Hm.");
    EXPECT_EQ(received.content, "Yes.");
    EXPECT_EQ(received.finish, "stop");
    const Json message = whole(text, StopReason::eos);
    EXPECT_EQ(message["content"], "Yes.");
    EXPECT_EQ(message["reasoning_content"], "Hm.");
}

TEST_F(ChatAnswers, AThoughtMayBeCut) {
    const Received received = stream("<|channel|>analysis<|message|>Hm", StopReason::length);
    EXPECT_EQ(received.reasoning, "Hm");
    EXPECT_EQ(received.content, "");
    EXPECT_EQ(received.finish, "length");
}

// Small models leave the format of their template.
TEST_F(ChatAnswers, TextOutOfFormatIsContent) {
    for (const StopReason reason : {StopReason::eos, StopReason::length}) {
        EXPECT_EQ(stream("Yes, <b>.", reason).content, "Yes, <b>.");
        EXPECT_EQ(whole("Yes, <b>.", reason)["content"], "Yes, <b>.");
    }
}

}  // namespace
}  // namespace knap::chat_answer_test
