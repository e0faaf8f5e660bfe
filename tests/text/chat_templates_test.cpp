// Chat templates of the architectures that knap runs: what they make of a conversation, and what is
// made of their answers. Those that are in llama.cpp's sources are read from there; of others the
// part that matters is written out here.
#include <filesystem>
#include <ostream>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "support/llama_sources.h"
#include "text/chat_models.h"

namespace knap::chat_templates_test {
namespace {

namespace fs = std::filesystem;
using test::ChatModel;

const std::vector<ChatMessage> kConversation{
    {"system", "Be brief."}, {"user", "Hello"}, {"assistant", "Hi"}, {"user", "Why?"}};

// The folder of templates in the sources of llama.cpp; empty: not there.
fs::path templates_folder() {
    const fs::path sources = test::llama_sources();
    return sources.empty() ? fs::path() : sources / "models" / "templates";
}

struct StoredTemplate {
    const char* file;
    const char* text;      // of the conversation, without dates
    const char* name;      // of the format
    const char* thoughts;  // an answer with a thought, "Hm.", and "Yes."; null: has none
};

void PrintTo(const StoredTemplate& stored, std::ostream* out) {
    *out << stored.file;
}

template <typename Stored>
class FromSources : public ::testing::TestWithParam<Stored> {
  protected:
    void SetUp() override {
        if (templates_folder().empty()) {
            GTEST_SKIP() << "no sources of llama.cpp (deps/setup sources)";
        }
    }

