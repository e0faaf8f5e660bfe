#include "graph/pass_graph.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "forward/needed_modules.h"
#include "graph/blocks.h"
#include "graph/experts/expert_nodes.h"

namespace knap {
namespace {

int whole_modules(const GraphKey& key) {
    return count_whole_modules(
        {.entry_layer = key.entry_layer, .exit_layer = key.exit_layer(), .captures = key.captures},
        [&](int layer) { return key.layer(layer).attention_group != kNoGroup; });
}

// All layers of a device have the same.
ggml_tensor* rope_divisors(const PassParts& parts) {
    if (parts.inputs.divisors() != nullptr) {
        return parts.inputs.divisors();
    }
    const int layer = parts.cache.share().first_layer;
    return parts.tensors.layers[static_cast<std::size_t>(layer)].rope_freqs;
}

class PassBuilder {
  public:
    PassBuilder(const PassParts& parts, const GraphKey& key, BuiltGraph& built)
        : parts_(parts),
          inputs_(parts.inputs),
          key_(key),
          built_(built),
          ctx_(built.context.get()),
          n_whole_modules_(whole_modules(key)) {}

    void build() {
        if (key_.n_chained > 0) {
            build_chain();
            return;
        }
        set_rows(0, key_.n_rows);
        stream_ = take_up();
        build_layers();
        if (!cosines_.empty()) {
            built_.cosines = keep(join(cosines_, 1));
        }
        // Without logits the last attention is only built as far as its keys and values: what
        // nobody reads is not added.
        if (key_.n_logit_rows > 0) {
            give(build_head(*block_, parts_.head, stream_));
        }
        if (key_.gives_stream) {
            built_.stream = keep(stream_);
        }
    }

  private:
    // Where the rows begin: f32 [n_embd, n_rows].
    ggml_tensor* take_up() {
        if (key_.bank.takes) {
            return parts_.bank->take(ctx_, key_);
        }
        return key_.embeds_tokens ? build_embedding(*block_, inputs_.tokens(ctx_, key_.n_rows))
                                  : inputs_.hidden(ctx_, key_.n_rows);
    }

    // logits [n_vocab, n_logit_rows]
    void give(ggml_tensor* logits) {
        if (key_.chooses) {
            built_.choices = keep(ggml_argmax(ctx_, logits));
        } else {
            built_.logits = keep(logits);
        }
    }

    // Passes of one row, each after the choice of the one before.
    void build_chain() {
        std::vector<ggml_tensor*> choices;
        std::vector<ggml_tensor*> probabilities;
        ggml_tensor* token = inputs_.tokens(ctx_, 1);
        for (int step = 0; step < key_.n_chained; ++step) {
            set_rows(step, 1);
            stream_ = build_embedding(*block_, token);
            build_layers();
            ggml_tensor* logits = build_head(*block_, parts_.head, stream_);
            token = ggml_argmax(ctx_, logits);
            choices.push_back(token);
            probabilities.push_back(probability_of(token, logits));
            // In this order: the next step reads the rows that this one writes to the cache.
            ggml_build_forward_expand(built_.graph, probabilities.back());
        }
        built_.choices = keep(join(choices, 0));
        built_.probabilities = keep(join(probabilities, 1));
        for (const std::vector<ggml_tensor*>& steps : chained_captures_) {
            built_.captures.push_back(keep(join(steps, 1)));
        }
    }

    // From here on the graph is about rows [first, first + n_rows) of the pass.
    void set_rows(int first, int n_rows) {
        attention_.push_back(inputs_.attention(ctx_, key_, key_.n_chained > 0 ? first : 0));
        for (std::size_t i = 0; i < parts_.tasks.size(); ++i) {
            attention_.back()[i].tasks = &parts_.tasks[i];
        }
        block_.emplace(BlockContext{
            .ctx = ctx_,
            .graph = built_.graph,
            .config = parts_.config,
            .tensors = parts_.tensors,
            .cache = parts_.cache,
            .positions = inputs_.positions(ctx_, n_rows, first),
            .rope_table = inputs_.rope_table(ctx_, Rotation::global, rope_divisors(parts_), n_rows),
            .local_rope_table =
                inputs_.rope_table(ctx_, Rotation::local, rope_divisors(parts_), n_rows),
            .unit_pairs = inputs_.unit_pairs(ctx_, n_rows),
            .divisors = rope_divisors(parts_),
            .query_scales = inputs_.query_scales(ctx_, n_rows, first),
            .slots = inputs_.slots(ctx_, n_rows, first),
            .attention = attention_.back()});
    }

