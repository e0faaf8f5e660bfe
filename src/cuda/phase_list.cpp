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
    PhaseLister(const CudaWeights& weights,
                const PhaseRequest& request,
                std::vector<CudaPhase>& phases)
        : weights_(weights), request_(request), phases_(phases) {
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
                add({.op = Op::add, .parts = {weights.down}});
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
        if (!is_read) {
            add({.op = Op::store, .layer = number});
            return;
        }
        const int group = request_.groups->group_of(request_.plan->level(layer, Module::attention));
        add({.op = Op::attend,
             .layer = number,
             .group = static_cast<std::int16_t>(group),
             .gives_halves = takes_halves(weights.o)});
        add({.op = Op::add, .parts = {weights.o}});
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
        const float* norm = nullptr;
        bool is_halves = false;
        for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
            switch (phase->op) {
                case Op::head:
                    norm = weights_.output_norm;
                    is_halves = takes_halves(phase->parts[0]);
                    break;
                case Op::heads:
                    norm = of(phase->layer).attn_norm;
                    is_halves = takes_halves(phase->parts[0]);
                    break;
                case Op::gate:
                    norm = of(phase->layer).ffn_norm;
                    is_halves = takes_halves(phase->parts[0]);
                    break;
                case Op::embed:
                case Op::take:
                case Op::add:
                    phase->norm = norm;
                    phase->gives_halves = is_halves;
                    break;
                default:
                    break;
            }
        }
    }

    const CudaWeights& weights_;
    const PhaseRequest& request_;
    std::vector<CudaPhase>& phases_;
    std::size_t n_captured_ = 0;
};

}  // namespace

void list_phases(const CudaWeights& weights,
                 const PhaseRequest& request,
                 std::vector<CudaPhase>& phases) {
    PhaseLister(weights, request, phases).list();
}

}  // namespace knap
