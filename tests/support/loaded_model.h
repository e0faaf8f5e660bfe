// A model with everything that a forward pass needs, below the public face.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/backend.h"
#include "device/layer_map.h"
#include "graph/attention.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap::test {

// One thread unless asked: threads of a pool wait by spinning, which is slow where tests run side
// by side.
struct LoadedModel {
    explicit LoadedModel(const std::filesystem::path& path,
                         Repack repack = Repack::off,
                         int n_threads = 1,
                         Kernels kernels = Kernels::ggml,
                         ggml_backend_dev_t device = nullptr,  // null: the CPU
                         const std::vector<int>& split = {});  // layers of each CPU; empty: one

    GgufFile file;
    ModelConfig config;
    Backend backend;                               // of the first layers
    std::vector<std::unique_ptr<Backend>> others;  // of the layers after them
    LayerMap layers;
    std::unique_ptr<Weights> weights;
};

struct ForwardOptions {
    int capacity = 1024;
    int n_ubatch = 512;
    CacheType type_k = CacheType::f16;
    CacheType type_v = CacheType::f16;
    std::optional<AttentionPath> path{};  // none: what the engine would choose
    int exact_rows = 0;                   // see KvCacheOptions
};

// A forward pass with a cache of its own.
struct ForwardRig {
    explicit ForwardRig(LoadedModel& loaded, const ForwardOptions& options = {});

    // Runs a pass and gives the logits of every row, [n_vocab] each.
    std::vector<std::vector<float>> run(ForwardRequest request);
    // Feeds `tokens` after what is committed, in passes of the given sizes (their sum is the number
    // of tokens), and gives the logits of every row, [n_vocab] each.
    std::vector<std::vector<float>> feed(std::span<const Token> tokens,
                                         std::span<const int> passes);
    std::vector<std::vector<float>> feed(std::span<const Token> tokens);  // in one pass
    // The committed rows of every layer, as bytes.
    std::vector<std::byte> cache_bytes() const;

    LoadedModel& model;
    KvCache cache;
    std::optional<HeadSubset> draft_head;  // none where it is not possible
    Forward forward;
};

// Reproducible token ids.
std::vector<Token> random_tokens(int n, int n_vocab, unsigned seed);

}  // namespace knap::test
