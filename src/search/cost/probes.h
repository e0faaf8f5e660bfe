// Which passes are measured, so that the parts of a pass can be told from their times.
#pragma once

#include <span>
#include <vector>

#include "graph/module_plan.h"

namespace knap {

// A pass to measure.
struct Probe {
    ModulePlan plan;
    int n_context = 0;
    int n_rows = 1;
    bool has_head = true;

    bool operator==(const Probe&) const = default;
};

// What `knap profile` measures: every part at several context lengths up to `max_context`, and
// passes of up to `max_rows` rows. Each probe comes once.
std::vector<Probe> profile_probes(std::span<const int> layer_classes,
                                  int max_context,
                                  int max_rows);

// The few passes that tell most about drafting at the context at hand, most telling first: what a
// request measures when there is no profile. The first is a step of plain decoding.
std::vector<Probe> first_probes(std::span<const int> layer_classes, int n_context, int max_rows);

}  // namespace knap
