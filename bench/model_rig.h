// A model with a cache and a forward pass, below the public interface.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/error.h"
#include "decode/advance.h"
#include "device/backend.h"
#include "forward/single_sequence.h"
#include "graph/attention/attention_policy.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/head_subset.h"
#include "model/row_invariance.h"
#include "model/weights.h"
#include "runtime/device_models.h"

namespace knap::bench {

inline constexpr int kUbatch = 512;
inline constexpr int kContext = 8192;
inline constexpr int kScratchRows = 256;

// Reproducible token ids.
inline std::vector<Token> random_tokens(int n, int n_vocab) {
    std::mt19937 engine(1);
    std::vector<Token> tokens;
    for (int i = 0; i < n; ++i) {
        tokens.push_back(static_cast<Token>(engine() % static_cast<unsigned>(n_vocab)));
    }
    return tokens;
}

// Commits `n_rows` rows of random text. Only the first are computed, the others are copies of them:
// computing all would take most of a benchmark's time, and the time of a pass depends on the number
// of rows it reads, not on their values.
inline void fill_with_copies(Forward& forward, Sequence& cache, int n_rows) {
    const int n_computed = std::min(n_rows, kUbatch);
    cache.truncate(0);
    if (n_rows == 0) {
        return;
    }
    advance(forward, cache, random_tokens(n_computed, forward.config().n_vocab));
    for (int row = n_computed; row < n_rows; ++row) {
        cache.copy_row(row % n_computed, row);
    }
    cache.commit(n_rows);
}

// Moves the end of the text to `n_rows`, which must have been filled.
inline void move_end(Sequence& cache, int n_rows) {
    cache.truncate(std::min(n_rows, cache.committed()));
    cache.commit(n_rows);
}

struct ModelRig {
    ModelRig(const std::filesystem::path& path,
             Backend& backend,
             Kernels kernels,
             CacheType cache_type = CacheType::f16,
             int n_ctx = kContext,
             bool is_exact = true)
        : file(GgufFile::open(path)),
          config(read_config(file)),
          weights(Weights::load(
              file,
              config,
              backend,
              {.kernels = kernels, .cache_type_k = cache_type, .cache_type_v = cache_type},
              {})),
          rows(config,
               new_device_models(config,
                                 weights->tensors(),
                                 LayerMap(backend, config.n_layers),
                                 {.cache_type_k = cache_type,
                                  .cache_type_v = cache_type,
                                  .exact = is_exact,
                                  .kernels = kernels},
                                 row_invariant_rows(*weights)),
               n_ctx + kScratchRows,
               kUbatch),
          cache(rows.sequence()),
          forward(rows.forward()) {
        if (HeadSubset::is_possible(*weights)) {
            draft_head.emplace(*weights, backend, std::span<const Token>());
            forward.set_draft_head(*draft_head);
        }
    }

    void fill(int n_rows) { fill_with_copies(forward, cache, n_rows); }
    void go_to(int n_rows) { move_end(cache, n_rows); }

    // Those of the ascending `depths` that are within the model's training context.
    std::span<const int> within_context(std::span<const int> depths) const {
        const auto end = std::upper_bound(depths.begin(), depths.end(), config.n_ctx_train);
        if (end == depths.begin()) {
            fail("model: expected a context of ", depths.front(), " tokens or more, found ",
                 config.n_ctx_train);
        }
        return {depths.begin(), end};
    }

    GgufFile file;
    ModelConfig config;
    std::unique_ptr<Weights> weights;
    SingleSequence rows;
    Sequence& cache;
    std::optional<HeadSubset> draft_head;  // nullopt where it is not possible
    Forward& forward;
};

}  // namespace knap::bench
