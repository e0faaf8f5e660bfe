// What Kangaroo adds to a model (methods 10): one layer of attention, without an MLP, that takes
// the streams of the model's first layers and ends in the model's head. It lies in a GGUF file of
// its own, of the architecture "kangaroo", and is trained for one model.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/weight_placement.h"
#include "model/weights.h"

namespace knap {

class Adapter {
  public:
    // Checks the file against the model and places its tensors as the model's are, on the device of
    // its head. Throws knap::Error when they do not fit one another. `weights` are the model's and
    // must outlive the adapter.
    Adapter(const std::filesystem::path& path,
            const ModelConfig& model,
            const Weights& weights,
            Backend& backend,
            const WeightOptions& options);
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    int exit_layer() const { return exit_layer_; }  // how many of the model's layers come before it
    // A model of one layer: its streams go in, the model's logits come out.
    const ModelConfig& config() const { return config_; }
    const ModelTensors& tensors() const { return tensors_; }
    // Of the file, without what is the model's.
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
