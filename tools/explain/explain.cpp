#include "tools/explain/explain.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "decode/advance.h"
#include "decode/knapspec/options.h"
#include "decode/knapspec/source_rating.h"
#include "forward/plan_text.h"
#include "runtime/session_impl.h"
#include "search/cost/cost_model.h"
#include "tools/explain/candidate_plans.h"
#include "tools/profile/profiling.h"

namespace knap {
namespace {

constexpr std::array kPricedRows{1, 2, 4, 8};
// Runs besides the trials of candidates: plain decoding, lookup, knapspec.
constexpr int kOtherRuns = 3;

class Explainer {
  public:
    Explainer(Engine& engine,
              std::span<const Token> prompt,
              const ExplainOptions& options,
              const ExplainObserver& observer)
        : engine_(engine),
          prompt_(prompt),
          options_(options),
          observer_(observer),
          session_(impl_of(engine)) {}

    std::optional<Explanation> run();

  private:
    // These return false when cancelled.
    bool know_costs();
    bool read_prompt();
    bool find_candidates();
    bool run_strategies();

    PlanCandidate rated(const PooledPlan& pooled) const;
    std::optional<Result> generate(const SpeculationOptions& speculation);
    std::optional<Trial> try_strategy(const SpeculationOptions& speculation);
    void report(std::string_view stage, double fraction) const;

    int n_context() const { return static_cast<int>(prompt_.size()); }
    int n_layers() const { return session_.engine.model.n_layers; }
    std::span<PlanCandidate> tried_candidates() {
        std::vector<PlanCandidate>& all = explanation_.candidates;
        return std::span(all).first(
            std::min(all.size(), static_cast<std::size_t>(std::max(options_.max_trials, 0))));
    }

