// The adapter that Kangaroo adds to a model (docs/methods.md, "Kangaroo"): one layer of attention,
// without an MLP, that reads the streams of the model's first layers and feeds the model's head. It
// is trained for one model and stored in its own GGUF file, of the architecture "kangaroo".
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/placement/weight_placement.h"
#include "model/weights.h"

namespace knap {

class Adapter {
  public:
    // Checks the file against the model and places its tensors, like the model's own, on the device
    // of the head. Throws knap::Error when they do not fit together. `weights` are the model's and
    // must outlive the adapter.
    Adapter(const std::filesystem::path& path,
            const ModelConfig& model,
            const Weights& weights,
            Backend& backend,
            const WeightOptions& options);
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    int exit_layer() const { return exit_layer_; }  // number of model layers before it
    // The adapter as a model of one layer, from the model's streams to the model's logits.
    const ModelConfig& config() const { return config_; }
    const ModelTensors& tensors() const { return tensors_; }
    // Of the adapter's file only, without the tensors shared with the model.
    std::int64_t n_parameters() const;
    std::int64_t n_bytes() const;

  private:
    GgufFile file_;
    ModelConfig config_;
    int exit_layer_;
    ModelTensors tensors_;
    PlacedTensors placed_;
};

}  // namespace knap
