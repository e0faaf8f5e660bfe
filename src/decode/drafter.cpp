#include "decode/drafter.h"

#include <algorithm>

#include "kv/kv_cache.h"

namespace knap {
namespace {

int count_common(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::size_t width_for(const DraftWithPlan& how, float confidence) {
    const auto step = std::ranges::find_if(
        how.width_steps, [&](const WidthStep& one) { return confidence > one.above; });
    return static_cast<std::size_t>(step != how.width_steps.end() ? step->width : how.width);
}

}  // namespace

Drafter::Drafter(Forward& forward,
                 const KvCache& cache,
                 Sampler& sampler,
                 AcceptanceRule rule,
                 const std::function<bool(Token)>& is_end_of_text)
    : cache_(cache),
      sampler_(sampler),
      choices_(sampler, rule),
      is_end_of_text_(is_end_of_text),
      rows_(forward) {}

bool Drafter::draft(Token pending,
                    const DraftWithPlan& how,
                    std::span<const int> captures,
                    int max_nodes,
                    DraftTree& tree) {
    rows_.set_model(*how.plan, how.head, captures);
    tree.clear();
    leaves_.clear();
    confidences_.clear();
    if (!draft_chain(pending, how, max_nodes, tree)) {
        return false;
    }
    n_guessed_ = count_common(tree.tokens(), how.guess);
    // After the chain, so that the chain's rows lie in the cache where plain decoding has them.
    for (const Leaf& leaf : leaves_) {
        tree.add(leaf.token, leaf.parent);
    }
    return true;
}

bool Drafter::draft_chain(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree) {
    HistoryExtension ancestors(sampler_);
    StopRule rule = how.stop;
    rule.n_max = std::min(rule.n_max, max_nodes);
    StopState stop(rule);
    rows_.begin(cache_.committed(), useful_part(how.guess, rule.n_max));
    Token token = pending;
    int parent = kPendingNode;
    for (bool goes_on = stop.starts(); goes_on;) {
        const std::span<const float> logits = rows_.next(token);
        if (logits.empty()) {
            return false;
        }
        // Where nodes are short, siblings go before depth does.
        const int n_reserved = rule.n_max + static_cast<int>(leaves_.size());
        const int n_children = std::min(how.width, 1 + max_nodes - n_reserved);
        // The pending token's position is its row in the cache; the first draft follows it.
        const int position = cache_.committed() + tree.n_nodes() + 1;
        const DraftChoice& choice = choices_.choose(logits, position, n_children);
        const float confidence = confidence_for(how, logits, choice);
        token = choice.tokens.front();
        const int node = tree.add(token, parent);
        if (choice.is_drawn) {
            tree.set_drawn_from(parent, choice.q);
        }
        // How many siblings are tried may depend on the first candidate: they only come to be
        // judged where it was rejected, and what is left of the target then is the same for all.
        const auto n_kept = std::min(choice.tokens.size(), width_for(how, confidence));
        for (std::size_t i = 1; i < n_kept; ++i) {
            leaves_.push_back({choice.tokens[i], parent});
        }
        parent = node;
        ancestors.accept(token);
        goes_on = stop.goes_on(confidence, is_end_of_text_(token));
    }
    return true;
}

// The tokens of a guess whose rows a draft of at most `n_max` tokens can use: nothing is drafted
// after its last token, nor after the end of the text.
std::span<const Token> Drafter::useful_part(std::span<const Token> guess, int n_max) const {
    const auto n_rows = static_cast<std::size_t>(std::max(0, n_max - 1));
    const auto room = guess.first(std::min(guess.size(), n_rows));
    const auto end = std::ranges::find_if(room, is_end_of_text_);
    return {room.begin(), end};
}

float Drafter::confidence_for(const DraftWithPlan& how,
                              std::span<const float> logits,
                              const DraftChoice& choice) {
    if (!how.stop.needs_confidence() && how.width_steps.empty()) {
        return 1.0f;
    }
    return confidences_.emplace_back(confidence(logits, choice, how.stop.confidence_of));
}

}  // namespace knap
