#include "model/adapter.h"

#include <limits>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/quoted.h"
#include "device/layer_map.h"
#include "model/architectures/architecture.h"
#include "model/config_reader.h"
#include "model/tensor_table.h"

namespace knap {
namespace {

constexpr int kFormat = 1;

void check_architecture(const GgufFile& file, std::string_view expected) {
    const std::optional<std::string> name = file.string("general.architecture");
    if (name != expected) {
        fail(file.path().string(), ": key general.architecture: expected ", expected,
             " (an adapter), found ", name ? in_quotes(*name) : "no such key");
    }
}

// Files that were written before the format had a number have none.
void check_format(const ConfigReader& reader) {
    const int found = reader.count_or("format", kFormat, std::numeric_limits<int>::max());
    if (found != kFormat) {
        reader.fail_field("format", kFormat, found);
    }
}

// An adapter is one layer of full multi-head attention, as wide as the model.
void check_shape(const ConfigReader& reader, const ModelConfig& config, const ModelConfig& model) {
    if (config.n_layers != 1) {
        reader.fail_field("block_count", 1, config.n_layers);
    }
    if (config.n_embd != model.n_embd) {
        reader.fail_field("embedding_length", concat("the model's ", model.n_embd), config.n_embd);
    }
    if (config.n_embd_q() != config.n_embd) {
        reader.fail_field("attention.head_count",
                          concat("heads that divide the embedding of ", config.n_embd),
                          concat(config.n_heads, " of ", config.head_dim));
    }
    if (config.n_kv_heads != config.n_heads) {
        reader.fail_field("attention.head_count_kv", concat(config.n_heads, ", one per head"),
                          config.n_kv_heads);
    }
}

ModelConfig read_adapter_config(const GgufFile& file, const ModelConfig& model) {
    const Architecture architecture = arch_kangaroo();
    check_architecture(file, architecture.name);
    const ConfigReader reader(file, architecture.name);
    check_format(reader);
    ModelConfig config = read_attention_config(file, architecture);
    check_shape(reader, config, model);
    config.n_vocab = model.n_vocab;
    // The head is the model's.
    config.logit_scale = model.logit_scale;
    config.final_soft_cap = model.final_soft_cap;
    return config;
}

int read_exit_layer(const GgufFile& file, const ModelConfig& config, const ModelConfig& model) {
    return ConfigReader(file, config.architecture).count("exit_layer", model.n_layers - 1);
}

}  // namespace

Adapter::Adapter(const std::filesystem::path& path,
                 const ModelConfig& model,
                 const Weights& weights,
                 Backend& backend,
                 const WeightOptions& options)
    : file_(GgufFile::open(path)),
      config_(read_adapter_config(file_, model)),
      exit_layer_(read_exit_layer(file_, config_, model)) {
    const auto bindings = bind_tensors(file_, config_, arch_kangaroo().tensors, tensors_);
    const LayerMap layers(backend, config_.n_layers);
    check_devices_take(file_, layers, bindings, tensors_);
    placed_.place(file_, plan_placements(bindings, tensors_, layers, options), {});
    tensors_.token_embd = weights.tensors().token_embd;
    tensors_.output = weights.tensors().output;
    tensors_.output_b = weights.tensors().output_b;
}

std::int64_t Adapter::n_parameters() const {
    std::int64_t n = 0;
    for (const TensorInfo& info : file_.tensors()) {
        n += info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3];
    }
    return n;
}

std::int64_t Adapter::n_bytes() const {
    std::int64_t n = 0;
    for (const TensorInfo& info : file_.tensors()) {
        n += static_cast<std::int64_t>(info.n_bytes);
    }
    return n;
}

}  // namespace knap
