// Times of passes as they were measured on one machine: what a CostModel is fitted to.
#pragma once

#include <vector>

#include "graph/module_plan.h"

namespace knap {

struct ModelCost;

// A pass whose time is known: all its rows follow `n_context` committed rows, and all have logits
// where it has a head.
struct CostSample {
    ModulePlan plan;
    int n_context = 0;
    int n_rows = 1;
    bool has_head = true;
    double ms = 0;         // median
    double spread_ms = 0;  // half of the distance between the quartiles
    int n_measured = 1;
};

// What the parts of a pass read. A guess at their times follows from it, for what the samples leave
// open. All zero: not known.
struct PartBytes {
    std::vector<double> attention{};  // [class] weights of one attention
    std::vector<double> mlp{};        // [class] weights of one MLP
    double head = 0;
    double reduced_head = 0;
    double cache_row = 0;  // of one attention: a row of keys and one of values

    double reduced_share() const;  // of the head that a reduced one reads; 1: not known
};

// Everything that was measured of one model on one machine.
struct CostProfile {
    // [n_layers] layers of one class have matrices of the same types and shapes: they cost the same
    std::vector<int> layer_classes{};
    std::vector<CostSample> samples{};
    PartBytes bytes{};

    // What a pass runs of the whole head: all, the share that a reduced one has, or none.
    double heads(const ModulePlan& plan, bool has_head) const;
    int n_layers() const { return static_cast<int>(layer_classes.size()); }
    int n_classes() const;
};

// A profile without samples. The first layer of a class speaks for all of it.
CostProfile empty_profile(const ModelCost& model, std::vector<int> layer_classes);

// Whether the sample is one of a model of `n_layers` layers, with a time that can be: a profile may
// come from a file.
bool is_plausible(const CostSample& sample, int n_layers);
// Whether it is, besides, a step of plain decoding: the whole model over one row.
bool is_plain_step(const CostSample& sample, int n_layers);

// The longest at which anything was measured; 0 where nothing was.
int longest_context(const CostProfile& profile);

// Whether a CostModel can be made of it: it has a step of plain decoding, and classes that are
// counted from 0.
bool can_fit(const CostProfile& profile);

}  // namespace knap
