#include "runtime/scheduling/pass_times.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

namespace {

// A cautious guess, for the first prompt that comes while others decode.
constexpr int kFirstPromptRows = 16;
constexpr int kMaxPromptRows = 1 << 20;  // keeps the number an int
constexpr double kPassWeight = 0.125;
constexpr double kMaxPriceWeight = 0.5;

}  // namespace

PassSample sample_of(std::span<const RowRun* const> runs, double ms) {
    const ForwardRequest& first = runs.front()->request;  // the others have the same plan
    const bool is_full = first.plan == nullptr || first.plan->is_full();
    PassSample sample{.is_whole_model = is_full && first.entry_layer == 0, .ms = ms};
    for (const RowRun* run : runs) {
        const bool is_prompt = run->request.kind == PassKind::prompt;
        (is_prompt ? sample.n_prompt_rows : sample.n_decode_rows) += run->n_rows;
    }
    return sample;
}

PassTimes::PassTimes(double target_ms)
    : target_ms_(target_ms),
      row_ms_(target_ms / kFirstPromptRows),
      pass_ms_(kPassWeight),
      step_ms_(kPassWeight),
      step_rows_(kPassWeight) {
    KNAP_ASSERT(target_ms > 0, "prompts need some time to make progress");
}

void PassTimes::add(const PassSample& sample) {
    pass_ms_.add(sample.ms);
    if (sample.n_prompt_rows == 0) {
        if (sample.is_whole_model) {
            step_ms_.add(sample.ms);
            step_rows_.add(sample.n_decode_rows);
        }
        return;
    }
    const double step_ms = sample.n_decode_rows > 0 ? step_ms_.value() : 0;
    const double n_more = std::max(0.0, sample.n_decode_rows - step_rows_.value());
    const double row_ms = std::max(0.0, sample.ms - step_ms) / (sample.n_prompt_rows + n_more);
    const double share = static_cast<double>(sample.n_prompt_rows) / max_prompt_rows();
    row_ms_ += kMaxPriceWeight * std::min(1.0, share) * (row_ms - row_ms_);
}

int PassTimes::max_prompt_rows() const {
    if (target_ms_ >= row_ms_ * kMaxPromptRows) {
        return kMaxPromptRows;
    }
    return std::max(1, static_cast<int>(target_ms_ / row_ms_));
}

}  // namespace knap