    void build_layers() {
        n_captured_ = 0;
        pass(2 * key_.entry_layer);
        for (int layer = key_.entry_layer; layer < key_.exit_layer(); ++layer) {
            const auto [group, has_mlp, n_experts] = key_.layer(layer);
            if (group != kNoGroup) {
                stream_ = build_attention_module(*block_, layer, group, stream_);
            }
            pass(2 * layer + 1);
            if (has_mlp) {
                stream_ = build_mlp_module(*block_, layer, n_experts, stream_);
            }
            pass(2 * layer + 2);
        }
    }

    // The stream is past its first `n_modules` modules.
    void pass(int n_modules) {
        if (std::binary_search(key_.captures.begin(), key_.captures.end(), n_modules)) {
            capture();
        }
        if (n_modules == n_whole_modules_ && key_.n_logit_rows > 0 &&
            key_.n_logit_rows < key_.n_rows) {
            stream_ = ggml_get_rows(ctx_, stream_, inputs_.logit_rows(ctx_, key_.n_logit_rows));
        }
    }

    void capture() {
        const std::size_t capture = n_captured_++;
        if (key_.n_chained > 0) {
            chained_captures_.resize(key_.captures.size());
            chained_captures_[capture].push_back(stream_);
            return;
        }
        if (key_.bank.puts || key_.bank.compares) {
            bank(capture);
        } else {
            built_.captures.push_back(keep(stream_));
        }
    }

    // Added at once, in this order: the rows are compared with what the bank holds before they are
    // put there, and after those of the captures before.
    void bank(std::size_t capture) {
        if (key_.bank.compares) {
            cosines_.push_back(parts_.bank->compare(ctx_, key_, capture, stream_));
            ggml_build_forward_expand(built_.graph, cosines_.back());
        }
        if (key_.bank.puts) {
            ggml_build_forward_expand(built_.graph, parts_.bank->put(ctx_, key_, capture, stream_));
        }
    }

    // softmax(logits)[token], f32 [1, 1], of logits [n_vocab, 1].
    ggml_tensor* probability_of(ggml_tensor* token, ggml_tensor* logits) {
        ggml_tensor* all = ggml_soft_max(ctx_, logits);
        return ggml_get_rows(ctx_, ggml_reshape_2d(ctx_, all, 1, all->ne[0]), token);
    }

    ggml_tensor* join(const std::vector<ggml_tensor*>& parts, int dim) {
        ggml_tensor* all = parts.front();
        for (std::size_t i = 1; i < parts.size(); ++i) {
            all = ggml_concat(ctx_, all, parts[i], dim);
        }
        return all;
    }

    // Computes a tensor, and keeps it whole until the end.
    ggml_tensor* keep(ggml_tensor* tensor) {
        ggml_set_output(tensor);
        ggml_build_forward_expand(built_.graph, tensor);
        return tensor;
    }

    const PassParts& parts_;
    const ForwardInputs& inputs_;
    const GraphKey& key_;
    BuiltGraph& built_;
    ggml_context* ctx_;
    int n_whole_modules_;
    std::deque<std::array<AttentionInputs, kMaxGroups>> attention_;  // keep their addresses
    std::optional<BlockContext> block_;
    ggml_tensor* stream_ = nullptr;  // f32 [n_embd, n_rows], or the rows whose logits are wanted
    std::size_t n_captured_ = 0;     // in the pass at hand
    std::vector<ggml_tensor*> cosines_;  // of each capture, f32 [1, n_rows]
    // Of a chain:
    std::vector<std::vector<ggml_tensor*>> chained_captures_;  // by capture, of each step
};

}  // namespace

void build_pass(const PassParts& parts, const GraphKey& key, BuiltGraph& built) {
    PassBuilder(parts, key, built).build();
}

std::size_t max_pass_tensors(const ModelConfig& config, int n_layers, int n_blocks) {
    // See blocks.cpp, attention.cpp and, for two captures a layer, stream_bank.cpp; the inputs of a
    // block are its mask and its runs.
    constexpr int kPerLayer = 84;
    constexpr int kPerBlock = 32;
    constexpr int kPerBlockInput = 2;
    constexpr std::size_t kPerGraph = 64;
    const int per_layer = kPerLayer + max_expert_tensors(config) + kPerBlock * n_blocks;
    return static_cast<std::size_t>(n_layers) * static_cast<std::size_t>(per_layer) +
           static_cast<std::size_t>(kMaxGroups * kPerBlockInput) *
               static_cast<std::size_t>(n_blocks) +
           kPerGraph;
}

}  // namespace knap