    static ChatModel model() {
        const fs::path path = templates_folder() / concat(FromSources::GetParam().file, ".jinja");
        return ChatModel(read_text_file(path, "template").c_str());
    }
};

using StoredTemplates = FromSources<StoredTemplate>;

// Marks of thoughts and tools, or parts of one.
void expect_no_marks(const std::string& text, std::size_t n) {
    EXPECT_THAT(text, testing::Not(testing::ContainsRegex("[<[|]"))) << "after " << n;
}

TEST_P(StoredTemplates, WriteAConversation) {
    const std::string text = model().text({.messages = kConversation});
    EXPECT_EQ(std::regex_replace(text, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"), "DATE"),
              GetParam().text);
    EXPECT_EQ(model().format.name(), GetParam().name);
}

TEST_P(StoredTemplates, SeparateThoughtsFromAnswers) {
    const ChatModel chat = model();
    const ChatPrompt prompt = chat.format.render({.messages = {{"user", "Why?"}}});
    const bool thinks = GetParam().thoughts != nullptr;
    EXPECT_EQ(chat.format.is_plain(prompt), !thinks);
    EXPECT_EQ(chat.format.parse(prompt, "Yes.", false).content, "Yes.");
    if (!thinks) {
        return;
    }
    const std::string answer = GetParam().thoughts;
    const ChatMessage whole = chat.format.parse(prompt, answer, false);
    EXPECT_THAT(whole.reasoning, testing::HasSubstr("Hm."));
    EXPECT_THAT(whole.content, testing::EndsWith("Yes."));
    for (std::size_t n = 0; n <= answer.size(); ++n) {
        const ChatMessage part = chat.format.parse(prompt, answer.substr(0, n), true);
        EXPECT_THAT(whole.reasoning, testing::StartsWith(part.reasoning)) << n;
        EXPECT_THAT(whole.content, testing::StartsWith(part.content)) << n;
        expect_no_marks(part.reasoning, n);
        expect_no_marks(part.content, n);
    }
}

constexpr const char* kGraniteText =
    "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n"
    "<|start_of_role|>user<|end_of_role|>Hello<|end_of_text|>\n"
    "<|start_of_role|>assistant<|end_of_role|>Hi<|end_of_text|>\n"
    "<|start_of_role|>user<|end_of_role|>Why?<|end_of_text|>\n"
    "<|start_of_role|>assistant<|end_of_role|>";

INSTANTIATE_TEST_SUITE_P(
    Checkpoints,
    StoredTemplates,
    ::testing::Values(
        StoredTemplate{"openai-gpt-oss-120b",
                       "<|start|>system<|message|>You are ChatGPT, a large language model trained "
                       "by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: DATE\n\nReasoning: "
                       "medium\n\n# Valid channels: analysis, commentary, final. Channel must be "
                       "included for every message.<|end|><|start|>developer<|message|># "
                       "Instructions\n\nBe brief.\n\n<|end|><|start|>user<|message|>Hello<|end|>"
                       "<|start|>assistant<|channel|>final<|message|>Hi<|end|>"
                       "<|start|>user<|message|>Why?<|end|><|start|>assistant",
                       "jinja",
                       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
                       "<|message|>Yes."},
        StoredTemplate{"HuggingFaceTB-SmolLM3-3B",
                       "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
                       "Reasoning Mode: /think\n\n## Custom Instructions\n\nBe brief.\n\n"
                       "<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
                       "Hi<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n",
                       "jinja", "<think>\nHm.\n</think>\nYes."},
        StoredTemplate{"ByteDance-Seed-OSS",
                       "<seed:bos>system\nBe brief.<seed:eos><seed:bos>user\nHello<seed:eos>"
                       "<seed:bos>assistant\nHi<seed:eos><seed:bos>user\nWhy?<seed:eos>"
                       "<seed:bos>assistant\n",
                       "seed_oss", "<seed:think>Hm.</seed:think>Yes."},
        StoredTemplate{"google-gemma-2-2b-it",
                       "<s><start_of_turn>user\nBe brief.\nHello<end_of_turn>\n"
                       "<start_of_turn>model\nHi<end_of_turn>\n<start_of_turn>user\nWhy?"
                       "<end_of_turn>\n<start_of_turn>model\n",
                       "gemma", nullptr},
        StoredTemplate{"ibm-granite-granite-3.3-2B-Instruct", kGraniteText, "granite",
                       "<think>Hm.</think>Yes."},
        StoredTemplate{"ibm-granite-granite-4.0", kGraniteText, "granite", nullptr},
        StoredTemplate{"ibm-granite-granite-4.1", kGraniteText, "granite", nullptr},
        StoredTemplate{"microsoft-Phi-3.5-mini-instruct",
                       "<|system|>\nBe brief.<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\n"
                       "Hi<|end|>\n<|user|>\nWhy?<|end|>\n<|assistant|>\n",
                       "phi3", nullptr},
        StoredTemplate{"mistralai-Ministral-3-14B-Reasoning-2512",
                       "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hello[/INST]Hi</s>"
                       "[INST]Why?[/INST]",
                       "mistral-v7-tekken", "[THINK]Hm.[/THINK]Yes."},
        StoredTemplate{"Mistral-Small-3.2-24B-Instruct-2506",
                       "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hello[/INST]Hi</s>"
                       "[INST]Why?[/INST]",
                       "mistral-v7-tekken", nullptr},
        StoredTemplate{"mistralai-Mistral-Nemo-Instruct-2407",
                       "<s>[INST]Hello[/INST]Hi</s>[INST]Be brief.\n\nWhy?[/INST]",
                       "mistral-v3-tekken", nullptr},
        StoredTemplate{"Qwen3-Coder",
                       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello"
                       "<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\nWhy?"
                       "<|im_end|>\n<|im_start|>assistant\n",
                       "chatml", nullptr},
        StoredTemplate{"Qwen-Qwen3-0.6B",
                       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello"
                       "<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\nWhy?"
                       "<|im_end|>\n<|im_start|>assistant\n",
                       "chatml", "<think>\nHm.\n</think>\n\nYes."}));

// An answer that calls get_weather for Bonn, as a model of this template writes it.
struct StoredCall {
    const char* file;
    const char* answer;
};

void PrintTo(const StoredCall& stored, std::ostream* out) {
    *out << stored.file;
}

using StoredCalls = FromSources<StoredCall>;

TEST_P(StoredCalls, AreSeparatedFromTheAnswer) {
    const ChatModel chat = model();
    const ChatPrompt prompt = chat.format.render(
        {.messages = {{"user", "Rain?"}},
         .tools = {{"get_weather", "Tells the weather.",
                    R"({"type":"object","properties":{"city":{"type":"string"}},)"
                    R"("required":["city"]})"}}});
    EXPECT_THAT(prompt.text, testing::HasSubstr("get_weather"));
    const std::string answer = GetParam().answer;
    const ChatMessage whole = chat.format.parse(prompt, answer, false);
    EXPECT_EQ(whole.content, "");
    ASSERT_EQ(whole.tool_calls.size(), 1u);
    EXPECT_EQ(whole.tool_calls[0].name, "get_weather");
    EXPECT_EQ(nlohmann::json::parse(whole.tool_calls[0].arguments),
              nlohmann::json({{"city", "Bonn"}}));
    for (std::size_t n = 0; n <= answer.size(); ++n) {
        const ChatMessage part = chat.format.parse(prompt, answer.substr(0, n), true);
        expect_no_marks(part.content, n);
        expect_no_marks(part.reasoning, n);
    }
    EXPECT_EQ(chat.format.parse(prompt, "It is dry.", false).content, "It is dry.");
}

constexpr const char* kTaggedCall =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>";

INSTANTIATE_TEST_SUITE_P(
    Checkpoints,
    StoredCalls,
    ::testing::Values(
        StoredCall{"openai-gpt-oss-120b",
                   R"(<|channel|>commentary to=functions.get_weather <|constrain|>json)"
                   R"(<|message|>{"city": "Bonn"})"},
        StoredCall{"ByteDance-Seed-OSS",
                   "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Bonn</parameter>\n"
                   "</function>\n</seed:tool_call>"},
        StoredCall{"ibm-granite-granite-4.0", kTaggedCall},
        StoredCall{"ibm-granite-granite-4.1", kTaggedCall},
        StoredCall{"mistralai-Ministral-3-14B-Reasoning-2512",
                   R"([TOOL_CALLS]get_weather[ARGS]{"city": "Bonn"})"},
        StoredCall{"Qwen3-Coder",
                   "<tool_call>\n<function=get_weather>\n<parameter=city>\nBonn\n</parameter>\n"
                   "</function>\n</tool_call>"},
        StoredCall{"Qwen-Qwen3-0.6B", kTaggedCall}));

// The part of a template that writes messages, and what it writes.
struct ShortTemplate {
    const char* checkpoint;
    const char* source;
    const char* text;
};

void PrintTo(const ShortTemplate& written, std::ostream* out) {
    *out << written.checkpoint;
}

class ShortTemplates : public ::testing::TestWithParam<ShortTemplate> {};

TEST_P(ShortTemplates, WriteAConversation) {
    EXPECT_EQ(ChatModel(GetParam().source).text({.messages = kConversation}), GetParam().text);
}

// libllama takes some of them for formats with other line breaks.
INSTANTIATE_TEST_SUITE_P(
    Checkpoints,
    ShortTemplates,
    ::testing::Values(
        ShortTemplate{"Phi-4-mini",
                      "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + "
                      "'<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' "
                      "}}{% else %}{{ eos_token }}{% endif %}",
                      "<|system|>Be brief.<|end|><|user|>Hello<|end|><|assistant|>Hi<|end|>"
                      "<|user|>Why?<|end|><|assistant|>"},
        ShortTemplate{"Phi-4",
                      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '<|im_sep|>' + "
                      "m['content'] + '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}"
                      "{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
                      "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>"
                      "Hello<|im_end|><|im_start|>assistant<|im_sep|>Hi<|im_end|><|im_start|>user"
                      "<|im_sep|>Why?<|im_end|><|im_start|>assistant<|im_sep|>"},
        ShortTemplate{"OLMo 2",
                      "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + "
                      "m['content'] + (eos_token if m['role'] == 'assistant' else '') + '\\n' }}"
                      "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif "
                      "%}",
                      "<s><|system|>\nBe brief.\n<|user|>\nHello\n<|assistant|>\nHi</s>\n<|user|>\n"
                      "Why?\n<|assistant|>\n"},
        ShortTemplate{"GLM-4-0414",
                      "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}"
                      "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
                      "[gMASK]<sop><|system|>\nBe brief.<|user|>\nHello<|assistant|>\nHi<|user|>\n"
                      "Why?<|assistant|>\n"},
        ShortTemplate{"Gemma 3",
                      "{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}{%- set first = "
                      "messages[0]['content'] + '\\n\\n' -%}{%- set rest = messages[1:] -%}{%- "
                      "endif -%}{%- for m in rest -%}{{ '<start_of_turn>' + ('model' if m['role'] "
                      "== 'assistant' else m['role']) + '\\n' + (first if loop.first else '') + "
                      "m['content'] | trim + '<end_of_turn>\\n' }}{%- endfor -%}{%- if "
                      "add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}",
                      "<s><start_of_turn>user\nBe brief.\n\nHello<end_of_turn>\n<start_of_turn>"
                      "model\nHi<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n"
                      "<start_of_turn>model\n"},
        ShortTemplate{"EXAONE 4",
                      "{% for m in messages %}{{ '[|' + m.role + '|]\\n' + m.content + "
                      "'[|endofturn|]\\n' }}{% endfor %}{% if add_generation_prompt %}"
                      "{{ '[|assistant|]\\n' }}{% endif %}",
                      "[|system|]\nBe brief.[|endofturn|]\n[|user|]\nHello[|endofturn|]\n"
                      "[|assistant|]\nHi[|endofturn|]\n[|user|]\nWhy?[|endofturn|]\n"
                      "[|assistant|]\n"},
        ShortTemplate{"ERNIE 4.5",
                      "{{- bos_token -}}{%- for m in messages -%}{%- if m.role == 'system' -%}"
                      "{{- m.content + '\\n' -}}{%- elif m.role == 'user' -%}{{- 'User: ' + "
                      "m.content + '\\n' -}}{%- else -%}{{- 'Assistant: ' + m.content + eos_token "
                      "-}}{%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}{{- "
                      "'Assistant: ' -}}{%- endif -%}",
                      "<s>Be brief.\nUser: Hello\nAssistant: Hi</s>User: Why?\nAssistant: "}));

TEST(TemplateNames, AreThoseOfWhatIsWritten) {
    // libllama would take both for mistral-v7, by their marks.
    EXPECT_EQ(ChatModel("{% for m in messages %}{{ '[INST] ' + m.content + '[/INST]' if m.role == "
                        "'user' else '[SYSTEM_PROMPT] ' + m.content + '[/SYSTEM_PROMPT]' if m.role "
                        "== 'system' else ' ' + m.content + '</s>' }}{% endfor %}")
                  .format.name(),
              "mistral-v7");
    EXPECT_EQ(ChatModel("{% for m in messages %}{{ '[INST]' + m.content + '[/INST]' if m.role == "
                        "'user' else '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' if m.role "
                        "== 'system' else m.content + '</s>' }}{% endfor %}")
                  .format.name(),
              "mistral-v7-tekken");
    EXPECT_EQ(ChatModel("{{ messages[0].content }} <|im_start|>").format.name(), "jinja");
    EXPECT_EQ(ChatModel(test::kQwenTemplate).format.name(), "chatml");
    EXPECT_EQ(ChatModel("{{ raise_exception('no') }}").format.name(), "jinja");
    EXPECT_EQ(ChatModel(test::chat_vocabulary(""), "llama3").format.name(), "llama3");
    // Formats of architectures that knap runs, without a template at hand.
    for (const char* name : {"hunyuan-dense", "exaone4", "granite-4.0", "granite-4.1"}) {
        const ChatModel chat(test::chat_vocabulary(""), name);
        EXPECT_EQ(chat.format.name(), name);
        EXPECT_THAT(chat.text({.messages = kConversation}), testing::HasSubstr("Why?")) << name;
    }
}

}  // namespace
}  // namespace knap::chat_templates_test
