// `knap make-model`: writes a model of a known shape with random weights.
#pragma once

#include <filesystem>

#include <CLI/App.hpp>

#include "tools/make_model/random_model.h"

namespace knap {

struct MakeModelArgs {
    RandomModelOptions options;
    std::filesystem::path output;
};

// Adds the command to `root`; parsing fills `args`, which must outlive it.
CLI::App* add_make_model(CLI::App& root, MakeModelArgs& args);

// Returns the exit code. Throws UsageError on options that describe no model, knap::Error when
// writing fails.
int run_make_model(const MakeModelArgs& args);

}  // namespace knap
