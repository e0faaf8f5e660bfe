#include "model/architectures/unsupported.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace knap {
namespace {

struct Unsupported {
    std::string_view architecture;
    std::string_view reason;
    std::string_view nearest;
};
constexpr Unsupported kUnsupported[] = {
    {"gemma", "the first Gemma", "gemma2"},
    {"gemma3n", "embeddings of their own in every layer", "gemma3"},
    {"gemma4", "heads whose size differs by layer", "gemma3"},
    {"qwen2moe", "an expert with a gate", "qwen3moe"},
    {"qwen3next", "recurrent layers", "qwen3"},
    {"qwen35", "recurrent layers", "qwen3"},
    {"qwen35moe", "recurrent layers", "qwen3"},
    {"qwen2vl", "rotation by several positions", "qwen3vl"},
    {"granitehybrid", "recurrent layers", "granite"},
    {"glm4moe", "experts behind dense layers", "qwen3moe"},
    {"ernie4_5-moe", "experts behind dense layers", "qwen3moe"},
    {"hunyuan-moe", "another expert in every layer", "qwen3moe"},
    {"deepseek2", "latent attention", "llama"},
    {"llama4", "attention in chunks, and experts", "llama"},
    {"lfm2", "convolutions", "smollm3"},
    {"cohere2", "modules side by side", "llama"},
    {"command-r", "modules side by side", "llama"},
    {"phi2", "modules side by side", "phi3"},
    {"mamba", "recurrent layers", "llama"},
    {"mamba2", "recurrent layers", "llama"},
};

}  // namespace

std::string why_unsupported(std::string_view architecture) {
    const auto* known = std::ranges::find(kUnsupported, architecture, &Unsupported::architecture);
    return known == std::end(kUnsupported)
               ? ""
               : concat(" (", known->reason, "; the nearest is ", known->nearest, ")");
}

}  // namespace knap
