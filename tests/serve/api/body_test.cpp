// Bodies of requests: what they mean, and how bad ones are refused.
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api/chat_body.h"
#include "serve/api/error.h"
#include "serve/api/text_body.h"

namespace knap::body_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kVocab = 1000;

GenerationDefaults defaults() {
    return {.options = {.sampling = {.temperature = 0.8f, .seed = 5}}, .has_seed = true};
}

ChatBody chat(const std::string& fields) {
    return read_chat_body(parse_request_json(R"({"messages":[{"role":"user","content":"Hi"}])" +
                                             (fields.empty() ? "" : "," + fields) + "}"),
                          defaults(), kVocab);
}

TextBody text(const std::string& fields) {
    return read_text_body(parse_request_json("{" + fields + "}"), defaults(), kVocab);
}

GenerateOptions options(const std::string& fields) {
    return chat(fields).generation.options;
}

template <typename Read>
ApiError refusal(Read read) {
    try {
        read();
    } catch (const RequestError& error) {
        return error.error();
    }
    return {.status = 200};
}

// The field that is at fault.
std::string bad_chat(const std::string& fields) {
    const ApiError error = refusal([&] { chat(fields); });
    EXPECT_EQ(error.status, 400) << fields;
    return error.param.value_or("");
}

std::string bad_messages(const std::string& messages) {
    const ApiError error = refusal([&] {
        read_chat_body(parse_request_json(R"({"messages":)" + messages + "}"), defaults(), kVocab);
    });
    EXPECT_EQ(error.status, 400) << messages;
    return error.param.value_or("");
}

TEST(ChatBody, AbsentAndNullFieldsMeanTheDefaults) {
    for (const char* fields : {"", R"("temperature":null,"seed":null,"stop":null,"knap":null)"}) {
        const ChatBody body = chat(fields);
        EXPECT_EQ(body.generation.options.sampling, defaults().options.sampling);
        EXPECT_EQ(body.generation.options.speculation, SpeculationOptions());
        EXPECT_EQ(body.generation.options.n_predict, -1);
        EXPECT_FALSE(body.generation.streams);
        EXPECT_TRUE(body.chat.open_answer);
        EXPECT_THAT(body.generation.ignored, IsEmpty());
    }
}

TEST(ChatBody, ReadsSampling) {
    const SamplingOptions sampling =
        options(R"("temperature":0,"top_p":0.5,"top_k":3,"min_p":0,"repeat_penalty":1.5,
                   "presence_penalty":-2,"frequency_penalty":2,"repeat_last_n":-1,"seed":9)")
            .sampling;
    EXPECT_EQ(sampling.temperature, 0.0f);
    EXPECT_EQ(sampling.top_p, 0.5f);
    EXPECT_EQ(sampling.top_k, 3);
    EXPECT_EQ(sampling.min_p, 0.0f);
    EXPECT_EQ(sampling.repeat_penalty, 1.5f);
    EXPECT_EQ(sampling.presence_penalty, -2.0f);
    EXPECT_EQ(sampling.frequency_penalty, 2.0f);
    EXPECT_EQ(sampling.repeat_last_n, -1);
    EXPECT_EQ(sampling.seed, 9u);
}

TEST(ChatBody, MinusOneIsARandomSeed) {
    EXPECT_NE(options(R"("seed":-1)").sampling.seed, options(R"("seed":-1)").sampling.seed);
    EXPECT_LT(options(R"("seed":-1)").sampling.seed, std::uint64_t{1} << 53);
}

TEST(ChatBody, TheFirstLimitOfTheAnswerWins) {
    EXPECT_EQ(options(R"("max_tokens":7,"max_completion_tokens":5,"n_predict":9)").n_predict, 5);
    EXPECT_EQ(options(R"("n_predict":9,"max_tokens":7)").n_predict, 7);
    EXPECT_EQ(options(R"("n_predict":0)").n_predict, 0);
}

TEST(ChatBody, ReadsLogitBias) {
    constexpr float kBan = -std::numeric_limits<float>::infinity();
    const std::vector<std::pair<Token, float>> expected = {{7, 1.5f}, {8, kBan}};
    EXPECT_EQ(options(R"("logit_bias":{"7":1.5,"8":-100})").sampling.logit_bias, expected);
    EXPECT_EQ(options(R"("logit_bias":[[7,1.5],[8,false]])").sampling.logit_bias, expected);
}

