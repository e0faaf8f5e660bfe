// Selects the passes to measure, so that the times of their parts can be separated.
#pragma once

#include <span>
#include <vector>

#include "forward/module_plan.h"

namespace knap {

// A pass to measure.
struct Probe {
    ModulePlan plan;
    int n_context = 0;
    int n_rows = 1;
    bool has_head = true;

    bool operator==(const Probe&) const = default;
};

// The probes of `knap profile`: every part at several context lengths up to `max_context`, and
// passes of up to `max_rows` rows. No probe repeats.
std::vector<Probe> profile_probes(std::span<const int> layer_classes,
                                  int max_context,
                                  int max_rows);

// The probes of a request without a profile: the few passes that say most about drafting at the
// current context, most informative first. The first is a step of plain decoding.
std::vector<Probe> first_probes(std::span<const int> layer_classes, int n_context, int max_rows);
// Whether it is of the kind without which no draft has a price: the whole model, or a window.
bool is_decisive(const Probe& probe);

}  // namespace knap
