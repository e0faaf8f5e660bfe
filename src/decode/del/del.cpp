#include "decode/del/del.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"
#include "sampling/draft_sampler.h"
#include "sampling/row_maximum.h"
#include "search/head_rows.h"

namespace knap {

namespace {

class ModelShadows final : public ShadowSource {
  public:
    explicit ModelShadows(const StrategyParts& parts) : parts_(parts) {}

    TargetRows last_rows(std::span<const Token> text, int n_rows) override {
        return collect_target_rows(parts_.forward, parts_.cache, text,
                                   {.n_rows = n_rows, .streams = true});
    }

    std::vector<ShadowToken> read(std::span<const float> hidden) override {
        std::vector<ShadowToken> shadows;
        const bool is_complete =
            visit_head_rows(parts_.forward, hidden, [&](std::span<const float> logits) {
                const Token token = find_maximum(logits).token;
                shadows.push_back({token, confidence(logits, token)});
            });
        return is_complete ? shadows : std::vector<ShadowToken>{};
    }

  private:
    StrategyParts parts_;
};

}  // namespace

DelStrategy::DelStrategy(const DelOptions& options,
                         int n_layers,
                         int n_embd,
                         std::unique_ptr<ShadowSource> source)
    : options_(options),
      n_layers_(n_layers),
      n_embd_(static_cast<std::size_t>(n_embd)),
      source_(std::move(source)),
      statistics_(n_layers, static_cast<double>(options.decay), kRatedLength),
      plan_(early_exit_plan(n_layers, choice_.n_layers)) {
    for (int layer = 1; layer < n_layers; ++layer) {
        captures_.push_back(2 * layer);
    }
}

void DelStrategy::begin(const RequestStart& request) {
    n_prompt_ = request.prompt.size();
    has_seen_prompt_ = false;
    statistics_.clear();
    hidden_.clear();
    target_.clear();
    decisions_.clear();
}

Proposal DelStrategy::propose(const RoundState& state) {
    learn(state.history);
    choose(static_cast<int>(state.history.size() - n_prompt_));
    Proposal proposal{.captures = captures_};
    const StopRule stop = stop_rule(state.n_room);
    if (stop.n_max > 0) {
        proposal.draft = DraftWithPlan{.plan = &plan_, .stop = stop};
    }
    return proposal;
}

// Learns from the last rows of the prompt at first, then from those of the round before. This
// happens when the next round begins, so a request that ends before never pays for it.
void DelStrategy::learn(std::span<const Token> history) {
    if (!has_seen_prompt_) {
        keep_prompt(history.first(history.size() - 1));
        has_seen_prompt_ = true;
    }
    if (!target_.empty()) {
        const auto shadows = source_->read(hidden_);
        if (!shadows.empty()) {  // otherwise cancelled, or others are busy
            statistics_.add(shadows, target_);
        }
    }
    hidden_.clear();
    target_.clear();
}

void DelStrategy::keep_prompt(std::span<const Token> committed) {
    if (options_.prompt_rows == 0) {
        return;
    }
    const TargetRows rows = source_->last_rows(committed, options_.prompt_rows);
    target_ = rows.choices;
    for (const int capture : rows.tokens.empty() ? std::span<const int>{} : captures_) {
        const std::vector<float>& stream = rows.streams[static_cast<std::size_t>(capture)];
        hidden_.insert(hidden_.end(), stream.begin(), stream.end());
    }
}

void DelStrategy::choose(int n_answered) {
    choice_ = statistics_.best();
    if (decisions_.empty() || exit_layer(plan_) != choice_.n_layers) {
        plan_ = early_exit_plan(n_layers_, choice_.n_layers);
        decisions_.push_back({
            .token = n_answered,
            .source = to_string(plan_),
            .plan = to_string(plan_),
            .reason = concat("layer ", choice_.n_layers, " agrees with the whole model in ",
                             std::lround(100 * statistics_.acceptance(choice_.n_layers)),
                             " % of rows, best draft length ", choice_.draft_length),
            .predicted = choice_.speed,
        });
    }
}

StopRule DelStrategy::stop_rule(int n_room) const {
    if (options_.uses_best_length) {
        return {.n_max = std::min({choice_.draft_length, options_.draft_max, n_room})};
    }
    return {.n_max = std::min(options_.draft_max, n_room),
            .exit_confidence = statistics_.threshold(choice_.n_layers)};
}

// Rows after the first rejected draft belong to another text.
void DelStrategy::observe(const RoundOutcome& outcome) {
    const std::size_t n_rows = outcome.path.size() + 1;
    for (const std::span<const float> stream : outcome.captures) {
        const auto rows = stream.first(n_rows * n_embd_);
        hidden_.insert(hidden_.end(), rows.begin(), rows.end());
    }
    for (std::size_t row = 0; row < n_rows; ++row) {
        target_.push_back(best_token(outcome.logits.row(row)));
    }
}

std::unique_ptr<Strategy> build_del(const SpeculationOptions& options, const StrategyParts& parts) {
    const ModelConfig& config = parts.config;
    return std::make_unique<DelStrategy>(read_del_options(options), config.n_layers, config.n_embd,
                                         std::make_unique<ModelShadows>(parts));
}

}  // namespace knap
