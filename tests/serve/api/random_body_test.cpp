// Random bodies: each is read or refused with 400, whatever its fields have. `make sanitize` runs
// this under the sanitizers.
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "serve/api/chat_body.h"
#include "serve/api/error.h"
#include "serve/api/text_body.h"

namespace knap::random_body_test {
namespace {

constexpr int kVocab = 1000;

// Every field that has a meaning, in requests or in their objects.
const std::vector<std::string> kNames{"model",
                                      "messages",
                                      "prompt",
                                      "max_completion_tokens",
                                      "max_tokens",
                                      "n_predict",
                                      "temperature",
                                      "top_p",
                                      "min_p",
                                      "top_k",
                                      "repeat_penalty",
                                      "repetition_penalty",
                                      "presence_penalty",
                                      "frequency_penalty",
                                      "repeat_last_n",
                                      "seed",
                                      "n",
                                      "stop",
                                      "stream",
                                      "stream_options",
                                      "include_usage",
                                      "logprobs",
                                      "top_logprobs",
                                      "logit_bias",
                                      "ignore_eos",
                                      "cache_prompt",
                                      "response_format",
                                      "json_schema",
                                      "grammar",
                                      "tools",
                                      "tool_choice",
                                      "parallel_tool_calls",
                                      "chat_template_kwargs",
                                      "reasoning_effort",
                                      "reasoning_format",
                                      "add_generation_prompt",
                                      "continue_final_message",
                                      "prediction",
                                      "timings_per_token",
                                      "return_progress",
                                      "echo",
                                      "suffix",
                                      "knap",
                                      "strategy",
                                      "strategy_options",
                                      "draft_max",
                                      "draft_plan",
                                      "draft_width",
                                      "exit_confidence",
                                      "acceptance",
                                      "decisions",
                                      "rounds",
                                      "user",
                                      "best_of",
                                      "type",
                                      "content",
                                      "role",
                                      "text",
                                      "name",
                                      "schema",
                                      "strict",
                                      "function",
                                      "parameters",
                                      "tool_calls",
                                      "tool_call_id",
                                      "arguments",
                                      "1",
                                      "-1",
                                      "99999999999999999999"};

const std::vector<Json> kScalars{nullptr,
                                 true,
                                 false,
                                 0,
                                 1,
                                 -1,
                                 2,
                                 8,
                                 9,
                                 64,
                                 65,
                                 1000,
                                 1000000,
                                 std::numeric_limits<std::int32_t>::max(),
                                 std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::uint64_t>::max(),
                                 0.5,
                                 -0.5,
                                 1.5,
                                 1e30,
                                 -1e308,
                                 5e-324,
                                 "",
                                 "a",
                                 "text",
                                 "user",
                                 "assistant",
                                 "tool",
                                 "system",
                                 "function",
                                 "auto",
                                 "none",
                                 "required",
                                 "content",
                                 "json_object",
                                 "json_schema",
                                 "knapspec",
                                 "ratio",
                                 "width=2,plan=x",
                                 "=",
                                 "\xc3\xa9",
                                 std::string("\0", 1)};

class RandomJson {
  public:
    explicit RandomJson(unsigned seed) : random_(seed) {}

    Json value(int depth) {
        const int kind = number(depth > 0 ? 6 : 4);
        if (kind < 4) {
            return pick(kScalars);
        }
        Json made = kind == 4 ? Json::array() : Json::object();
        for (int i = number(4); i > 0; --i) {
            if (kind == 4) {
                made.push_back(value(depth - 1));
            } else {
                made[pick(kNames)] = value(depth - 1);
            }
        }
        return made;
    }

    // With some fields; a request that lacks the required ones would never get to the others.
    Json body() {
        Json made{{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})},
                  {"prompt", "Hi"}};
        for (int i = number(5); i >= 0; --i) {
            made[pick(kNames)] = value(4);
        }
        return made;
    }

    void damage(std::string& text) {
        for (int i = number(3); i >= 0; --i) {
            text[static_cast<std::size_t>(number(static_cast<int>(text.size())))] =
                static_cast<char>(number(256));
        }
    }

  private:
    int number(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
    template <typename T>
    const T& pick(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(number(static_cast<int>(list.size())))];
    }

    std::mt19937 random_;
};

// True: the body was read. Anything but a refusal with 400 and a reason fails the test.
template <typename Read>
bool is_read(const Read& read) {
    try {
        read();
        return true;
    } catch (const RequestError& error) {
        EXPECT_EQ(error.error().status, 400);
        EXPECT_FALSE(error.error().message.empty());
        return false;
    }
}

TEST(RandomBodies, AreReadOrRefused) {
    int n_read = 0;
    int n_refused = 0;
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        SCOPED_TRACE(seed);
        RandomJson random(seed);
        const Json body = random.body();
        for (const bool is_good : {is_read([&] { read_chat_body(body, {}, kVocab); }),
                                   is_read([&] { read_text_body(body, {}, kVocab); })}) {
            ++(is_good ? n_read : n_refused);
        }
        std::string text = to_text(body);
        random.damage(text);
        is_read([&] { parse_request_json(text); });
    }
    EXPECT_GT(n_read, 1000);
    EXPECT_GT(n_refused, 1000);
}

}  // namespace
}  // namespace knap::random_body_test
