// A model with everything that a forward pass needs, below the public interface.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/backend.h"
#include "device/layer_map.h"
#include "forward/single_sequence.h"
#include "graph/attention/attention_policy.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/head_subset.h"
#include "model/weights.h"
#include "runtime/device_models.h"

namespace knap::test {

// Uses one thread by default: threads of a pool wait by spinning, which is slow when tests run in
// parallel.
struct LoadedModel {
    explicit LoadedModel(const std::filesystem::path& path,
                         Repack repack = Repack::off,
                         int n_threads = 1,
                         Kernels kernels = Kernels::ggml,
                         ggml_backend_dev_t device = nullptr,  // null: the CPU
                         const std::vector<int>& split = {});  // layers per CPU backend; empty: one

    GgufFile file;
    ModelConfig config;
    Backend backend;                               // for the first layers
    std::vector<std::unique_ptr<Backend>> others;  // for the layers after them
    LayerMap layers;
    std::unique_ptr<Weights> weights;
};

struct ForwardOptions {
    int capacity = 1024;
    int n_ubatch = 512;
    CacheType type_k = CacheType::f16;
    CacheType type_v = CacheType::f16;
    std::optional<AttentionPath> path{};  // empty: as the engine chooses
    int exact_rows = 0;                   // see AttentionPolicy
    bool uses_graphs = false;             // with ggml's graphs also where the engine does without
};

// A forward pass with its own cache.
struct ForwardRig {
    explicit ForwardRig(LoadedModel& loaded, const ForwardOptions& options = {});

    // Runs a pass and returns the logits of every row, [n_vocab] each.
    std::vector<std::vector<float>> run(ForwardRequest request);
    // Appends `tokens` to the committed rows in passes of the given sizes, which add up to the
    // number of tokens. Returns the logits of every row, [n_vocab] each.
    std::vector<std::vector<float>> feed(std::span<const Token> tokens,
                                         std::span<const int> passes);
    std::vector<std::vector<float>> feed(std::span<const Token> tokens);  // in one pass
    // The committed rows of every layer, as bytes.
    std::vector<std::byte> cache_bytes() const;

    LoadedModel& model;
    SingleSequence single;
    Sequence& cache;
    Forward& forward;
    std::optional<HeadSubset> draft_head;  // empty when impossible
};

// Reproducible token ids.
std::vector<Token> random_tokens(int n, int n_vocab, unsigned seed);

}  // namespace knap::test
