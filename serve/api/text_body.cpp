#include "serve/api/text_body.h"

#include <algorithm>

#include "serve/api/error.h"

namespace knap {
namespace {

bool is_token_list(const Json& value) {
    return value.is_array() && !value.empty() &&
           std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
}

std::vector<Token> read_tokens(const Json& list, int n_vocab) {
    std::vector<Token> tokens;
    for (const Json& id : list) {
        if (id.get<double>() < 0 || id.get<double>() >= n_vocab) {
            bad_field("prompt", "expected token ids of 0..", n_vocab - 1, ", found ", to_text(id));
        }
        tokens.push_back(id.get<Token>());
    }
    return tokens;
}

TextPrompt read_prompt(const Json& value, int n_vocab) {
    if (is_token_list(value)) {
        return read_tokens(value, n_vocab);
    }
    if (!value.is_string()) {
        bad_field("prompt", "expected a string or an array of token ids, found ",
                  value.is_array() ? std::string("an array of something else") : kind_of(value));
    }
    if (value.get_ref<const std::string&>().empty()) {
        bad_field("prompt", "expected a text, found an empty one");
    }
    return value.get<std::string>();
}

// A string, [string], [int] or [[int]].
std::vector<TextPrompt> read_prompts(Fields& fields, int n_vocab) {
    const Json* value = fields.find("prompt");
    if (value == nullptr) {
        bad_field("prompt", "expected a string or an array, found none");
    }
    if (!value->is_array() || is_token_list(*value)) {
        return {read_prompt(*value, n_vocab)};
    }
    if (value->empty() || value->size() > kMaxRequestChoices) {
        bad_field("prompt", "expected 1..", kMaxRequestChoices, " prompts, found ", value->size());
    }
    std::vector<TextPrompt> prompts;
    for (const Json& one : *value) {
        prompts.push_back(read_prompt(one, n_vocab));
    }
    return prompts;
}

// The number of alternatives to list, or -1.
int read_text_logprobs(Fields& fields) {
    const auto n = fields.integer("logprobs", {.min = 0, .max = kMaxLogprobs});
    return n ? static_cast<int>(*n) : -1;
}

}  // namespace

TextBody read_text_body(const Json& body, const GenerationDefaults& defaults, int n_vocab) {
    if (!body.is_object()) {
        throw RequestError({.message = concat("expected a JSON object, found ", kind_of(body))});
    }
    Fields fields(body);
    TextBody read{.prompts = read_prompts(fields, n_vocab), .constraint = read_constraint(fields)};
    fields.read("echo", read.echoes);
    const int n_logprobs = read_text_logprobs(fields);
    if (read.echoes && n_logprobs >= 0) {
        bad_field("echo", "expected no `logprobs` beside it: those of a prompt are not computed");
    }
    if (fields.string("suffix").value_or("") != "") {
        bad_field("suffix", "expected none: this server does not fill in the middle of texts");
    }
    read.generation = read_generation(fields, defaults, n_vocab);
    read.generation.options.n_logprobs = n_logprobs;
    const int n_choices = static_cast<int>(read.prompts.size()) * read.generation.n_choices;
    if (n_choices > kMaxRequestChoices) {
        bad_field("n", "expected at most ", kMaxRequestChoices, " answers to all prompts, found ",
                  n_choices);
    }
    return read;
}

}  // namespace knap
