#include "graph/pass_graph.h"

#include <algorithm>
#include <array>

#include "graph/blocks.h"

namespace knap {
namespace {

// Modules whose rows all have to be computed, though only some rows' logits are wanted: up to the
// last attention, which writes every row to the cache, and to the last capture.
int count_whole_modules(const GraphKey& key) {
    int n_modules = std::max(2 * key.entry_layer, key.captures.empty() ? 0 : key.captures.back());
    for (int layer = key.entry_layer; layer < key.exit_layer(); ++layer) {
        if (key.layer(layer).attention_group != kNoGroup) {
            n_modules = std::max(n_modules, 2 * layer + 1);
        }
    }
    return n_modules;
}

// All layers of a device have the same.
ggml_tensor* rope_divisors(const PassParts& parts) {
    const int layer = parts.cache.share().first_layer;
    return parts.tensors.layers[static_cast<std::size_t>(layer)].rope_freqs;
}

class PassBuilder {
  public:
    PassBuilder(const PassParts& parts, const GraphKey& key, BuiltGraph& built)
        : inputs_(parts.inputs),
          key_(key),
          built_(built),
          ctx_(built.context.get()),
          n_whole_modules_(count_whole_modules(key)),
          head_(parts.head),
          attention_(inputs_.attention(ctx_, key)),
          block_{.ctx = ctx_,
                 .graph = built.graph,
                 .config = parts.config,
                 .tensors = parts.tensors,
                 .cache = parts.cache,
                 .positions = inputs_.positions(ctx_, key.n_rows),
                 .turns = inputs_.turns(ctx_, rope_divisors(parts), key.n_rows),
                 .slots = inputs_.slots(ctx_, key.n_rows),
                 .attention = attention_},
          stream_(
              key.embeds_tokens
                  ? ggml_get_rows(ctx_, parts.tensors.token_embd, inputs_.tokens(ctx_, key.n_rows))
                  : inputs_.hidden(ctx_, key.n_rows)) {}

    void build() {
        pass(2 * key_.entry_layer);
        for (int layer = key_.entry_layer; layer < key_.exit_layer(); ++layer) {
            const auto [group, has_mlp] = key_.layer(layer);
            if (group != kNoGroup) {
                stream_ = build_attention_module(block_, layer, group, stream_);
            }
            pass(2 * layer + 1);
            if (has_mlp) {
                stream_ = build_mlp_module(block_, layer, stream_);
            }
            pass(2 * layer + 2);
        }
        // Without logits the last attention is only built as far as its keys and values: what
        // nobody reads is not added.
        if (key_.n_logit_rows > 0) {
            built_.logits = keep(build_head(block_, head_, stream_));
        }
        if (key_.gives_stream) {
            built_.stream = keep(stream_);
        }
    }

  private:
    // The stream is past its first `n_modules` modules.
    void pass(int n_modules) {
        if (std::binary_search(key_.captures.begin(), key_.captures.end(), n_modules)) {
            built_.captures.push_back(keep(captured_rows()));
        }
        if (n_modules == n_whole_modules_ && key_.n_logit_rows > 0 &&
            key_.n_logit_rows < key_.n_rows) {
            stream_ = ggml_get_rows(ctx_, stream_, inputs_.logit_rows(ctx_, key_.n_logit_rows));
        }
    }

    ggml_tensor* captured_rows() {
        return key_.n_capture_rows == key_.n_rows
                   ? stream_
                   : ggml_get_rows(ctx_, stream_, inputs_.capture_rows(ctx_, key_.n_capture_rows));
    }

    // Computes a tensor, and keeps it whole until the end.
    ggml_tensor* keep(ggml_tensor* tensor) {
        ggml_set_output(tensor);
        ggml_build_forward_expand(built_.graph, tensor);
        return tensor;
    }

    const ForwardInputs& inputs_;
    const GraphKey& key_;
    BuiltGraph& built_;
    ggml_context* ctx_;
    int n_whole_modules_;
    HeadTensors head_;
    std::array<AttentionInputs, kMaxGroups> attention_;
    BlockContext block_;
    ggml_tensor* stream_;  // f32 [n_embd, n_rows], or the rows whose logits are wanted
};

}  // namespace

void build_pass(const PassParts& parts, const GraphKey& key, BuiltGraph& built) {
    PassBuilder(parts, key, built).build();
}

std::size_t max_pass_tensors(int n_layers, int n_blocks) {
    // See blocks.cpp and attention.cpp; the inputs of a block are its mask and its runs.
    constexpr int kPerLayer = 52;
    constexpr int kPerBlock = 32;
    constexpr int kPerBlockInput = 2;
    constexpr std::size_t kPerGraph = 64;
    const int per_layer = kPerLayer + kPerBlock * n_blocks;
    return static_cast<std::size_t>(n_layers) * static_cast<std::size_t>(per_layer) +
           static_cast<std::size_t>(kMaxGroups * kPerBlockInput) *
               static_cast<std::size_t>(n_blocks) +
           kPerGraph;
}

}  // namespace knap
