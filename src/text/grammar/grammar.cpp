#include "text/grammar/grammar.h"

#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"
#include "text/grammar/grammar_parser.h"

namespace knap {
namespace {

std::vector<std::string> checked_starts(const Grammar& grammar) {
    if (std::ranges::any_of(grammar.starts_after, &std::string::empty)) {
        fail("`.grammar`: expected `starts_after` without empty strings");
    }
    return grammar.starts_after;
}

// The texts of trigger patterns if none of them has operators: llama.cpp's chat templates have no
// others, and to search the whole answer at every token is slow.
std::optional<std::vector<std::string>> plain_triggers(const Grammar& grammar) {
    std::vector<std::string> texts;
    for (const std::string& pattern : grammar.trigger_patterns) {
        const auto text = plain_text_of(pattern);
        if (!text || text->empty()) {
            return std::nullopt;
        }
        texts.push_back(*text);
    }
    return texts;
}

}  // namespace

GrammarState::GrammarState(const Tokenizer& tokenizer, const Grammar& grammar)
    : GrammarState(tokenizer, grammar, parse_grammar(grammar.text)) {}

GrammarState::GrammarState(const Tokenizer& tokenizer,
                           const Grammar& grammar,
                           std::shared_ptr<const GrammarRules> table)
    : tokenizer_(tokenizer),
      sampler_(tokenizer, *table, grammar, /*is_lazy=*/!plain_triggers(grammar).has_value()) {
    Rules rules{.starts = AwaitedStrings(checked_starts(grammar), tokenizer), .triggers = {}};
    if (const auto triggers = plain_triggers(grammar)) {
        rules.triggers = AwaitedStrings(*triggers, tokenizer);
        rules.trigger_tokens = grammar.trigger_tokens;
        if (!table->names_tokens()) {
            walk_.emplace(std::move(table));
        }
    }
    rules_ = std::make_shared<const Rules>(std::move(rules));
    begin(Phase::unstarted);
    for (const Token token : grammar.prefix) {
        if (!accept(token)) {
            fail(
                "`.grammar`: expected a grammar that describes the end of the prompt, found one "
                "that does not allow ",
                in_quotes(tokenizer.piece(token)));
        }
    }
}

// Copies are for drafts, which need no guesses of their own.
GrammarState::GrammarState(const GrammarState& other)
    : tokenizer_(other.tokenizer_),
      rules_(other.rules_),
      sampler_(other.sampler_),
      phase_(other.phase_),
      recent_(other.recent_) {}

// Skips phases in which there is nothing to wait for.
void GrammarState::begin(Phase phase) {
    recent_ = {};
    phase_ = phase;
    if (phase_ == Phase::unstarted && rules_->starts.is_empty()) {
        phase_ = Phase::untriggered;
    }
    if (phase_ == Phase::untriggered && rules_->triggers.is_empty() &&
        rules_->trigger_tokens.empty()) {
        phase_ = Phase::applies;
    }
}

const AwaitedStrings& GrammarState::awaited() const {
    return phase_ == Phase::unstarted ? rules_->starts : rules_->triggers;
}

void GrammarState::keep_fitting(std::vector<Token>& tokens) const {
    if (phase_ == Phase::ended) {
        tokens.clear();
    } else if (is_waiting()) {
        std::erase_if(tokens, [&](Token token) { return !fits_while_waiting(token); });
    } else {
        sampler_.keep_fitting(tokens);
    }
}

// Whether the grammar may apply after this token.
bool GrammarState::may_decide(Token token) const {
    return awaited().may_complete(token) ||
           (phase_ == Phase::untriggered && std::ranges::count(rules_->trigger_tokens, token) > 0);
}

// Nearly every token fits: only what a token has of the grammar must.
bool GrammarState::fits_while_waiting(Token token) const {
    return !may_decide(token) || GrammarState(*this).accept_while_waiting(token);
}

bool GrammarState::accept(Token token) {
    if (is_waiting()) {
        return accept_while_waiting(token);
    }
    if (phase_ == Phase::ended || !tokenizer_.is_end_of_generation(token)) {
        return phase_ != Phase::ended && accept_applying(token);
    }
    const bool may_end = sampler_.fits(token);
    begin(Phase::ended);
    return may_end;
}

bool GrammarState::accept_while_waiting(Token token) {
    if (tokenizer_.is_end_of_generation(token)) {
        begin(Phase::ended);
        return true;
    }
    if (phase_ == Phase::untriggered && std::ranges::count(rules_->trigger_tokens, token) > 0) {
        begin(Phase::applies);
        return accept_applying(token);
    }
    recent_.append(token, tokenizer_.piece(token));
    const auto place = awaited().find(recent_.text);
    if (!place) {
        recent_.keep_last(awaited().n_kept());
        return true;
    }
    if (phase_ == Phase::untriggered) {
        return accept_from(place->begin);
    }
    const std::string rest = recent_.text.substr(place->end);
    begin(Phase::untriggered);
    return feed(rest);
}

// The grammar applies from this byte of the recent text on, which may be inside of a token.
bool GrammarState::accept_from(std::size_t start) {
    const RecentText recent = recent_;
    begin(Phase::applies);
    const auto first_byte = static_cast<std::ptrdiff_t>(start);
    for (std::size_t i = 0; i < recent.parts.size(); ++i) {
        const bool is_last = i + 1 == recent.parts.size();
        const std::size_t end =
            is_last ? recent.text.size() : static_cast<std::size_t>(recent.parts[i + 1].begin);
        if (end <= start) {
            continue;
        }
        const bool is_whole = recent.parts[i].begin >= first_byte;
        if (!(is_whole ? accept_applying(recent.parts[i].token)
                       : feed(recent.text.substr(start, end - start)))) {
            return false;
        }
    }
    return true;
}

bool GrammarState::accept_applying(Token token) {
    if (walk_) {
        walk_->advance(tokenizer_.piece(token));
    }
    return sampler_.accept(token);
}

// Moves past a text, by whatever tokens: only bytes count. False: it does not fit.
bool GrammarState::feed(std::string_view text) {
    return std::ranges::all_of(tokenizer_.encode_inside(text),
                               [this](Token token) { return accept(token); });
}

std::string GrammarState::forced_text(std::size_t max_bytes) const {
    return phase_ == Phase::applies && walk_ ? walk_->likely_text(max_bytes) : "";
}

}  // namespace knap