TEST(ChatBody, NumbersOutOfRangeAreRefused) {
    for (const char* fields : {R"("temperature":2.1)",
                               R"("temperature":-0.1)",

                               R"("top_p":1.1)",
                               R"("top_k":-1)",
                               R"("top_k":1.5)",
                               R"("top_k":99999999999)",
                               R"("min_p":-0.1)",
                               R"("repeat_penalty":0)",
                               R"("presence_penalty":3)",
                               R"("frequency_penalty":-3)",
                               R"("repeat_last_n":-2)",
                               R"("n":0)",
                               R"("n":9)",
                               R"("n":1000000)",
                               R"("n":18446744073709551615)",
                               R"("seed":1.5)",
                               R"("seed":"1")",
                               R"("max_tokens":-2)",
                               R"("max_tokens":9223372036854775807)",
                               R"("stream":1)",
                               R"("logit_bias":{"1000":1})",
                               R"("logit_bias":{"-1":1})",
                               R"("logit_bias":{"x":1})",
                               R"("logit_bias":{"1":101})",
                               R"("logit_bias":[[1]])",
                               R"("logit_bias":3)"}) {
        const std::string field = bad_chat(fields);
        EXPECT_TRUE(std::string(fields).starts_with("\"" + field + "\""))
            << fields << " blamed on " << field;
    }
}

TEST(ChatBody, LongValuesAreNotRepeated) {
    const std::string text = concat('"', std::string(100'000, 'x'), '"');
    for (const std::string& field :
         {concat("\"temperature\":", text), concat("\"logit_bias\":{\"7\":", text, "}"),
          concat("\"logit_bias\":{", text, ":1}")}) {
        const ApiError error = refusal([&] { chat(field); });
        EXPECT_EQ(error.status, 400);
        EXPECT_LT(error.message.size(), 200u) << field.substr(0, 40);
    }
}

TEST(ChatBody, ReadsStopStrings) {
    EXPECT_THAT(options(R"("stop":"a")").stop, ElementsAre("a"));
    EXPECT_THAT(options(R"("stop":["a","bc"])").stop, ElementsAre("a", "bc"));
    EXPECT_EQ(bad_chat(R"("stop":"")"), "stop");
    EXPECT_EQ(bad_chat(R"("stop":[1])"), "stop");
    EXPECT_EQ(bad_chat("\"stop\":\"" + std::string(257, 'x') + "\""), "stop");
    std::string many = "\"stop\":[\"x\"";
    for (int i = 0; i < 16; ++i) {
        many += ",\"x\"";
    }
    EXPECT_EQ(bad_chat(many + "]"), "stop");
}

TEST(ChatBody, ReadsWhatToStream) {
    const GenerationRequest request =
        chat(R"("stream":true,"stream_options":{"include_usage":true})").generation;
    EXPECT_TRUE(request.streams);
    EXPECT_TRUE(request.includes_usage);
    EXPECT_EQ(bad_chat(R"("stream_options":{"include_usage":true})"), "stream_options");
}

TEST(ChatBody, LogprobsNeedTheirSwitch) {
    EXPECT_EQ(options(R"("logprobs":true)").n_logprobs, 0);
    EXPECT_EQ(options(R"("logprobs":true,"top_logprobs":20)").n_logprobs, 20);
    EXPECT_EQ(options("").n_logprobs, -1);
    EXPECT_EQ(bad_chat(R"("top_logprobs":2)"), "top_logprobs");
    EXPECT_EQ(bad_chat(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs");
}

TEST(ChatBody, ListsWhatItIgnores) {
    EXPECT_THAT(chat(R"("user":"me","colour":1,"metadata":{})").generation.ignored,
                ElementsAre("user", "metadata", "colour"));
}

TEST(ChatBody, RefusesWhatWouldChangeTheAnswer) {
    for (const char* fields : {R"("best_of":2)", R"("mirostat":1)", R"("samplers":["top_k"])",
                               R"("functions":[{}])", R"("typical_p":0.5)"}) {
        const ApiError error = refusal([&] { chat(fields); });
        EXPECT_EQ(error.code, "unsupported_parameter") << fields;
    }
    EXPECT_NO_THROW(chat(R"("best_of":1,"mirostat":0,"typical_p":1.0,"functions":[],"lora":[])"));
}

TEST(ChatBody, ReadsHowToDraft) {
    const SpeculationOptions speculation =
        options(R"("knap":{"strategy":"static","draft_max":4,"draft_plan":"m1=skip",
                   "draft_width":2,"acceptance":"ratio"})")
            .speculation;
    EXPECT_EQ(speculation.strategy, "static");
    EXPECT_EQ(speculation.draft_max, 4);
    EXPECT_EQ(speculation.acceptance, AcceptanceRule::ratio);
    EXPECT_EQ(speculation.settings, (StrategySettings{{"plan", "m1=skip"}, {"width", "2"}}));
    EXPECT_EQ(options(R"("knap":{"strategy_options":"a=1,b=c"})").speculation.settings,
              (StrategySettings{{"a", "1"}, {"b", "c"}}));
    EXPECT_EQ(options(R"("knap":{"strategy_options":{"a":1,"b":true}})").speculation.settings,
              (StrategySettings{{"a", "1"}, {"b", "on"}}));
    for (const char* own : {"strategy\":\"magic", "plan_file\":\"/etc/passwd",
                            "assume_acceptance\":\"1", "acceptance\":\"all", "draft_max\":\"4"}) {
        const std::string field = bad_chat(concat(R"("knap":{")", own, R"("})"));
        EXPECT_THAT(concat("knap.", own), HasSubstr(field));
        EXPECT_TRUE(field.starts_with("knap.")) << field;
    }
    EXPECT_EQ(bad_chat(R"("knap":{"draft_max":65})"), "knap.draft_max");
    EXPECT_EQ(bad_chat(R"("knap":{"draft_width":17})"), "knap.draft_width");
}

TEST(ChatBody, AnotherStrategyDoesNotInheritSettings) {
    GenerationDefaults own = defaults();
    own.options.speculation = {.strategy = "static", .settings = {{"plan", "m1=skip"}}};
    const Json body = parse_request_json(
        R"({"messages":[{"role":"user","content":"Hi"}],"knap":{"strategy":"lookup"}})");
    EXPECT_EQ(read_chat_body(body, own, kVocab).generation.options.speculation,
              (SpeculationOptions{.strategy = "lookup"}));
}

TEST(ChatBody, ReadsPredictions) {
    EXPECT_EQ(chat(R"("prediction":{"type":"content","content":"abc"})").generation.prediction,
              "abc");
    EXPECT_EQ(chat(R"("prediction":{"type":"content","content":[{"type":"text","text":"a"},
                      {"type":"text","text":"b"}]})")
                  .generation.prediction,
              "a\nb");
    EXPECT_EQ(bad_chat(R"("prediction":{"type":"other","content":"x"})"), "prediction.type");
    EXPECT_EQ(bad_chat(R"("prediction":{"type":"content"})"), "prediction.content");
}

TEST(ChatBody, ReadsMessages) {
    const ChatRequest request = read_chat_body(parse_request_json(R"({"messages":[
            {"role":"developer","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"One"},{"type":"text","text":"two"}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
             "function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c1","content":"3"}]})"),
                                               defaults(), kVocab)
                                    .chat;
    ASSERT_EQ(request.messages.size(), 4u);
    EXPECT_EQ(request.messages[0].role, "system");
    EXPECT_EQ(request.messages[1].content, "One\ntwo");
    EXPECT_EQ(request.messages[2].tool_calls.at(0).name, "f");
    EXPECT_EQ(request.messages[3].tool_call_id, "c1");
}

