#include "decode/knapspec_paper/knapspec_paper.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "decode/knapspec_paper/paper_model_search.h"
#include "forward/plan_text.h"
#include "model/config.h"

namespace knap {

namespace {

// By the paper's cost model, drafting with the whole model is as fast as plain decoding at any
// draft length (docs/methods.md, "Worked examples").
constexpr double kWholeModelSpeed = 1;

}  // namespace

KnapspecPaperStrategy::KnapspecPaperStrategy(const PaperOptions& options,
                                             const PaperModel& model,
                                             std::unique_ptr<PaperSearch> search)
    : options_(options),
      schedule_{.interval = model.interval},
      whole_model_(model.n_layers),
      all_streams_(2 * static_cast<std::size_t>(model.n_layers) + 1),
      search_(std::move(search)),
      plan_(whole_model_),
      kept_(model.n_embd) {
    KNAP_ASSERT(model.interval >= kShortestInterval, "every interval has a search");
    std::iota(all_streams_.begin(), all_streams_.end(), 0);
}

void KnapspecPaperStrategy::begin(const RequestStart& request) {
    n_prompt_ = request.prompt.size();
    round_ = 0;
    plan_ = whole_model_;
    kept_.clear();
    decisions_.clear();
    n_emitted_ = 0;
    rounds_ms_ = 0;
    plain_step_ms_ = 0;
}

Proposal KnapspecPaperStrategy::propose(const RoundState& state) {
    search_if_due(state.history);
    ++round_;
    pending_ = state.history.back();
    pending_row_ = static_cast<int>(state.history.size()) - 1;

    Proposal proposal;
    if (state.n_room > 0) {
        proposal.draft = DraftWithPlan{.plan = &plan_, .stop = stop_rule(state.n_room)};
    }
    if (schedule_.keeps_rows(round_)) {
        proposal.captures = all_streams_;
    }
    return proposal;
}

// The published method searches at the end of a round. Here the search runs when the next round
// begins, so a request that ends before never pays for it.
void KnapspecPaperStrategy::search_if_due(std::span<const Token> history) {
    const int n_answered = static_cast<int>(history.size() - n_prompt_);
    if (round_ == 0) {
        decide(n_answered, "no search yet: the whole model drafts", kWholeModelSpeed);
    }
    if (round_ == 0 && options_.starts_on_prompt) {
        const auto committed = history.first(history.size() - 1);
        const int n_rows =
            std::min({kPromptRows, static_cast<int>(committed.size()), search_->max_rows()});
        search(search_->last_rows(committed, n_rows), n_answered);
    } else if (schedule_.searches_after(round_)) {
        kept_.limit(search_->max_rows());
        search(kept_.rows(), n_answered);
        kept_.clear();
    }
}

// A search that was cancelled, or stopped because others are busy, changes nothing.
void KnapspecPaperStrategy::search(const TargetRows& rows, int n_answered) {
    if (rows.tokens.empty()) {
        return;
    }
    const PaperSearchResult found = search_->find(rows);
    if (!found.is_cancelled) {
        adopt(found, rows.n_rows(), n_answered);
    }
}

void KnapspecPaperStrategy::adopt(const PaperSearchResult& found, int n_rows, int n_answered) {
    plain_step_ms_ = found.plain_step_ms;
    measure();
    plan_ = whole_model_;
    if (!found.choice) {
        decide(n_answered, "no plan survived the search: the whole model drafts until the next one",
               kWholeModelSpeed);
        return;
    }
    const PaperChoice& choice = *found.choice;
    // Its best draft length does not limit drafts (docs/methods.md, "Choice and fallback").
    plan_ = choice.plan;
    decide(n_answered,
           concat("best of ", choice.n_candidates, " plans: ", std::lround(100 * choice.acceptance),
                  " % of ", n_rows, " rows agree, best draft length ", choice.draft_length),
           choice.speedup);
}

void KnapspecPaperStrategy::decide(int n_answered, std::string reason, double predicted) {
    decisions_.push_back({
        .token = n_answered,
        .source = to_string(plan_),
        .plan = to_string(plan_),
        .reason = std::move(reason),
        .predicted = predicted,
    });
    n_emitted_ = 0;
    rounds_ms_ = 0;
}

// No step here is plain decoding, so its time comes from the profile.
void KnapspecPaperStrategy::measure() {
    if (rounds_ms_ > 0 && plain_step_ms_ > 0) {
        decisions_.back().measured = n_emitted_ * plain_step_ms_ / rounds_ms_;
    }
}

StopRule KnapspecPaperStrategy::stop_rule(int n_room) const {
    return {
        .n_max = std::min(options_.draft_max, n_room),
        .exit_confidence = options_.exit_confidence,
        .confidence_of =
            options_.exits_by_most_probable ? ConfidenceOf::most_probable : ConfidenceOf::drawn,
    };
}

void KnapspecPaperStrategy::observe(const RoundOutcome& outcome) {
    if (schedule_.keeps_rows(round_)) {
        kept_.add(outcome, pending_, pending_row_);
    }
    n_emitted_ += static_cast<int>(outcome.emitted.size());
    rounds_ms_ += outcome.draft_ms + outcome.verify_ms;
    measure();
}

std::unique_ptr<Strategy> build_knapspec_paper(const SpeculationOptions& options,
                                               const StrategyParts& parts) {
    const PaperOptions paper = read_paper_options(options);
    const PaperModel model = {
        .n_layers = parts.config.n_layers,
        .n_embd = parts.config.n_embd,
        .interval = paper.interval.for_model(count_parameters(parts.config)),
    };
    return std::make_unique<KnapspecPaperStrategy>(
        paper, model, std::make_unique<PaperModelSearch>(paper, parts));
}

}  // namespace knap
