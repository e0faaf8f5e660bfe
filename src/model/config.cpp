#include "model/config.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"
#include "model/architectures/architecture.h"
#include "model/architectures/experts.h"
#include "model/architectures/sliding_window.h"
#include "model/architectures/unsupported.h"
#include "model/config_reader.h"
#include "model/gguf/gguf_file.h"
#include "model/rope_config.h"

namespace knap {
namespace {

// Above every known model, and low enough that no product of two of them overflows.
constexpr int kMaxLayers = 1024;
constexpr int kMaxEmbedding = 1 << 18;
constexpr int kMaxFeedForward = 1 << 20;
constexpr int kMaxHeads = 1 << 12;
constexpr int kMaxHeadDim = 1 << 12;
constexpr int kMaxVocabulary = 1 << 22;
constexpr int kMaxContext = std::numeric_limits<int>::max();

// Fields that change what a model computes in ways that knap does not support. Converters write
// some of them into every file, with a value that changes nothing.
struct UnsupportedField {
    std::string_view field;
    const char* meaning;
    const char* nearest;  // the architecture that runs and comes closest to one with the field
    double neutral;       // a value that changes nothing, as 0 always does
};
constexpr UnsupportedField kUnsupportedFields[] = {
    {kExpertCount, "a mixture of experts", "qwen3moe", 1},  // 1: their tensors are those of an MLP
    {"expert_group_count", "experts in groups", "qwen3moe", 1},
    {"expert_weights_scale", "scaled weights of experts", "qwen3moe", 1},
    {kPredictLayers, "layers for multi-token prediction", "exaone4", 0},
    {"attention.scale", "a custom attention scale", "granite", 0},
    {"attention.clamp_kqv", "clamped queries, keys and values", "llama", 0},
    {"attention.max_alibi_bias", "ALiBi positions", "llama", 0},
    {"residual_scale", "scaled residuals", "granite", 1},
    {"embedding_scale", "scaled embeddings", "granite", 1},
    {"logit_scale", "scaled logits", "granite", 1},
    {"attention.temperature_scale", "attention that sharpens with the position", "mistral3", 0},
};

void reject_unsupported(const ConfigReader& reader, const Architecture& architecture) {
    for (const UnsupportedField& unsupported : kUnsupportedFields) {
        if (architecture.reads(unsupported.field)) {
            continue;
        }
        const double value = reader.number(unsupported.field).value_or(0.0f);
        if (value != 0 && value != unsupported.neutral) {
            reader.fail_unsupported(unsupported.field, "none", value, unsupported.meaning,
                                    unsupported.nearest);
        }
    }
    if (!reader.file().boolean(reader.key("attention.causal")).value_or(true)) {
        reader.fail_unsupported("attention.causal", "true", "false", "an encoder", "llama");
    }
}

// A window at least as long as the context hides nothing.
void reject_sliding_window(const ConfigReader& reader, int n_ctx_train) {
    const std::uint64_t window = reader.file().integer(reader.key(kWindow)).value_or(0);
    if (window != 0 && std::cmp_less(window, n_ctx_train)) {
        reader.fail_unsupported(kWindow, "none", window, "attention to recent positions", "gemma3");
    }
}

const Architecture& read_architecture(const GgufFile& file) {
    const std::optional<std::string> name = file.string("general.architecture");
    const Architecture* architecture = name ? find_architecture(*name) : nullptr;
    if (architecture == nullptr) {
        fail(file.path().string(), ": key general.architecture: expected one of ",
             join(architectures(), ", ", &Architecture::name), ", found ",
             name ? in_quotes(*name) + why_unsupported(*name) : "no such key");
    }
    return *architecture;
}

void read_heads(const ConfigReader& reader, ModelConfig& config) {
    const int n_layers = config.n_layers_of_file();
    const auto n_heads = reader.uniform_count("attention.head_count", n_layers, kMaxHeads);
    if (!n_heads) {
        reader.fail_field("attention.head_count", concat("1 to ", kMaxHeads), "no such key");
    }
    config.n_heads = *n_heads;
    config.n_kv_heads =
        reader.uniform_count("attention.head_count_kv", n_layers, kMaxHeads).value_or(*n_heads);
    if (config.n_heads % config.n_kv_heads != 0) {
        reader.fail_field("attention.head_count_kv",
                          concat("a divisor of the ", config.n_heads, " heads"), config.n_kv_heads);
    }
}

void read_head_dim(const ConfigReader& reader, ModelConfig& config) {
    const int default_dim = config.n_embd / config.n_heads;
    config.head_dim = reader.count_or("attention.key_length", default_dim, kMaxHeadDim);
    const int value_dim = reader.count_or("attention.value_length", default_dim, kMaxHeadDim);
    if (value_dim != config.head_dim) {
        reader.fail_unsupported(
            "attention.value_length", concat("the size of keys, ", config.head_dim), value_dim,
            "values of another size", concat(reader.architecture(), " with one size"));
    }
    if (config.head_dim < 2 || config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
        reader.fail_field("attention.key_length", concat("an even number up to ", kMaxHeadDim),
                          config.head_dim);
    }
}

float read_rms_eps(const ConfigReader& reader) {
    constexpr char kField[] = "attention.layer_norm_rms_epsilon";
    const std::optional<float> eps = reader.number(kField);
    if (!eps) {
        reader.fail_field(kField, "a number", "no such key");
    }
    if (*eps < 0.0f) {
        reader.fail_field(kField, "0 or more", *eps);
    }
    return *eps;
}

int read_vocabulary_size(const ConfigReader& reader) {
    constexpr char kTokens[] = "tokenizer.ggml.tokens";
    const std::optional<std::size_t> n_tokens = reader.file().array_size(kTokens);
    if (!n_tokens) {
        return reader.count("vocab_size", kMaxVocabulary);
    }
    if (*n_tokens < 1 || *n_tokens > kMaxVocabulary) {
        fail(reader.file().path().string(), ": key ", kTokens, ": expected 1 to ", kMaxVocabulary,
             " tokens, found ", *n_tokens);
    }
    return static_cast<int>(*n_tokens);
}

void read_layer_counts(const ConfigReader& reader,
                       const Architecture& architecture,
                       ModelConfig& config) {
    config.n_layers = reader.count("block_count", kMaxLayers);
    const std::uint64_t n_ignored =
        architecture.reads(kPredictLayers)
            ? reader.file().integer(reader.key(kPredictLayers)).value_or(0)
            : 0;
    if (std::cmp_greater_equal(n_ignored, config.n_layers)) {
        reader.fail_field(kPredictLayers, concat("fewer than the ", config.n_layers, " layers"),
                          n_ignored);
    }
    config.n_ignored_layers = static_cast<int>(n_ignored);
    config.n_layers -= config.n_ignored_layers;
}

// Models of experts alone need none.
int read_feed_forward_length(const ConfigReader& reader,
                             const Architecture& architecture,
                             int n_layers) {
    constexpr char kField[] = "feed_forward_length";
    const auto length = reader.uniform_count(kField, n_layers, kMaxFeedForward);
    if (!length && architecture.experts && !architecture.experts->may_be_dense) {
        return 0;
    }
    if (!length) {
        reader.fail_field(kField, concat("1 to ", kMaxFeedForward), "no such key");
    }
    return *length;
}

}  // namespace

float usual_attention_scale(int head_dim) {
    return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

// As libllama computes it: the fraction in single precision, the rest in double.
float query_scale(const AttentionTemperature& temperature, int position) {
    const float n_lengths =
        std::floor(static_cast<float>(position) / static_cast<float>(temperature.length));
    return static_cast<float>(std::log(static_cast<double>(n_lengths) + 1.0) *
                                  static_cast<double>(temperature.scale) +
                              1.0);
}

ModelConfig read_config(const GgufFile& file) {
    const Architecture& architecture = read_architecture(file);
    const ConfigReader reader(file, architecture.name);
    ModelConfig config = read_attention_config(file, architecture);
    config.n_ff = read_feed_forward_length(reader, architecture, config.n_layers_of_file());
    if (architecture.experts) {
        read_experts(reader, *architecture.experts, config);
    }
    config.n_vocab = read_vocabulary_size(reader);
    return config;
}

ModelConfig read_attention_config(const GgufFile& file, const Architecture& architecture) {
    const ConfigReader reader(file, architecture.name);
    reject_unsupported(reader, architecture);

    ModelConfig config;
    config.architecture = architecture.name;
    config.name = file.string("general.name").value_or("");
    read_layer_counts(reader, architecture, config);
    config.n_embd = reader.count("embedding_length", kMaxEmbedding);
    config.n_ctx_train = reader.count("context_length", kMaxContext);
    config.rms_eps = read_rms_eps(reader);
    read_heads(reader, config);
    read_head_dim(reader, config);
    if (!architecture.reads(kWindow)) {
        reject_sliding_window(reader, config.n_ctx_train);
    }
    config.attention_scale = usual_attention_scale(config.head_dim);
    config.rope = read_rope_config(reader, architecture, config.head_dim, config.n_ctx_train);
    config.layers.assign(static_cast<std::size_t>(config.n_layers), LayerSpec{});
    if (architecture.describe != nullptr) {
        architecture.describe(reader, config);
    }
    return config;
}

}  // namespace knap