TEST(ChatBody, RefusesBadMessages) {
    EXPECT_EQ(bad_messages("[]"), "messages");
    EXPECT_EQ(bad_messages("3"), "messages");
    EXPECT_EQ(bad_messages("[3]"), "messages[0]");
    EXPECT_EQ(bad_messages(R"([{"role":"king","content":"x"}])"), "messages[0].role");
    EXPECT_EQ(bad_messages(R"([{"role":"user"}])"), "messages[0].content");
    EXPECT_EQ(bad_messages(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
              "messages[0].content[0].type");
    EXPECT_EQ(bad_messages(R"([{"role":"user","content":"x"},{"role":"tool","content":"x"}])"),
              "messages[1].tool_call_id");
    EXPECT_EQ(bad_messages(R"([{"role":"assistant","content":"a"},
                               {"role":"assistant","content":"b"}])"),
              "messages");
}

TEST(ChatBody, AFinalAnswerIsContinued) {
    const auto request = [](const std::string& more) {
        return read_chat_body(parse_request_json(R"({"messages":[{"role":"user","content":"Hi"},
                                  {"role":"assistant","content":"He"}])" +
                                                 more + "}"),
                              defaults(), kVocab)
            .chat;
    };
    EXPECT_TRUE(request("").continue_final);
    EXPECT_FALSE(request(R"(,"add_generation_prompt":true)").continue_final);
    EXPECT_TRUE(request(R"(,"continue_final_message":true)").continue_final);
    EXPECT_EQ(bad_chat(R"("continue_final_message":true)"), "continue_final_message");
    EXPECT_EQ(bad_chat(R"("continue_final_message":true,"add_generation_prompt":true)"),
              "continue_final_message");
}

constexpr const char* kTools = R"("tools":[
    {"type":"function","function":{"name":"f","parameters":{"type":"object"}}},
    {"type":"function","function":{"name":"g"}}])";

