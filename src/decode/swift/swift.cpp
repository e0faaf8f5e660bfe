#include "decode/swift/swift.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "forward/plan_text.h"
#include "model/config.h"
#include "search/matchness.h"

namespace knap {

namespace {

std::string percent(double share) {
    return concat(std::lround(100 * share), " %");
}

// Why a request begins with its plan.
std::string first_reason(const SwiftSearch& search) {
    return search.n_iterations() == 0
               ? "no search yet: every second layer is skipped"
               : concat("the best of ", search.n_iterations(), " plans so far, matchness ",
                        percent(search.best_score()));
}

std::string reason_of(SwiftEnd end) {
    switch (end) {
        case SwiftEnd::good_score:
            return "the matchness is good enough";
        case SwiftEnd::out_of_patience:
            return "no better plan for a long time";
        case SwiftEnd::out_of_iterations:
            return "enough plans were tried";
    }
    return {};
}

void check_skips(int n_layers, double skip_ratio) {
    if (count_skipped_modules(n_layers, skip_ratio) == 0) {
        fail("`.settings`: expected a ratio that skips at least 1 of the ", 2 * (n_layers - 2),
             " modules between the outer layers; found ", skip_ratio);
    }
}

}  // namespace

SwiftStrategy::SwiftStrategy(const SwiftOptions& options, int n_layers, Matchness matchness)
    : options_(options), matchness_(std::move(matchness)), search_(n_layers, options.search) {}

void SwiftStrategy::begin(const RequestStart& request) {
    n_prompt_ = request.prompt.size();
    widths_ = swift_widths(options_.tree, request.sampling.temperature <= 0);
    n_rounds_ = 0;
    decisions_.clear();
}

Proposal SwiftStrategy::propose(const RoundState& state) {
    const auto answer = state.history.subspan(n_prompt_);
    if (n_rounds_ == 0) {
        decide(answer.size(), first_reason(search_));
    }
    if (is_search_due(answer.size())) {
        search(answer);
    }
    if (state.n_room <= 0) {
        return {.draft = PlainStep{}};
    }
    return {
        .draft =
            DraftWithPlan{
                .plan = &search_.plan(),
                .stop = {.n_max = std::min(options_.draft_max, state.n_room),
                         .exit_confidence = options_.exit_confidence},
                .width = widths_.widest,
                .width_steps = widths_.steps,
            },
    };
}

// True after the first round and then every `opt_interval` rounds, once more than W + 1 tokens of
// the answer are in the cache. (The pending token is not in the cache.)
bool SwiftStrategy::is_search_due(std::size_t n_answered) const {
    return !search_.end() && n_rounds_ > 0 && (n_rounds_ - 1) % options_.opt_interval == 0 &&
           n_answered > static_cast<std::size_t>(options_.window) + 2;
}

// An evaluation that was cancelled, or not computed because others are busy, changes nothing.
void SwiftStrategy::search(std::span<const Token> answer) {
    const SwiftCandidate& candidate = search_.candidate();
    const bool is_suggested = candidate.is_suggested;
    const auto score =
        matchness_(candidate.plan, answer.first(static_cast<std::size_t>(options_.window) + 1),
                   static_cast<int>(n_prompt_));
    if (!score) {
        return;
    }
    if (search_.add_score(*score)) {
        decide(answer.size(), concat("matchness ", percent(*score), " on ", options_.window,
                                     " tokens, plan ", search_.n_iterations(),
                                     is_suggested ? ", from the optimiser" : ", chosen at random"));
    }
    if (const auto end = search_.end()) {
        decide(answer.size(),
               concat("the search ends after ", search_.n_iterations(), " plans, matchness ",
                      percent(search_.best_score()), ": ", reason_of(*end)));
    }
}

// Predicts no speed: the method looks only at agreement.
void SwiftStrategy::decide(std::size_t n_answered, std::string reason) {
    const std::string plan = to_string(search_.plan());
    decisions_.push_back({.token = static_cast<int>(n_answered),
                          .source = plan,
                          .plan = plan,
                          .reason = std::move(reason)});
}

void SwiftStrategy::observe(const RoundOutcome& /*outcome*/) {
    ++n_rounds_;
}

std::unique_ptr<Strategy> build_swift(const SpeculationOptions& options,
                                      const StrategyParts& parts) {
    const SwiftOptions swift = read_swift_options(options);
    check_skips(parts.config.n_layers, swift.search.skip_ratio);
    return std::make_unique<SwiftStrategy>(
        swift, parts.config.n_layers,
        [&forward = parts.forward, &cache = parts.cache](
            const ModulePlan& plan, std::span<const Token> text, int n_context) {
            return matchness(forward, cache, plan, text, n_context);
        });
}

}  // namespace knap
