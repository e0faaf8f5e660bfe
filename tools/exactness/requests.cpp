#include "tools/exactness/requests.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "knap/chat.h"

#include "base/text.h"

namespace knap {
namespace {

// A text of the schema may be long, so that answers rarely end before their last token.
constexpr const char* kSchema = R"({
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 8},
        "kind": {"enum": ["report", "letter", "note"]},
        "pages": {"type": "integer"},
        "lines": {"type": "array", "minItems": 4, "items": {"type": "string"}}
    },
    "required": ["title", "kind", "pages", "lines"]
})";
// Most of the text is forced.
constexpr const char* kList = R"(root ::= ("Item " [0-9] ": " ("yes" | "no") ".\n")+)";
constexpr const char* kWords = R"(root ::= ([a-z]+ [ ,])+ [a-z]+ ".")";

struct DrawnGrammar {
    const char* words;
    Grammar grammar;
};

DrawnGrammar draw_grammar(Draws& draws) {
    switch (draws.between(0, 9)) {
        case 0:
        case 1:
            return {"schema", {.text = json_schema_to_gbnf(kSchema)}};
        case 2:
            return {"forced text", {.text = kList}};
        case 3:
            return {"words", {.text = kWords}};
        case 4:
            return {"words, after an e", {.text = kWords, .starts_after = {"e"}}};
        default:
            return {"none", {}};
    }
}

void add_penalties(Draws& draws, SamplingOptions& sampling) {
    sampling.repeat_penalty = draws.one_of({1.0f, 1.1f, 1.5f});
    sampling.presence_penalty = draws.one_of({0.0f, 0.5f});
    sampling.frequency_penalty = draws.one_of({0.0f, 0.3f, -0.2f});
    sampling.repeat_last_n = draws.one_of({64, 7, -1});
}

}  // namespace

RequestWriter::RequestWriter(const Engine& engine,
                             std::span<const CheckPrompt> texts,
                             int n_predict)
    : texts_(texts),
      n_vocab_(engine.info().n_vocab),
      n_ctx_(engine.config().n_ctx),
      n_predict_(n_predict) {}

Token RequestWriter::any_token(Draws& draws) const {
    return draws.between(0, n_vocab_ - 1);
}

// A part of one of the texts, repeated if need be.
std::vector<Token> RequestWriter::some_text(Draws& draws, int n) const {
    const std::vector<Token>& text =
        texts_[static_cast<std::size_t>(draws.between(0, static_cast<int>(texts_.size()) - 1))]
            .tokens;
    auto at = static_cast<std::size_t>(draws.between(0, static_cast<int>(text.size()) - 1));
    std::vector<Token> tokens;
    for (int i = 0; i < n; ++i) {
        tokens.push_back(text[at++ % text.size()]);
    }
    return tokens;
}

// Text, any tokens, or a phrase that returns with a few of its tokens changed.
std::vector<Token> RequestWriter::new_prompt(Draws& draws) const {
    const int n_most = n_ctx_ - n_predict_;
    int n = draws.between(1, std::min(64, n_most));
    if (draws.one_in(2)) {
        n = draws.between(1, draws.one_in(3) ? n_most : std::min(300, n_most));
    }
    // Now and then the answer fills the context to its last token.
    n = draws.one_in(16) ? n_ctx_ - draws.between(1, std::min(n_predict_, n_ctx_ - 1)) : n;
    const int kind = draws.between(0, 2);
    if (kind == 0) {
        return some_text(draws, n);
    }
    const int n_phrase = kind == 1 ? n : draws.between(1, 40);
    std::vector<Token> phrase = some_text(draws, n_phrase);
    if (kind == 1 || draws.one_in(2)) {
        std::ranges::generate(phrase, [&] { return any_token(draws); });
    }
    std::vector<Token> prompt;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const bool is_changed = kind == 2 && draws.one_in(30);
        prompt.push_back(is_changed ? any_token(draws) : phrase[i % phrase.size()]);
    }
    return prompt;
}

// The conversation goes on, returns to an earlier point, or ends for another.
std::vector<Token> RequestWriter::prompt_after(Draws& draws, std::span<const Token> before) const {
    const int n_before = static_cast<int>(before.size());
    const int n_most = n_ctx_ - n_predict_;
    std::vector<Token> prompt(before.begin(), before.end());
    switch (draws.between(0, 3)) {
        case 0:
        case 1: {
            std::ranges::copy(some_text(draws, draws.between(1, 30)), std::back_inserter(prompt));
            break;
        }
        case 2:
            prompt.resize(static_cast<std::size_t>(draws.between(1, std::max(1, n_before))),
                          any_token(draws));
            break;
        default:
            return new_prompt(draws);
    }
    return static_cast<int>(prompt.size()) <= n_most ? prompt : new_prompt(draws);
}

SamplingOptions RequestWriter::draw_sampling(Draws& draws,
                                             bool has_grammar,
                                             std::string& words) const {
    // Together with a grammar a forbidden token could leave none.
    const float least = has_grammar ? -8.0f : -std::numeric_limits<float>::infinity();
    SamplingOptions sampling{.top_k = 0, .top_p = 1, .min_p = 0, .seed = draws.number()};
    const bool is_greedy = draws.one_in(3);
    words = is_greedy ? "greedy" : "sampled";
    if (!is_greedy) {
        sampling.temperature = draws.one_of({0.3f, 0.8f, 1.0f, 1.5f});
        if (!draws.one_in(3)) {
            sampling.top_k = draws.one_of({0, 1, 3, 40, 200});
            sampling.top_p = draws.one_of({1.0f, 0.95f, 0.5f});
            sampling.min_p = draws.one_of({0.0f, 0.05f, 0.3f});
            words += ", cut";
        }
    }
    if (draws.one_in(3)) {
        add_penalties(draws, sampling);
        words += ", penalties";
    }
    if (draws.one_in(5)) {
        for (int i = draws.between(1, 8); i > 0; --i) {
            sampling.logit_bias.emplace_back(any_token(draws), draws.one_of({2.0f, -1.5f, least}));
        }
        words += ", bias";
    }
    return sampling;
}

DrawnRequest RequestWriter::next(Draws& draws, std::span<const Token> before) const {
    DrawnRequest request;
    request.prompt =
        before.empty() || draws.one_in(4) ? new_prompt(draws) : prompt_after(draws, before);
    const auto [words, grammar] = draw_grammar(draws);
    request.constraint = words;
    request.options = {.n_predict = draws.between((n_predict_ + 1) / 2, n_predict_),
                       .sampling = draw_sampling(draws, !grammar.text.empty(), request.sampling),
                       .speculation = plain_decoding(),
                       .ignore_eos = grammar.text.empty() && !draws.one_in(4),
                       .grammar = grammar};
    if (draws.one_in(10)) {
        request.options.stop = {draws.one_of({"s ", ".", "ing"})};
    }
    if (draws.one_in(8)) {
        request.options.n_logprobs = draws.between(0, 3);
    }
    return request;
}

std::vector<Token> RequestWriter::like(Draws& draws, std::span<const Token> answer) const {
    std::vector<Token> text;
    for (const Token token : answer) {
        const int change = draws.between(0, 24);
        if (change != 0) {  // else the token is left out
            text.push_back(change == 1 ? any_token(draws) : token);
        }
    }
    return text;
}

}  // namespace knap
