#include "cuda/phase_list.h"

#include <algorithm>

#include "forward/needed_modules.h"
#include "kernels/cuda/strips.h"

namespace knap {
namespace {

using Op = CudaPhase::Op;

bool takes_halves(const CudaMatrix& matrix) {
    return knap::takes_halves(static_cast<ggml_type>(matrix.type));
}

int count_modules(const PhaseRequest& request) {
    if (request.has_logits) {
        return 2 * request.exit_layer;
    }
    return count_read_modules(
        {.entry_layer = request.entry_layer,
         .exit_layer = request.exit_layer,
         .captures = request.captures},
        [&](int layer) { return request.plan->runs(layer, Module::attention); });
}

class PhaseLister {
  public:
    PhaseLister(const ModelConfig& config,
                const CudaWeights& weights,
                const PhaseRequest& request,
                std::vector<CudaPhase>& phases)
        : config_(config), weights_(weights), request_(request), phases_(phases) {
        phases_.clear();
    }

    void list() {
        add({.op = request_.embeds_tokens ? Op::embed : Op::take});
        reach(2 * request_.entry_layer);
        const int n_modules = count_modules(request_);
        for (int layer = request_.entry_layer; layer < request_.exit_layer; ++layer) {
            if (request_.plan->runs(layer, Module::attention)) {
                add_attention(layer, 2 * layer < n_modules);
            }
            reach(2 * layer + 1);
            const CudaWeights::Layer& weights = of(layer);
            if (weights.has_mlp() && request_.plan->runs(layer, Module::mlp) &&
                2 * layer + 1 < n_modules) {
                add({.op = Op::gate,
                     .layer = static_cast<std::int16_t>(layer),
                     .gives_halves = takes_halves(weights.down),
                     .parts = {weights.gate, weights.up}});
                add_product(layer, Module::mlp, weights.down, weights.ffn_post_norm);
            }
            reach(2 * layer + 2);
        }
        if (request_.has_logits) {
            add({.op = Op::head, .parts = {weights_.head}});
            if (request_.draws) {
                add({.op = Op::list});
                add({.op = Op::draw});
            } else if (request_.chooses) {
                add({.op = Op::choose});
            }
        }
        set_norms();
    }

  private:
    const CudaWeights::Layer& of(int layer) const {
        return weights_.layers[static_cast<std::size_t>(layer)];
    }
    void add(const CudaPhase& phase) { phases_.push_back(phase); }

    void add_attention(int layer, bool is_read) {
        const CudaWeights::Layer& weights = of(layer);
        const auto number = static_cast<std::int16_t>(layer);
        add({.op = Op::heads, .layer = number, .parts = {weights.q, weights.k, weights.v}});
        if (config_.head_norm == HeadNorm::whole_row) {
            add({.op = Op::norm_heads, .layer = number});
        }
        if (!is_read) {
            add({.op = Op::store, .layer = number});
            return;
        }
        const int group = request_.groups->group_of(request_.plan->level(layer, Module::attention),
                                                    config_.layer(layer).window);
        add({.op = Op::attend,
             .layer = number,
             .group = static_cast<std::int16_t>(group),
             .gives_halves = takes_halves(weights.o)});
        add_product(layer, Module::attention, weights.o, weights.attn_post_norm);
    }

    // What a module adds to the stream.
    void add_product(int layer, Module module, const CudaMatrix& matrix, const float* post_norm) {
        if (post_norm == nullptr) {
            add({.op = Op::add, .parts = {matrix}});
            return;
        }
        add({.op = Op::result, .parts = {matrix}});
        add({.op = Op::norm_result,
             .layer = static_cast<std::int16_t>(layer),
             .group = static_cast<std::int16_t>(module == Module::mlp ? 1 : 0)});
    }

    // The stream is past its first `n_modules` modules. A copy of it can be made while the next
    // phase runs: that does not change the stream.
    void reach(int n_modules) {
        if (n_captured_ < request_.captures.size() && request_.captures[n_captured_] == n_modules) {
            add({.op = Op::capture,
                 .group = static_cast<std::int16_t>(n_captured_),
                 .waits = false});
            ++n_captured_;
        }
    }

    // Whoever writes the stream also prepares it for the next product that reads it, and for the
    // norm before that.
    void set_norms() {
        const CudaPhase* reader = nullptr;
        const float* norm = nullptr;
        const auto read_by = [&](CudaPhase& product, const float* before) {
            reader = &product;
            norm = before;
            product.is_normed = before != nullptr;
            product.takes_factor = product.is_normed && !takes_halves(product.parts[0]);
        };
        for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
            switch (phase->op) {
                case Op::head:
                    read_by(*phase, weights_.output_norm);
                    break;
                case Op::heads:
                    read_by(*phase, of(phase->layer).attn_norm);
                    break;
                case Op::gate:
                    read_by(*phase, of(phase->layer).ffn_norm);
                    break;
                case Op::embed:
                case Op::take:
                case Op::add:
                case Op::norm_result:
                    phase->norm = norm;
                    phase->gives_inputs = reader != nullptr;
                    phase->gives_halves = reader != nullptr && takes_halves(reader->parts[0]);
                    break;
                default:
                    break;
            }
        }
    }

    const ModelConfig& config_;
    const CudaWeights& weights_;
    const PhaseRequest& request_;
    std::vector<CudaPhase>& phases_;
    std::size_t n_captured_ = 0;
};

}  // namespace

void list_phases(const ModelConfig& config,
                 const CudaWeights& weights,
                 const PhaseRequest& request,
                 std::vector<CudaPhase>& phases) {
    PhaseLister(config, weights, request, phases).list();
}

}  // namespace knap
