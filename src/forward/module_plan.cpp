#include "forward/module_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace knap {

void ModulePlan::skip_from(int layer) {
    for (; layer < n_layers(); ++layer) {
        set(layer, Module::attention, Level::skip);
        set(layer, Module::mlp, Level::skip);
    }
}

bool ModulePlan::is_full() const {
    return head_ == HeadLevel::full &&
           std::ranges::all_of(levels_, [](const Level& level) { return level == Level::full; });
}

std::size_t ModulePlan::hash() const {
    std::uint64_t state = mix_in(levels_.size(), static_cast<std::uint64_t>(head_));
    for (const Level& level : levels_) {
        state = mix_in(state, static_cast<std::uint64_t>(level.kind));
        state = mix_in(state, static_cast<std::uint64_t>(level.window.sinks));
        state = mix_in(state, static_cast<std::uint64_t>(level.window.recent));
        state = mix_in(state, static_cast<std::uint64_t>(level.n_experts));
    }
    return state;
}

ModulePlan early_exit_plan(int n_layers, int exit_layer) {
    ModulePlan plan(n_layers);
    plan.skip_from(exit_layer);
    return plan;
}

ModulePlan uniform_window_plan(int n_layers, Window window) {
    ModulePlan plan(n_layers);
    for (int layer = 0; layer < n_layers; ++layer) {
        plan.set(layer, Module::attention, Level::windowed(window.sinks, window.recent));
    }
    return plan;
}

ModulePlan uniform_window_plan(Window window, std::span<const int> own_windows) {
    const auto n_layers = static_cast<int>(own_windows.size());
    return within_own_windows(uniform_window_plan(n_layers, window), own_windows);
}

int exact_layers(const ModulePlan& plan) {
    int layer = 0;
    while (layer < plan.n_layers() && plan.level(layer, Module::attention) == Level::full &&
           plan.level(layer, Module::mlp) == Level::full) {
        ++layer;
    }
    return layer;
}

int exit_layer(const ModulePlan& plan) {
    int n_layers = plan.n_layers();
    while (n_layers > 0 && !plan.runs(n_layers - 1, Module::attention) &&
           !plan.runs(n_layers - 1, Module::mlp)) {
        --n_layers;
    }
    return n_layers;
}

int most_experts(const ModulePlan& plan) {
    int most = 0;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        most = std::max(most, plan.level(layer, Module::mlp).n_experts);
    }
    return most;
}

std::vector<Window> distinct_windows(const ModulePlan& plan) {
    std::vector<Window> windows;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const Level& level = plan.level(layer, Module::attention);
        if (level.kind == Level::Kind::window) {
            windows.push_back(level.window);
        }
    }
    std::ranges::sort(windows);
    windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
    return windows;
}

ModulePlan canonical(ModulePlan plan, int n_context) {
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const Level& level = plan.level(layer, Module::attention);
        if (level.kind == Level::Kind::window && level.window.n_rows() >= n_context) {
            plan.set(layer, Module::attention, Level::full);
        }
    }
    return plan;
}

ModulePlan within_own_windows(ModulePlan plan, std::span<const int> own_windows) {
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const Level& level = plan.level(layer, Module::attention);
        if (level.kind == Level::Kind::window &&
            !level.window.narrows(own_windows[static_cast<std::size_t>(layer)])) {
            plan.set(layer, Module::attention, Level::full);
        }
    }
    return plan;
}

void check_windows(const ModulePlan& plan, std::string_view where) {
    const std::size_t n_windows = distinct_windows(plan).size();
    if (n_windows > kMaxWindows) {
        fail(where, ": expected at most ", kMaxWindows, " different windows, found ", n_windows);
    }
}

void check_experts(const ModulePlan& plan, int n_used, std::string_view where) {
    const int n_found = most_experts(plan);
    if (n_found == 0 || n_found < n_used) {
        return;
    }
    if (n_used <= 1) {
        fail(where, ": expected no level with fewer experts, because in this model ",
             n_used == 0 ? "no layer has experts" : "a token uses one", "; found e", n_found);
    }
    fail(where, ": expected 1 to ", n_used - 1, " of the ", n_used,
         " experts that a token uses, found e", n_found);
}

void check_runnable(const ModulePlan& plan,
                    int n_layers,
                    std::string_view where,
                    HeadLevel cheapest_head) {
    if (plan.n_layers() != n_layers) {
        fail(where, ": expected a plan of the model's ", n_layers, " layers, found one of ",
             plan.n_layers());
    }
    check_windows(plan, where);
    if (plan.head() == HeadLevel::reduced && cheapest_head == HeadLevel::full) {
        fail(where,
             ": expected head=full, because this model's output matrix is repacked and not kept in "
             "rows that a part could be taken of (`.repack` off keeps them); found head=reduced");
    }
}

}  // namespace knap
