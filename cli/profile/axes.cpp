#include "cli/profile/axes.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace knap {
namespace {

bool is_whole_pass(const CostSample& sample) {
    return sample.plan.is_full() && sample.has_head;
}

// True for a pass of one row with the head, every MLP, and every attention at `level`.
bool is_uniform(const CostSample& sample, const Level& level) {
    ModulePlan uniform(sample.plan.n_layers());
    for (int layer = 0; layer < uniform.n_layers(); ++layer) {
        uniform.set(layer, Module::attention, level);
    }
    return sample.n_rows == 1 && sample.has_head && sample.plan == uniform;
}

double all_attentions_ms(const CostModel& costs, const Level& level, int n_context) {
    double ms = 0;
    for (int layer = 0; layer < costs.n_layers(); ++layer) {
        ms += costs.attention_ms(layer, level, n_context);
    }
    return ms;
}

}  // namespace

std::vector<int> measured_contexts(const CostProfile& profile) {
    std::set<int> contexts;
    for (const CostSample& sample : profile.samples) {
        contexts.insert(sample.n_context);
    }
    return {contexts.begin(), contexts.end()};
}

std::vector<int> measured_rows(const CostProfile& profile) {
    std::set<int> rows;
    for (const CostSample& sample : profile.samples) {
        if (is_whole_pass(sample)) {
            rows.insert(sample.n_rows);
        }
    }
    return {rows.begin(), rows.end()};
}

std::vector<Level> measured_levels(const CostProfile& profile) {
    std::set<Window> windows;
    for (const CostSample& sample : profile.samples) {
        const auto found = distinct_windows(sample.plan);
        windows.insert(found.begin(), found.end());
    }
    std::vector<Level> levels{Level::full};
    for (const Window& window : windows) {
        levels.push_back(Level::windowed(window.sinks, window.recent));
    }
    return levels;
}

const CostSample* whole_pass(const CostProfile& profile, int n_context, int n_rows) {
    const auto found = std::ranges::find_if(profile.samples, [=](const CostSample& sample) {
        return is_whole_pass(sample) && sample.n_context == n_context && sample.n_rows == n_rows;
    });
    return found == profile.samples.end() ? nullptr : &*found;
}

std::vector<LayerClass> layer_classes(const CostProfile& profile) {
    std::vector<LayerClass> classes;
    for (int layer = 0; layer < profile.n_layers(); ++layer) {
        const auto index =
            static_cast<std::size_t>(profile.layer_classes[static_cast<std::size_t>(layer)]);
        if (index >= classes.size()) {
            classes.resize(index + 1, {.first = layer});
        }
        ++classes[index].n_layers;
    }
    return classes;
}

std::string class_suffix(const CostProfile& profile, const LayerClass& layer_class) {
    return layer_class.n_layers == profile.n_layers()
               ? ""
               : concat(", ", layer_class.n_layers,
                        layer_class.n_layers == 1 ? " layer like " : " layers like ",
                        layer_class.first);
}

std::string level_name(const Level& level) {
    if (level.kind == Level::Kind::window) {
        return concat("w", level.window.sinks, "+", level.window.recent);
    }
    if (level.kind == Level::Kind::experts) {
        return concat("e", level.n_experts);
    }
    return level == Level::skip ? "skip" : "full";
}

std::optional<double> fitted_ms(const CostModel& costs, const CostSample& sample) {
    if (!sample.has_head && sample.n_rows > 1) {
        return std::nullopt;
    }
    const double ms = costs.pass_ms(sample.plan, sample.n_context, sample.n_rows);
    return sample.has_head ? ms : ms - costs.head_ms();
}

std::vector<AttentionPoint> attention_points(const CostProfile& profile,
                                             const CostModel& costs,
                                             int layer,
                                             const Level& level) {
    std::vector<AttentionPoint> points;
    for (const CostSample& sample : profile.samples) {
        if (is_uniform(sample, level)) {
            const double fitted = all_attentions_ms(costs, level, sample.n_context);
            const double residual =
                sample.ms - costs.pass_ms(sample.plan, sample.n_context, sample.n_rows);
            points.push_back({sample.n_context, costs.attention_ms(layer, level, sample.n_context) *
                                                    (1 + residual / fitted)});
        }
    }
    return points;
}

}  // namespace knap