    Engine& engine_;
    std::span<const Token> prompt_;
    const ExplainOptions& options_;
    const ExplainObserver& observer_;
    Session::Impl session_;
    const PlanScoutOptions scout_ = read_knapspec_options({}).scout;
    std::optional<CostModel> costs_;
    int n_runs_ = 0;
    Explanation explanation_;
};

std::optional<Explanation> Explainer::run() {
    session_.check_prompt(prompt_);
    explanation_.n_prompt = n_context();
    if (!know_costs() || !read_prompt() || !find_candidates() || !run_strategies()) {
        return std::nullopt;
    }
    explanation_.chosen =
        chosen_plan(explanation_.knapspec.result.decisions, explanation_.candidates, n_layers());
    return std::move(explanation_);
}

// Costs measured here go into the session, so knapspec uses them too.
bool Explainer::know_costs() {
    if (session_.has_memory()) {
        explanation_.learned = session_.known.learned;
    }
    explanation_.has_saved_costs =
        can_fit(session_.known.profile) && !session_.known.profile.is_partial;
    if (!explanation_.has_saved_costs) {
        auto measured =
            profile_engine(engine_, options_.profile_seconds,
                           {.on_progress = [this](double fraction) { report("measure", fraction); },
                            .is_cancelled = observer_.is_cancelled});
        if (!measured) {
            return false;
        }
        session_.known.profile = std::move(*measured);
    }
    costs_.emplace(session_.known.profile);
    explanation_.plain_step_ms = costs_->plain_step_ms(n_context());
    for (const int n_rows : kPricedRows) {
        const double ms = costs_->verify_ms(n_rows, n_context());
        explanation_.verify.push_back({n_rows, ms / explanation_.plain_step_ms});
    }
    return true;
}

// The rows stay in the session; every run starts from them.
bool Explainer::read_prompt() {
    session_.forward.set_cancel(&observer_.is_cancelled);
    session_.history.assign(prompt_.begin(), prompt_.end());
    return advance(
               session_.forward, session_.cache, prompt_,
               [this](int n_rows) { report("prompt", static_cast<double>(n_rows) / n_context()); })
        .has_value();
}

PlanCandidate Explainer::rated(const PooledPlan& pooled) const {
    const RoundCost cost = costs_->round_cost(pooled.plan, n_context(), scout_.max_length);
    // One row of a verification is the pending token, which is not drafted.
    const int max_length = std::min(scout_.max_length, session_.max_verify_rows() - 1);
    const SourceRating rating = rate_plan(pooled.acceptance.by_depth(), cost, max_length);
    return {.plan = pooled.plan,
            .draft_ratio = cost.draft_step_ms / explanation_.plain_step_ms,
            .acceptance = pooled.acceptance.rate(),
            .length = rating.length,
            .predicted_speed = rating.tokens_per_ms() * explanation_.plain_step_ms};
}

bool Explainer::find_candidates() {
    report("search", 0);
    session_.forward.set_cancel(&observer_.is_cancelled);
    const auto plans = find_candidate_plans(session_, prompt_, *costs_, scout_);
    if (!plans) {
        return false;
    }
    const auto& [pool, found] = *plans;
    auto& candidates = explanation_.candidates;
    for (int i = 0; i < pool.n_plans(); ++i) {
        if (canonical(pool.at(i).plan, n_context()).is_full()) {
            continue;
        }
        candidates.push_back(rated(pool.at(i)));
        const auto replayed = std::ranges::find(found, pool.at(i).plan, &FoundPlan::plan);
        if (replayed != found.end()) {
            candidates.back().replay = *replayed;
        }
    }
    std::ranges::stable_sort(candidates, std::ranges::greater{}, &PlanCandidate::predicted_speed);
    return true;
}

std::optional<Result> Explainer::generate(const SpeculationOptions& speculation) {
    const auto n_all = static_cast<double>(tried_candidates().size() + kOtherRuns);
    report("runs", n_runs_++ / n_all);
    Result result =
        session_.generate(prompt_, {.n_predict = options_.n_predict, .speculation = speculation},
                          {.is_cancelled = observer_.is_cancelled});
    if (result.stop == StopReason::cancelled) {
        return std::nullopt;
    }
    return result;
}

std::optional<Trial> Explainer::try_strategy(const SpeculationOptions& speculation) {
    auto result = generate(speculation);
    if (!result) {
        return std::nullopt;
    }
    const double plain_ms = explanation_.plain.timings.decode_ms;
    const double ms = result->timings.decode_ms;
    const bool is_plain_text = result->tokens == explanation_.plain.tokens;
    return Trial{.result = std::move(*result),
                 .speed = ms > 0 ? plain_ms / ms : 0,
                 .is_plain_text = is_plain_text};
}

bool Explainer::run_strategies() {
    auto plain = generate(plain_decoding());
    if (!plain) {
        return false;
    }
    explanation_.plain = std::move(*plain);
    for (PlanCandidate& candidate : tried_candidates()) {
        if (candidate.length == 0) {
            continue;
        }
        candidate.trial = try_strategy({.strategy = "static",
                                        .draft_max = candidate.length,
                                        .settings = {{"plan", to_string(candidate.plan)}}});
        if (!candidate.trial) {
            return false;
        }
    }
    auto lookup = try_strategy({.strategy = "lookup"});
    auto knapspec = lookup ? try_strategy({.strategy = "knapspec"}) : std::nullopt;
    if (!knapspec) {
        return false;
    }
    explanation_.lookup = std::move(*lookup);
    explanation_.knapspec = std::move(*knapspec);
    return true;
}

void Explainer::report(std::string_view stage, double fraction) const {
    if (observer_.on_progress) {
        observer_.on_progress(stage, fraction);
    }
}

}  // namespace

std::optional<ModulePlan> chosen_plan(std::span<const Decision> decisions,
                                      std::span<const PlanCandidate> candidates,
                                      int n_layers) {
    if (decisions.empty() || decisions.back().plan.empty()) {
        return std::nullopt;
    }
    const Decision& last = decisions.back();
    ModulePlan plan = parse_plan(last.plan, n_layers, "decision");
    const auto candidate = std::ranges::find(candidates, plan, &PlanCandidate::plan);
    const double speed =
        candidate == candidates.end() ? last.predicted : candidate->predicted_speed;
    return speed >= 1 ? std::optional(std::move(plan)) : std::nullopt;
}

std::optional<Explanation> explain(Engine& engine,
                                   std::span<const Token> prompt,
                                   const ExplainOptions& options,
                                   const ExplainObserver& observer) {
    return Explainer(engine, prompt, options, observer).run();
}

}  // namespace knap
