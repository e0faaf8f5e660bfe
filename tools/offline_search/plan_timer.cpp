#include "tools/offline_search/plan_timer.h"

#include <cstddef>
#include <utility>

namespace knap {
namespace {

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

}  // namespace

PlanTimer::PlanTimer(Engine& engine,
                     std::vector<std::vector<Token>> prompts,
                     int n_predict,
                     std::function<bool()> is_cancelled)
    : prompts_(std::move(prompts)), n_predict_(n_predict), is_cancelled_(std::move(is_cancelled)) {
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
        sessions_.emplace_back(engine);
    }
}

bool PlanTimer::read_prompts(const std::function<void(double fraction)>& on_progress) {
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
        on_progress(static_cast<double>(i) / static_cast<double>(prompts_.size()));
        if (!generate(i, plain_decoding())) {
            return false;
        }
    }
    return true;
}

std::optional<TrialSpeed> PlanTimer::measure(const SpeculationOptions& speculation) {
    double plain_ms = 0;
    double ms = 0;
    int n_tokens = 0;
    int n_drafted = 0;
    int n_accepted = 0;
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
        const auto plain = generate(i, plain_decoding());
        const auto drafted = plain ? generate(i, speculation) : std::nullopt;
        if (!drafted) {
            return std::nullopt;
        }
        plain_ms += plain->timings.decode_ms;
        ms += drafted->timings.decode_ms;
        n_tokens += drafted->n_generated;
        n_drafted += drafted->speculation.n_drafted;
        n_accepted += drafted->speculation.n_accepted;
    }
    return TrialSpeed{
        .speed = ratio(plain_ms, ms),
        .tokens_per_second = ratio(1e3 * n_tokens, ms),
        .acceptance_rate = ratio(n_accepted, n_drafted),
    };
}

std::optional<Result> PlanTimer::generate(std::size_t prompt,
                                          const SpeculationOptions& speculation) {
    Session& session = sessions_[prompt];
    session.forget_strategies();  // no trial benefits from an earlier one of the same plan
    Result result = session.generate(
        prompts_[prompt], {.n_predict = n_predict_, .speculation = speculation, .ignore_eos = true},
        {.is_cancelled = is_cancelled_});
    if (result.stop == StopReason::cancelled) {
        return std::nullopt;
    }
    return result;
}

}  // namespace knap
