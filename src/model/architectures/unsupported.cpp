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
constexpr std::string_view kRecurrent = "recurrent layers";
constexpr std::string_view kBehindDense = "experts behind dense layers";
constexpr std::string_view kLatent = "latent attention";
constexpr std::string_view kLayerNorms = "layer norms with biases";
constexpr std::string_view kEncoder = "an encoder, which writes no text";
constexpr std::string_view kDiffusion = "text by diffusion";
constexpr std::string_view kSideBySide = "modules side by side";
constexpr std::string_view kPositions = "rotation by several positions";
constexpr std::string_view kHeadsByLayer = "numbers of heads that differ by layer";
constexpr std::string_view kDrafter = "a drafter for another model";
constexpr std::string_view kGates = "gates on the results of attention";
constexpr std::string_view kNormedAfterRotation = "norms of heads after their rotation";
constexpr std::string_view kRepeated = "layers that run several times";
constexpr std::string_view kSpeech = "speech instead of text";
constexpr std::string_view kWindowsBesideExperts = "windows beside experts";
constexpr Unsupported kUnsupported[] = {
    {"afmoe", kBehindDense, "qwen3moe"},
    {"apertus", "xIELU in its MLPs", "llama"},
    {"arcee", "MLPs without gates", "llama"},
    {"arctic", "experts beside an MLP", "qwen3moe"},
    {"arwkv7", kRecurrent, "qwen2"},
    {"baichuan", "matrices of its own, and ALiBi positions", "llama"},
    {"bailingmoe", kBehindDense, "qwen3moe"},
    {"bailingmoe2", kBehindDense, "qwen3moe"},
    {"bailingmoe3", kRecurrent, "qwen3moe"},
    {"bert", kEncoder, "llama"},
    {"bitnet", "norms within modules", "llama"},
    {"bloom", kLayerNorms, "llama"},
    {"chameleon", "norms with biases on every head", "qwen3"},
    {"chatglm", "an earlier GLM", "glm4"},
    {"clip", "an encoder of images, which writes no text", "qwen3vl"},
    {"codeshell", kLayerNorms, "llama"},
    {"cogvlm", "other matrices for images", "llama"},
    {"cohere2", kSideBySide, "llama"},
    {"cohere2moe", kSideBySide, "qwen3moe"},
    {"command-r", kSideBySide, "llama"},
    {"dbrx", kLayerNorms, "llama"},
    {"deci", kHeadsByLayer, "llama"},
    {"deepseek", kBehindDense, "qwen3moe"},
    {"deepseek2", kLatent, "llama"},
    {"deepseek2-ocr", kBehindDense, "qwen3moe"},
    {"deepseek32", kLatent, "llama"},
    {"deepseek4", kLatent, "llama"},
    {"dflash", kDrafter, "qwen3"},
    {"dots1", kBehindDense, "qwen3moe"},
    {"dots3note", kLatent, "qwen3moe"},
    {"dream", kDiffusion, "qwen2"},
    {"eagle3", kDrafter, "llama"},
    {"ernie4_5-moe", kBehindDense, "qwen3moe"},
    {"eurobert", kEncoder, "llama"},
    {"exaone", "EXAONE 3", "exaone4"},
    {"exaone-moe", kBehindDense, "qwen3moe"},
    {"falcon", kLayerNorms, "llama"},
    {"falcon-h1", kRecurrent, "llama"},
    {"gemma", "the first Gemma", "gemma2"},
    {"gemma-embedding", kEncoder, "gemma3"},
    {"gemma3n", "embeddings of their own in every layer", "gemma3"},
    {"gemma4", "heads whose size differs by layer", "gemma3"},
    {"gemma4-assistant", kDrafter, "gemma3"},
    {"glm-dsa", kLatent, "glm4"},
    {"glm4moe", kBehindDense, "qwen3moe"},
    {"glm5-next", kRecurrent, "glm4"},
    {"gpt2", kLayerNorms, "llama"},
    {"gptj", kLayerNorms, "llama"},
    {"gptneox", kLayerNorms, "llama"},
    {"granite_swa", "windows in a Granite", "granite"},
    {"granitehybrid", kRecurrent, "granite"},
    {"graniteswitch", "adapters that switch by token", "granite"},
    {"grok", "experts with GELU", "qwen3moe"},
    {"grovemoe", "experts in groups that share a part", "qwen3moe"},
    {"hrm_text", kRepeated, "llama"},
    {"hunyuan-moe", "another expert in every layer", "qwen3moe"},
    {"hunyuan_vl", kPositions, "hunyuan-dense"},
    {"hy_v3", kBehindDense, "qwen3moe"},
    {"hy_v4", kLatent, "qwen3moe"},
    {"internlm2", "a llama of its own name", "llama"},
    {"jais", kLayerNorms, "llama"},
    {"jais2", kLayerNorms, "llama"},
    {"jamba", kRecurrent, "llama"},
    {"jina-bert-v2", kEncoder, "llama"},
    {"jina-bert-v3", kEncoder, "llama"},
    {"kimi-k3", kRecurrent, "qwen3moe"},
    {"kimi-linear", kRecurrent, "qwen3moe"},
    {"laguna", kHeadsByLayer, "qwen3moe"},
    {"lfm2", "convolutions", "smollm3"},
    {"lfm2moe", "convolutions", "qwen3moe"},
    {"llada", kDiffusion, "llama"},
    {"llada-moe", kDiffusion, "qwen3moe"},
    {"llama-embed", kEncoder, "llama"},
    {"llama4", "attention in chunks, and experts", "llama"},
    {"maincoder", kNormedAfterRotation, "qwen3"},
    {"mamba", kRecurrent, "llama"},
    {"mamba2", kRecurrent, "llama"},
    {"maple", kWindowsBesideExperts, "qwen3moe"},
    {"mellum", kWindowsBesideExperts, "qwen3moe"},
    {"mimo2", kHeadsByLayer, "qwen3moe"},
    {"minicpm", "a Granite of its own name", "granite"},
    {"minicpm3", kLatent, "llama"},
    {"minimax-01", kRecurrent, "qwen3moe"},
    {"minimax-m2", "norms of whole rows beside experts", "qwen3moe"},
    {"minimax-m3", kBehindDense, "qwen3moe"},
    {"mistral4", kLatent, "mistral3"},
    {"modern-bert", kEncoder, "llama"},
    {"mpt", kLayerNorms, "llama"},
    {"muse-glimmer", kGates, "gemma3"},
    {"nanbeige", kRepeated, "llama"},
    {"nemotron", kLayerNorms, "llama"},
    {"nemotron_h", kRecurrent, "llama"},
    {"nemotron_h_moe", kRecurrent, "qwen3moe"},
    {"neo-bert", kEncoder, "llama"},
    {"nomic-bert", kEncoder, "llama"},
    {"nomic-bert-moe", kEncoder, "llama"},
    {"olmo", "norms without weights", "olmo2"},
    {"olmoe", "norms of whole rows beside experts", "qwen3moe"},
    {"openelm", kHeadsByLayer, "llama"},
    {"orion", kLayerNorms, "llama"},
    {"paddleocr", kPositions, "ernie4_5"},
    {"pangu-embedded", "biases on the matrices after attention", "qwen2"},
    {"phi2", kSideBySide, "phi3"},
    {"phimoe", "norms with biases, and experts", "phi3"},
    {"plamo", kSideBySide, "llama"},
    {"plamo2", kRecurrent, "llama"},
    {"plamo3", kHeadsByLayer, "gemma3"},
    {"plm", kLatent, "llama"},
    {"pockettts", kSpeech, "llama"},
    {"qwen", "the first Qwen", "qwen2"},
    {"qwen2moe", "an expert with a gate", "qwen3moe"},
    {"qwen2vl", kPositions, "qwen3vl"},
    {"qwen35", kRecurrent, "qwen3"},
    {"qwen35moe", kRecurrent, "qwen3"},
    {"qwen3next", kRecurrent, "qwen3"},
    {"qwen3tts", kSpeech, "qwen3"},
    {"qwen4exp", kRecurrent, "qwen3"},
    {"refact", "ALiBi positions", "llama"},
    {"rnd1", kDiffusion, "qwen3moe"},
    {"rwkv6", kRecurrent, "llama"},
    {"rwkv6qwen2", kRecurrent, "qwen2"},
    {"rwkv7", kRecurrent, "llama"},
    {"smallthinker", "experts chosen before attention", "qwen3moe"},
    {"spark2_5", kGates, "gemma3"},
    {"stablelm", kLayerNorms, "llama"},
    {"starcoder", kLayerNorms, "llama"},
    {"starcoder2", kLayerNorms, "llama"},
    {"step35", kHeadsByLayer, "qwen3moe"},
    {"t5", "an encoder beside its decoder", "llama"},
    {"t5encoder", kEncoder, "llama"},
    {"talkie", "embeddings added to every layer", "qwen3"},
    {"wavtokenizer-dec", kSpeech, "llama"},
    {"xverse", "a llama of its own name", "llama"},
};

}  // namespace

std::string why_unsupported(std::string_view architecture) {
    const auto* known = std::ranges::find(kUnsupported, architecture, &Unsupported::architecture);
    return known == std::end(kUnsupported)
               ? ""
               : concat(" (", known->reason, "; the nearest is ", known->nearest, ")");
}

std::vector<std::string_view> unsupported_names() {
    std::vector<std::string_view> names;
    std::ranges::transform(kUnsupported, std::back_inserter(names), &Unsupported::architecture);
    return names;
}

}  // namespace knap
