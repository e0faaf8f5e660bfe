// Vocabularies with chat templates, as small as they can be and still be recognised as what they
// are: one like Qwen's (thinking, tool calls in tags), one like Llama 3's (tool calls as bare
// JSON), one like that of gpt-oss (channels).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "llama.h"

#include "knap/chat.h"

#include "text/chat_format.h"
#include "text/tiny_vocabulary.h"
#include "text/tokenizer.h"

namespace knap::test {

inline constexpr const char* kQwenTemplate = R"({%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- '# Tools\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\n</tools>\nFor a call write:\n<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call><|im_end|>\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}
        {%- endif %}
        {{- message.content }}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and message.content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- set call = tool_call.function %}
                {{- '<tool_call>\n{"name": "' + call.name + '", "arguments": ' + (call.arguments | tojson) + '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %})";

inline constexpr const char* kLlamaTemplate = R"({{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\n\n' }}
{%- if tools is not none and tools is defined %}
    {{- 'Respond with {"name": function name, "parameters": arguments}.\n\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- '\n\n' }}
    {%- endfor %}
{%- endif %}
{{- system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception('This model only supports single tool-calls at once!') }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- '}' }}
        {{- '<|eot_id|>' }}
    {%- elif message.role == 'tool' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\n\n' + message.content + '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

// Like that of gpt-oss: thoughts and the answer are messages on different channels.
inline constexpr const char* kChannelTemplate = R"({%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
    {%- else %}
        {{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant' }}
{%- endif %})";

// The vocabulary of tiny_vocabulary.h (258 is "he") with these control tokens after it.
inline TinyVocabulary chat_vocabulary(std::string chat_template) {
    TinyVocabulary vocabulary = bpe_vocabulary();
    for (const char* text :
         {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}) {
        vocabulary.add(text, control);
    }
    vocabulary.chat_template = std::move(chat_template);
    return vocabulary;
}
inline constexpr Token kImStart = 259;
inline constexpr Token kImEnd = 260;

inline std::unique_ptr<Tokenizer> load_vocabulary(const TinyVocabulary& vocabulary) {
    return Tokenizer::load(VocabularyFile(vocabulary).path());
}

// A format and what it needs.
struct ChatModel {
    explicit ChatModel(const TinyVocabulary& vocabulary, std::string_view chat_template = {})
        : tokenizer(load_vocabulary(vocabulary)),
          format(make_chat_format(*tokenizer, chat_template)) {}
    explicit ChatModel(const char* chat_template) : ChatModel(chat_vocabulary(chat_template)) {}

    std::string text(ChatRequest request) const { return format.render(request).text; }

    std::unique_ptr<Tokenizer> tokenizer;
    ChatFormat format;
};

// Whether a grammar that applies from the start allows exactly this answer, as libllama reads it.
inline bool allows(const Tokenizer& tokenizer, const Grammar& grammar, std::string_view answer) {
    const llama_vocab* vocab = llama_model_get_vocab(tokenizer.vocabulary());
    llama_sampler* sampler = llama_sampler_init_grammar(vocab, grammar.text.c_str(), "root");
    if (sampler == nullptr) {
        return false;
    }
    const auto fits = [&](Token token) {
        llama_token_data candidate{token, 1.0f, 0.0f};
        llama_token_data_array candidates{&candidate, 1, -1, false};
        llama_sampler_apply(sampler, &candidates);
        return candidate.logit > 0;
    };
    const auto accept_all = [&](const std::vector<Token>& tokens) {
        for (Token token : tokens) {
            if (!fits(token)) {
                return false;
            }
            llama_sampler_accept(sampler, token);
        }
        return true;
    };
    const bool result = accept_all(grammar.prefix) &&
                        accept_all(tokenizer.encode(answer, false, false)) &&
                        fits(llama_vocab_eos(vocab));
    llama_sampler_free(sampler);
    return result;
}

}  // namespace knap::test
