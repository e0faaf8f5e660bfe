#include "decode/copies/copied_texts.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace knap {

namespace {

using Text = std::span<const Token>;

// The newest texts that have up to `max_tokens` tokens together; always the last one.
std::span<const Text> newest(std::span<const Text> texts, std::size_t max_tokens) {
    std::size_t n_tokens = 0;
    std::size_t n_texts = 0;
    while (n_texts < texts.size()) {
        n_tokens += texts[texts.size() - 1 - n_texts].size();
        if (n_texts > 0 && n_tokens > max_tokens) {
            break;
        }
        ++n_texts;
    }
    return texts.last(n_texts);
}

bool are_equal(const std::vector<Token>& a, Text b) {
    return std::ranges::equal(a, b);
}

}  // namespace

void CopiedTexts::begin(std::span<const Token> prompt,
                        std::span<const std::vector<Token>> references,
                        std::span<const Token> prediction) {
    const Text known = conversation_.text();
    const auto n_common =
        static_cast<std::size_t>(std::ranges::mismatch(known, prompt).in1 - known.begin());
    if (n_common == 0) {
        conversation_.clear();
    }
    conversation_.truncate(n_common);
    follow(prompt);

    std::vector<Text> texts(references.begin(), references.end());
    texts.push_back(prediction);
    std::erase_if(texts, [](Text text) { return text.empty(); });
    set_references(newest(texts, kMaxReferenceTokens));
}

void CopiedTexts::follow(std::span<const Token> history) {
    const std::size_t n_known = conversation_.text().size();
    KNAP_ASSERT(n_known <= history.size(), "the history extends the indexed text");
    conversation_.append(history.subspan(n_known));
}

// Usually the oldest texts are gone and a new one has come.
void CopiedTexts::set_references(std::span<const Text> texts) {
    const auto first = std::ranges::find_if(reference_texts_, [&](const std::vector<Token>& old) {
        return !texts.empty() && are_equal(old, texts.front());
    });
    for (auto old = reference_texts_.begin(); old != first; ++old) {
        references_.drop_first_text();
    }
    reference_texts_.erase(reference_texts_.begin(), first);
    const auto end_of_common = std::ranges::mismatch(reference_texts_, texts, are_equal);
    for (auto old = end_of_common.in1; old != reference_texts_.end(); ++old) {
        references_.drop_last_text();
    }
    reference_texts_.erase(end_of_common.in1, reference_texts_.end());
    for (auto added = end_of_common.in2; added != texts.end(); ++added) {
        references_.append(*added);
        references_.end_text();
        reference_texts_.emplace_back(added->begin(), added->end());
    }
}

std::span<const Match> CopiedTexts::find() {
    matches_.clear();
    add_matches(conversation_);
    add_matches(references_);
    std::ranges::stable_sort(matches_, std::ranges::greater(), &Match::length);
    matches_.resize(std::min(matches_.size(), kMaxMatches));
    return matches_;
}

void CopiedTexts::add_matches(const SuffixIndex& index) {
    index.find(conversation_.text(), /*min_length=*/1, kMaxMatches, found_);
    for (const SuffixIndex::Match& match : found_) {
        matches_.push_back({.index = &index, .next = match.next, .length = match.length});
    }
}

}  // namespace knap
