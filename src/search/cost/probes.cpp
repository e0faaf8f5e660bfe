#include "search/cost/probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

namespace knap {

namespace {

constexpr int kShortestContext = 128;
constexpr int kContexts = 5;
// Two sizes separate the cost of a cache row from that of a window.
constexpr std::array kWindows{Window{.sinks = 16, .recent = 64},
                              Window{.sinks = 16, .recent = 512}};
constexpr std::array kRows{2, 3, 4, 5, 6, 8, 10, 12, 16};
// Between the shortest and the longest that pay for most texts (docs/methods.md, "Uniform
// windows").
constexpr Window kUsualWindow{.sinks = 16, .recent = 256};

// Geometrically spaced lengths from the shortest to `longest`.
std::vector<int> geometric_contexts(int longest) {
    const int shortest = std::min(kShortestContext, longest);
    const double ratio = static_cast<double>(longest) / std::max(shortest, 1);
    std::vector<int> contexts;
    for (int i = 0; i < kContexts; ++i) {
        const double factor = std::pow(ratio, static_cast<double>(i) / (kContexts - 1));
        contexts.push_back(std::min(static_cast<int>(std::lround(shortest * factor)), longest));
    }
    return contexts;
}

using IsSkipped = std::function<bool(int layer, Module module)>;

ModulePlan skipping(int n_layers, const IsSkipped& is_skipped) {
    ModulePlan plan(n_layers);
    for (int layer = 0; layer < n_layers; ++layer) {
        for (const Module module : {Module::attention, Module::mlp}) {
            if (is_skipped(layer, module)) {
                plan.set(layer, module, Level::skip);
            }
        }
    }
    return plan;
}

ModulePlan without(int n_layers, Module skipped) {
    return skipping(n_layers, [=](int, Module module) { return module == skipped; });
}

// The numbers of rows to measure: those of kRows up to `max_rows`, and `max_rows` itself.
std::vector<int> row_counts(int max_rows) {
    std::vector<int> counts;
    std::ranges::copy_if(kRows, std::back_inserter(counts), [=](int n) { return n <= max_rows; });
    if (max_rows > 1 && counts.back() != max_rows) {
        counts.push_back(max_rows);
    }
    return counts;
}

// Collects probes without duplicates.
class ProbeList {
  public:
    explicit ProbeList(std::span<const int> layer_classes)
        : classes_(layer_classes), n_layers_(static_cast<int>(layer_classes.size())) {}

    void add(Probe probe) {
        if (std::ranges::find(probes_, probe) == probes_.end()) {
            probes_.push_back(std::move(probe));
        }
    }

    void add_whole(int n_context, int n_rows = 1) {
        add({.plan = ModulePlan(n_layers_), .n_context = n_context, .n_rows = n_rows});
    }

    // Only the head runs.
    void add_head(int n_context) {
        add({.plan = early_exit_plan(n_layers_, 0), .n_context = n_context});
    }

    void add_headless(int n_context) {
        add({.plan = ModulePlan(n_layers_), .n_context = n_context, .has_head = false});
    }

    void add_without(Module skipped, int n_context) {
        add({.plan = without(n_layers_, skipped), .n_context = n_context});
    }

    // A window that covers the context would be full attention.
    void add_window(Window window, int n_context) {
        if (window.n_rows() < n_context) {
            add({.plan = uniform_window_plan(n_layers_, window), .n_context = n_context});
        }
    }

    // With several classes: each class without its attentions, and without its MLPs.
    void add_classes(int n_context) {
        const int n_classes = std::ranges::max(classes_) + 1;
        for (int c = 0; c < n_classes && n_classes > 1; ++c) {
            for (const Module skipped : {Module::attention, Module::mlp}) {
                const auto is_skipped = [&](int layer, Module module) {
                    return module == skipped && classes_[static_cast<std::size_t>(layer)] == c;
                };
                add({.plan = skipping(n_layers_, is_skipped), .n_context = n_context});
            }
        }
    }

    std::vector<Probe> take() { return std::move(probes_); }

  private:
    std::span<const int> classes_;
    int n_layers_;
    std::vector<Probe> probes_;
};

}  // namespace

std::vector<Probe> profile_probes(std::span<const int> layer_classes,
                                  int max_context,
                                  int max_rows) {
    const std::vector<int> contexts = geometric_contexts(max_context);
    const int middle = contexts[kContexts / 2];
    ProbeList probes(layer_classes);
    for (const int n_context : contexts) {
        probes.add_whole(n_context);
    }
    for (const int n_context : {middle, max_context}) {
        for (const Window& window : kWindows) {
            probes.add_window(window, n_context);
        }
        probes.add_without(Module::mlp, n_context);
    }
    probes.add_without(Module::attention, middle);
    probes.add_headless(middle);
    probes.add_head(middle);
    probes.add_classes(middle);
    for (const int n_rows : row_counts(max_rows)) {
        for (const int n_context : {contexts.front(), middle, max_context}) {
            probes.add_whole(n_context, n_rows);
        }
    }
    return probes.take();
}

std::vector<Probe> first_probes(std::span<const int> layer_classes, int n_context, int max_rows) {
    ProbeList probes(layer_classes);
    const auto add_whole = [&](int n_rows) {
        probes.add_whole(n_context, std::clamp(n_rows, 1, std::max(max_rows, 1)));
    };
    // The cost of several rows decides whether drafts can pay at all; after that, the cost of a
    // draft step matters.
    add_whole(1);
    add_whole(4);
    probes.add_window(kUsualWindow, n_context);
    add_whole(8);
    probes.add_head(n_context);
    probes.add_without(Module::attention, n_context);
    add_whole(2);
    add_whole(16);
    return probes.take();
}

bool is_decisive(const Probe& probe) {
    return probe.plan.is_full() || !distinct_windows(probe.plan).empty();
}

}  // namespace knap
