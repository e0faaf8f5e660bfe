// A GGUF model of a known shape with random weights: for tests, and for measuring what a model
// costs without having its weights. Metadata and tensors are those of a real checkpoint; the
// vocabulary is a small byte-level one, so text goes in and (meaningless) text comes out.
// Everything follows from the options: same options, same bytes.
//
// Rows are made and written piece by piece, so memory stays within some tens of megabytes whatever
// the model's size. In models of more than a billion parameters the matrices repeat short runs of
// weights (random_weights.h), which makes an 8B model a matter of seconds and changes nothing about
// its cost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace knap {

struct RandomModelOptions {
    std::string shape;          // a name of shapes.h
    std::string type = "Q4_0";  // of all matrices, or the mixture Q4_K_M
    std::string head_type;      // of token_embd and output; empty: as `type` has it
    int n_layers = 0;           // 0: the shape's own
    std::uint64_t seed = 0;
    std::function<void(double fraction)> on_progress;  // may be empty; called on the calling thread
};

// Throws knap::Error when the options describe no model: an unknown shape or type, rows that the
// type cannot store.
void check_random_model(const RandomModelOptions& options);

// Throws as check_random_model() does, and when the file cannot be written. Nothing new stands
// under `path` before the file is whole.
void write_random_model(const RandomModelOptions& options, const std::filesystem::path& path);

std::string random_model_types();  // "F32, F16, ...", for help

}  // namespace knap
