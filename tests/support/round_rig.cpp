#include "support/round_rig.h"

#include <algorithm>

#include "decode/advance.h"

namespace knap::test {

RoundRig::RoundRig(LoadedModel& loaded, const ForwardOptions& options)
    : model(loaded), rig(loaded, options) {}

std::vector<Token> RoundRig::start(const DecodeCase& c, Sampler& sampler) {
    rig.cache.truncate(0);
    for (const Token token : c.prompt) {
        sampler.accept(token);
    }
    if (rig.draft_head) {
        rig.draft_head->begin(c.prompt);
    }
    std::vector<Token> history = c.prompt;
    const auto logits = advance(rig.forward, rig.cache, history);
    history.push_back(sampler.sample(*logits, static_cast<std::int64_t>(history.size())));
    sampler.accept(history.back());
    return history;
}

Decoded RoundRig::plain(const DecodeCase& c) {
    Sampler sampler(c.sampling, model.config.n_vocab, rig.cache.capacity());
    // Acceptance measures the gap, given an empty tree.
    Acceptance acceptance(sampler, {.measures_gaps = true});
    std::vector<Token> history = start(c, sampler);
    Decoded out;
    out.gaps.push_back(0);  // of the first token, which every run samples alike
    while (history.size() < c.prompt.size() + static_cast<std::size_t>(c.n_tokens)) {
        const auto logits = advance(rig.forward, rig.cache, history);
        const auto position = static_cast<std::int64_t>(history.size());
        out.gaps.push_back(acceptance.judge({}, *logits, position).gaps.front());
        history.push_back(sampler.sample(*logits, position));
        sampler.accept(history.back());
    }
    out.tokens.assign(history.begin() + static_cast<std::ptrdiff_t>(c.prompt.size()),
                      history.end());
    out.cache = rig.cache_bytes();
    return out;
}

Decoded RoundRig::speculate(const DecodeCase& c, const Propose& propose) {
    Sampler sampler(c.sampling, model.config.n_vocab, rig.cache.capacity());
    Round round(
        rig.forward, rig.cache, sampler,
        {.acceptance = {.rule = c.rule}, .is_end_of_text = is_end_of_text, .max_rows = c.max_rows});
    std::vector<Token> history = start(c, sampler);
    Decoded out;
    const std::size_t n_wanted = c.prompt.size() + static_cast<std::size_t>(c.n_tokens);
    while (history.size() < n_wanted) {
        const int n_room = static_cast<int>(n_wanted - history.size()) - 1;
        const auto outcome = round.run(history.back(), propose(history, n_room));
        out.n_drafted += outcome->tree.n_nodes();
        out.n_accepted += static_cast<int>(outcome->path.size());
        out.n_guessed += outcome->n_guessed;
        out.n_gathered += !outcome->path.empty() &&
                          outcome->path.back() >= static_cast<int>(outcome->path.size());
        for (const Token token : outcome->emitted) {
            history.push_back(token);
            sampler.accept(token);
            if (rig.draft_head) {
                rig.draft_head->add(token);
            }
        }
    }
    out.tokens.assign(history.begin() + static_cast<std::ptrdiff_t>(c.prompt.size()),
                      history.end());
    out.cache = rig.cache_bytes();
    return out;
}

Agreement compare(const Decoded& plain, const Decoded& speculative) {
    const auto [a, b] = std::mismatch(plain.tokens.begin(), plain.tokens.end(),
                                      speculative.tokens.begin(), speculative.tokens.end());
    if (a == plain.tokens.end() && b == speculative.tokens.end()) {
        return {};
    }
    const auto index = static_cast<std::size_t>(a - plain.tokens.begin());
    return {.is_equal = false,
            .first_difference = index,
            .gap = index < plain.gaps.size() ? plain.gaps[index] : 0.0f};
}

}  // namespace knap::test
