#include "decode/drafter.h"

#include <algorithm>
#include <memory>

#include "kv/sequence.h"

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
                 const Sequence& cache,
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
    // Leaves come after the chain, so that the chain's rows have the same indices as in plain
    // decoding.
    for (const Leaf& leaf : leaves_) {
        tree.add(leaf.token, leaf.parent);
    }
    return true;
}

bool Drafter::draft_chain(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree) {
    HistoryExtension ancestors(sampler_);
    const std::unique_ptr<TokenConstraint> ahead =
        sampler_.constraint() == nullptr ? nullptr : sampler_.constraint()->clone();
    StopRule rule = how.stop;
    rule.n_max = std::min(rule.n_max, max_nodes);
    StopState stop(rule);
    rows_.begin(cache_.committed(), useful_part(how.guess, rule.n_max));
    const std::optional<DrawRule> chained = chain_rule(how);
    Token token = pending;
    int parent = kPendingNode;
    for (bool goes_on = stop.starts(); goes_on;) {
        // If nodes are scarce, siblings are given up before depth.
        const int n_reserved = rule.n_max + static_cast<int>(leaves_.size());
        const int n_children = std::min(how.width, 1 + max_nodes - n_reserved);
        const auto step = chained ? choose_on_device(token, *chained, stop, tree.n_nodes())
                                  : choose(token, how, tree.n_nodes(), n_children);
        if (!step) {
            return false;
        }
        token = step->token;
        const bool is_drawn = step->choice != nullptr && step->choice->is_drawn;
        const bool fits = ahead == nullptr || ahead->fits(token);
        if (!fits && !is_drawn) {
            confidences_.resize(std::min(confidences_.size(), tree.tokens().size()));
            break;
        }
        const int node = tree.add(token, parent);
        if (step->choice != nullptr) {
            add_siblings(*step->choice, width_for(how, step->confidence), parent, ahead.get(),
                         tree);
        }
        parent = node;
        ancestors.accept(token);
        goes_on = stop.goes_on(step->confidence, is_end_of_text_(token)) &&
                  (ahead == nullptr || ahead->accept(token));
    }
    chain_length_.observe(tree.n_nodes());
    return true;
}

// Chooses the next token by the logits after `token`; `n_drafted` tokens are drafted so far.
std::optional<Drafter::Step> Drafter::choose(Token token,
                                             const DraftWithPlan& how,
                                             int n_drafted,
                                             int n_children) {
    const std::span<const float> logits = rows_.next(token);
    if (logits.empty()) {
        return std::nullopt;
    }
    // The pending token's position equals its cache row; the first draft follows it.
    const int position = cache_.committed() + n_drafted + 1;
    const DraftChoice& choice = choices_.choose(logits, position, n_children);
    return Step{.token = choice.tokens.front(),
                .confidence = confidence_for(how, logits, choice),
                .choice = &choice};
}

// How the device chooses the tokens of a draft; nullopt: it does not.
std::optional<DrawRule> Drafter::chain_rule(const DraftWithPlan& how) const {
    const std::optional<DrawRule> rule = choices_.draw_rule();
    const bool is_chain = how.width == 1 && how.width_steps.empty();
    return is_chain && rule && rows_.can_chain(*rule) ? rule : std::nullopt;
}

// `stop` is the state of the draft, of `n_drafted` tokens so far.
std::optional<Drafter::Step> Drafter::choose_on_device(Token token,
                                                       const DrawRule& rule,
                                                       const StopState& stop,
                                                       int n_drafted) {
    const bool may_stop_early = stop.rule().needs_confidence();
    const int n_left = stop.rule().n_max - n_drafted;
    const int n_steps =
        rows_.stops_by_itself() ? n_left : chain_length_.next(n_drafted, n_left, may_stop_early);
    const auto chosen = rows_.next_choice(token, rule, stop, n_steps);
    if (!chosen) {
        return std::nullopt;
    }
    if (may_stop_early) {
        confidences_.push_back(chosen->probability);
    }
    return Step{.token = chosen->token, .confidence = chosen->probability};
}

// The number of siblings may depend on the first candidate: siblings are judged only after it was
// rejected, and what is then left of the target distribution does not depend on their number. Those
// that do not fit are left out, but not if they were drawn: the ratio rule must see every draw.
void Drafter::add_siblings(const DraftChoice& choice,
                           std::size_t width,
                           int parent,
                           TokenConstraint* constraint,
                           DraftTree& tree) {
    if (choice.is_drawn) {
        tree.set_drawn_from(parent, choice.q);
    }
    for (std::size_t i = 1; i < std::min(choice.tokens.size(), width); ++i) {
        if (constraint == nullptr || choice.is_drawn || constraint->fits(choice.tokens[i])) {
            leaves_.push_back({choice.tokens[i], parent});
        }
    }
}

// The tokens of a guess whose rows a draft of at most `n_max` tokens can use: nothing is drafted
// after its last token or after the end of the text.
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
