// `knap make-model`: writes a model with random weights in the shape of a known one.
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

// Returns the exit code. Throws UsageError for options that describe no valid model, and
// knap::Error when writing fails.
int run_make_model(const MakeModelArgs& args);

}  // namespace knap