TEST(ChatBody, ReadsTools) {
    EXPECT_EQ(chat(kTools).chat.tools.size(), 2u);
    const ChatRequest named =
        chat(concat(kTools, R"(,"tool_choice":{"type":"function","function":{"name":"g"}})")).chat;
    ASSERT_EQ(named.tools.size(), 1u);
    EXPECT_EQ(named.tools[0].name, "g");
    EXPECT_EQ(named.tool_choice, ToolChoice::required);
    EXPECT_EQ(
        bad_chat(concat(kTools, R"(,"tool_choice":{"type":"function","function":{"name":"h"}})")),
        "tool_choice");
    EXPECT_EQ(bad_chat(R"("tool_choice":"required")"), "tool_choice");
    EXPECT_EQ(bad_chat(R"("tools":[{"type":"search"}])"), "tools[0].type");
    EXPECT_EQ(bad_chat(R"("tools":[{"type":"function","function":{}}])"), "tools[0].function.name");
}

TEST(ChatBody, OneConstraintAtMost) {
    EXPECT_EQ(chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"n",
                      "schema":{"type":"array"}}})")
                  .chat.json_schema,
              R"({"type":"array"})");
    EXPECT_EQ(chat(R"("response_format":{"type":"text"})").chat.json_schema, "");
    EXPECT_EQ(chat(R"("grammar":"root ::= \"a\"")").chat.grammar, "root ::= \"a\"");
    EXPECT_EQ(bad_chat(R"("response_format":{"type":"json_object"},"grammar":"root ::= \"a\"")"),
              "grammar");
    EXPECT_EQ(bad_chat(R"("json_schema":{},"grammar":"root ::= \"a\"")"), "json_schema");
    EXPECT_EQ(bad_chat(R"("response_format":{"type":"xml"})"), "response_format.type");
    EXPECT_EQ(bad_chat(R"("response_format":{"type":"json_schema"})"),
              "response_format.json_schema");
    EXPECT_EQ(bad_chat(concat(kTools, R"(,"response_format":{"type":"json_object"})")), "tools");
}

TEST(ChatBody, TemplateArgumentsAreScalars) {
    const ChatRequest request =
        chat(R"("chat_template_kwargs":{"enable_thinking":false,"tone":"dry"})").chat;
    EXPECT_FALSE(request.enables_thinking);
    EXPECT_EQ(request.arguments.at("tone"), "\"dry\"");
    for (const char* name : {"messages", "tools", "chat_template"}) {
        EXPECT_EQ(bad_chat(concat(R"("chat_template_kwargs":{")", name, R"(":"x"})")),
                  concat("chat_template_kwargs.", name));
    }
    EXPECT_EQ(bad_chat(R"("chat_template_kwargs":{"a":[1]})"), "chat_template_kwargs.a");
    EXPECT_EQ(bad_chat(R"("chat_template_kwargs":{"enable_thinking":1})"),
              "chat_template_kwargs.enable_thinking");
    EXPECT_FALSE(chat(R"("reasoning_effort":"none")").chat.enables_thinking);
}

TEST(TextBody, ReadsEveryFormOfPrompt) {
    EXPECT_EQ(text(R"("prompt":"a")").prompts, (std::vector<TextPrompt>{"a"}));
    EXPECT_EQ(text(R"("prompt":["a","b"])").prompts, (std::vector<TextPrompt>{"a", "b"}));
    EXPECT_EQ(text(R"("prompt":[1,2])").prompts,
              (std::vector<TextPrompt>{std::vector<Token>{1, 2}}));
    EXPECT_EQ(text(R"("prompt":[[1],[2]])").prompts,
              (std::vector<TextPrompt>{std::vector<Token>{1}, std::vector<Token>{2}}));
    for (const char* fields :
         {"", R"("prompt":"")", R"("prompt":[])", R"("prompt":[""])", R"("prompt":3)",
          R"("prompt":[1000])", R"("prompt":[-1])", R"("prompt":[[]])", R"("prompt":[true])"}) {
        EXPECT_EQ(refusal([&] { text(fields); }).param, "prompt") << fields;
    }
}

TEST(TextBody, LimitsAllAnswersOfARequest) {
    std::string prompts = R"("prompt":["a","a","a","a","a"])";
    EXPECT_NO_THROW(text(prompts + R"(,"n":6)"));
    EXPECT_EQ(refusal([&] { text(prompts + R"(,"n":7)"); }).param, "n");
}

TEST(TextBody, RefusesWhatItCannotDo) {
    EXPECT_EQ(refusal([] { text(R"("prompt":"a","suffix":"b")"); }).param, "suffix");
    EXPECT_EQ(refusal([] { text(R"("prompt":"a","echo":true,"logprobs":1)"); }).param, "echo");
    EXPECT_EQ(text(R"("prompt":"a","logprobs":3)").generation.options.n_logprobs, 3);
    EXPECT_TRUE(text(R"("prompt":"a","echo":true)").echoes);
}

}  // namespace
}  // namespace knap::body_test
