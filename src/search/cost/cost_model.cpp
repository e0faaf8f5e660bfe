#include "search/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/quantile.h"

namespace knap {

namespace {

// Skips the layers before `entry_layer`.
ModulePlan late_entry_plan(int n_layers, int entry_layer) {
    ModulePlan plan(n_layers);
    for (int layer = 0; layer < entry_layer; ++layer) {
        plan.set(layer, Module::attention, Level::skip);
        plan.set(layer, Module::mlp, Level::skip);
    }
    return plan;
}

}  // namespace

CostModel::CostModel(const CostProfile& profile)
    : layer_classes_(profile.layer_classes),
      layer_windows_(profile.layer_windows),
      expert_shares_(profile.expert_shares),
      reduced_head_(profile.bytes.reduced_share()),
      full_plan_(profile.n_layers()),
      parts_(fit_parts(profile)),
      rows_(fit_rows(profile, parts_)),
      quality_(quality_on(profile.samples)) {}

double CostModel::predicted_ms(const Pass& pass) const {
    KNAP_ASSERT(pass.plan.n_layers() == n_layers(), "the plan is one of this model");
    if (!knows_rows() && pass.n_rows > 1) {
        return pass.n_rows * predicted_ms({pass.plan, pass.n_context, 1, pass.has_head});
    }
    const PassWork work = pass_work(pass.plan, layers(), pass.n_context, pass.n_rows);
    const RowFactors factors = pass.n_rows > 1 ? factors_at(rows_, pass.n_rows) : RowFactors{};
    return parts_.fixed_ms + factors.weights * parts_.weights_ms(work, heads_of(pass)) +
           factors.cache * parts_.cache_ms(work);
}

double CostModel::heads_of(const Pass& pass) const {
    return !pass.has_head ? 0.0 : pass.plan.head() == HeadLevel::reduced ? reduced_head_ : 1.0;
}

FitQuality CostModel::quality_on(std::span<const CostSample> samples) const {
    std::vector<double> errors;
    for (const CostSample& sample : samples) {
        if (is_plausible(sample, n_layers())) {
            const double ms =
                predicted_ms({sample.plan, sample.n_context, sample.n_rows, sample.has_head});
            errors.push_back(std::abs(ms / sample.ms - 1));
        }
    }
    return {.n_samples = static_cast<int>(errors.size()),
            .median_error = median(errors),
            .worst_error = std::ranges::max(errors)};
}

double CostModel::pass_ms(const ModulePlan& plan, int n_context, int n_rows) const {
    return predicted_ms({plan, n_context, n_rows, /*has_head=*/true});
}

double CostModel::draft_step_ms(const ModulePlan& plan, int n_context) const {
    return pass_ms(plan, n_context, 1);
}

double CostModel::verify_ms(int n_rows, int n_context) const {
    return pass_ms(full_plan_, n_context, n_rows);
}

std::vector<double> CostModel::verify_times_ms(int n_context, int max_length, int n_others) const {
    std::vector<double> times;
    for (int length = 0; length <= max_length; ++length) {
        times.push_back(verify_ms(n_others + length + 1, n_context));
    }
    return times;
}

// A verification that uses exact layers of the draft shares no pass: others have one of their own.
RoundCost CostModel::round_cost(const ModulePlan& plan,
                                int n_context,
                                int max_length,
                                int n_others) const {
    RoundCost cost{.draft_step_ms = draft_step_ms(plan, n_context),
                   .verify_ms = verify_times_ms(n_context, max_length, n_others)};
    const int n_exact = exact_layers(canonical(plan, n_context));
    if (n_exact == 0) {
        return cost;
    }
    const ModulePlan lower = early_exit_plan(n_layers(), n_exact);
    const ModulePlan upper = late_entry_plan(n_layers(), n_exact);
    const double others_ms = n_others > 0 ? verify_ms(n_others, n_context) : 0;
    const double lower_ms = predicted_ms({lower, n_context, 1, /*has_head=*/false}) + others_ms;
    for (int length = 1; length <= max_length; ++length) {
        cost.verify_ms[static_cast<std::size_t>(length)] =
            lower_ms + pass_ms(upper, n_context, length + 1);
    }
    return cost;
}

std::size_t CostModel::class_of(int layer) const {
    return static_cast<std::size_t>(layer_classes_[static_cast<std::size_t>(layer)]);
}

double CostModel::attention_ms(int layer, const Level& level, int n_context) const {
    if (level == Level::skip) {
        return 0;
    }
    return parts_.attention_ms[class_of(layer)] +
           parts_.cache_row_ms * cache_rows_read(level, layers().window(layer), n_context, 1);
}

double CostModel::mlp_ms(int layer, const Level& level) const {
    if (level == Level::skip) {
        return 0;
    }
    const std::size_t c = class_of(layer);
    return parts_.mlp_ms[c] * layers().expert_share(c).relative(level.n_experts, 1);
}

KindTimes CostModel::kind_times(int n_context) const {
    KindTimes times;
    for (int layer = 0; layer < n_layers(); ++layer) {
        times.attention_ms += attention_ms(layer, Level::full, n_context) / n_layers();
        times.mlp_ms += mlp_ms(layer) / n_layers();
    }
    return times;
}

std::vector<ModuleTimes> CostModel::module_times(int n_context,
                                                 std::span<const Window> windows) const {
    std::vector<Level> levels;
    for (const Window& window : windows) {
        if (window.n_rows() < n_context) {
            levels.push_back(Level::windowed(window.sinks, window.recent));
        }
    }
    std::ranges::sort(levels, std::greater<>(),
                      [](const Level& level) { return level.window.n_rows(); });
    levels.push_back(Level::skip);

    std::vector<ModuleTimes> modules;
    for (int layer = 0; layer < n_layers(); ++layer) {
        ModuleTimes attention{.full_ms = attention_ms(layer, Level::full, n_context)};
        const int own_window = layers().window(layer);
        for (const Level& level : levels) {
            if (level == Level::skip || level.window.narrows(own_window)) {
                attention.cheaper.push_back({level, attention_ms(layer, level, n_context)});
            }
        }
        modules.push_back(attention);
        ModuleTimes mlp{.full_ms = mlp_ms(layer)};
        const int n_used = layers().expert_share(class_of(layer)).experts.n_used;
        if (n_used > 1) {
            const Level half = Level::with_experts(n_used / 2);
            mlp.cheaper.push_back({half, mlp_ms(layer, half)});
        }
        mlp.cheaper.push_back({Level::skip, 0});
        modules.push_back(mlp);
    }
    return modules;
}

}  // namespace knap
