// Writes a GGUF model of a known shape with random weights, for tests and for measuring what a
// model costs without its weights. Metadata and tensors are those of a real checkpoint. The
// vocabulary is a small byte-level one, so the model reads and writes (meaningless) text. The file
// depends only on the options: same options, same bytes.
//
// Rows are generated and written in pieces, so memory stays within some tens of megabytes whatever
// the size of the model. In models of more than a billion parameters the matrices repeat short runs
// of weights (random_weights.h). That makes an 8B model in seconds and does not affect its cost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace knap {

struct RandomModelOptions {
    std::string shape;          // a name from shapes.h
    std::string type = "Q4_0";  // of all matrices, or the mixture Q4_K_M
    std::string head_type;      // of token_embd and output; empty: given by `type`
    int n_layers = 0;           // 0: as in the shape
    std::uint64_t seed = 0;
    std::function<void(double fraction)> on_progress;  // may be empty; called on the calling thread
};

// Throws knap::Error when the options describe no model: an unknown shape or type, or rows that the
// type cannot store.
void check_random_model(const RandomModelOptions& options);

// Throws like check_random_model(), and when the file cannot be written. `path` is replaced only
// when the file is complete.
void write_random_model(const RandomModelOptions& options, const std::filesystem::path& path);

std::string random_model_types();  // for help texts: "F32, F16, ..."

}  // namespace knap
