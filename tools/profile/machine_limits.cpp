#include "tools/profile/machine_limits.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "cpu/cpu_weights.h"
#include "device/backend.h"
#include "kernels/matmul/matmul.h"
#include "model/packed_weight.h"
#include "runtime/engine_impl.h"
#include "tools/profile/memory_reader.h"

namespace knap {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMsPerSecond = 1e3;

// The best of several runs of a product whose operands fit the first cache, on every thread.
double gmac_per_second(Backend& backend, const PackedMatrix& model_matrix) {
    constexpr int kRows = 24;
    constexpr int kRepeats = 2000;
    constexpr int kRuns = 7;
    // One group of the model's own weights, as wide as a super-block or two.
    PackedMatrix matrix = model_matrix;
    matrix.n_out = std::min(matrix.n_out, kGroupRows);
    matrix.n_in = std::min(matrix.n_in, 512);
    const std::vector<float> ones(static_cast<std::size_t>(matrix.n_in), 1.0f);
    const InputForm form = input_form(matrix.type);
    const std::size_t row_bytes = input_row_bytes(form, matrix.n_in);
    std::vector<std::byte> inputs(row_bytes * kRows);
    for (int row = 0; row < kRows; ++row) {
        std::byte* out = inputs.data() + static_cast<std::size_t>(row) * row_bytes;
        if (form == InputForm::floats) {
            std::copy_n(reinterpret_cast<const std::byte*>(ones.data()), row_bytes, out);
        } else {
            matmul_kernels().front().quantise(
                ones.data(), {reinterpret_cast<QuantisedBlock*>(out),
                              static_cast<std::size_t>(matrix.n_in / kQuantBlock)});
        }
    }
    ThreadTeam& team = backend.team();
    double best_ms = 0;
    for (int run = 0; run < kRuns; ++run) {
        const Stopwatch watch;
        team.run([&](TeamMember& member) {
            member.share(team.n_threads(), [&](int /*item*/) {
                std::vector<float> out(std::size_t{kGroupRows} * kRows);
                for (int i = 0; i < kRepeats; ++i) {
                    matmul_kernels().front().multiply({.matrix = &matrix,
                                                       .n_groups = 1,
                                                       .inputs = inputs.data(),
                                                       .n_rows = kRows,
                                                       .out = out.data(),
                                                       .stride = kGroupRows});
                }
            });
        });
        const double ms = watch.elapsed_ms();
        best_ms = run == 0 ? ms : std::min(best_ms, ms);
    }
    const double n =
        static_cast<double>(matrix.n_in) * matrix.n_out * kRows * kRepeats * team.n_threads();
    return n / best_ms * kMsPerSecond / kGiga;
}

std::int64_t product(int n_in, int n_out) {
    return std::int64_t{n_in} * n_out;
}

std::int64_t head_multiply_adds(const ModelConfig& config) {
    return product(config.n_embd, config.n_vocab);
}

// Of one row that attends to `n_visible` rows, its own included.
std::int64_t attention_multiply_adds(const ModelConfig& config, int n_visible) {
    return product(config.n_embd, config.n_embd_q() + 2 * config.n_embd_kv()) +
           product(config.n_embd_q(), config.n_embd) + 2 * product(config.n_embd_q(), n_visible);
}

// Of all that a row goes through in a layer; the router's is left out.
int mlp_width(const ModelConfig& config, const LayerSpec& layer) {
    return layer.experts ? layer.experts->n_used * layer.experts->n_ff + layer.experts->n_ff_shared
                         : config.n_ff;
}

// Of a pass with a plan of whole modules and none.
LeastWork plan_work(const Engine::Impl& impl, const ModulePlan& plan, int n_context, int n_rows) {
    const ModelConfig& config = impl.model;
    const PlanCost cost = plan_cost(impl.cost, plan, n_context, n_rows);
    std::int64_t n = head_multiply_adds(config);
    for (int i = 0; i < config.n_layers; ++i) {
        const LayerSpec& layer = config.layers[static_cast<std::size_t>(i)];
        if (plan.runs(i, Module::attention)) {
            const int n_all = n_context + n_rows;
            n += attention_multiply_adds(config,
                                         layer.window > 0 ? std::min(layer.window, n_all) : n_all);
        }
        if (plan.runs(i, Module::mlp)) {
            n += 3 * product(config.n_embd, mlp_width(config, layer));
        }
    }
    return {.bytes = cost.weight_bytes + cost.cache_bytes, .n_multiply_adds = n_rows * n};
}

}  // namespace

double LeastWork::memory_ms(const MachineLimits& limits) const {
    return static_cast<double>(bytes) / kGiga / limits.gb_per_second * kMsPerSecond;
}

double LeastWork::arithmetic_ms(const MachineLimits& limits) const {
    return static_cast<double>(n_multiply_adds) / kGiga / limits.gmac_per_second * kMsPerSecond;
}

double LeastWork::least_ms(const MachineLimits& limits) const {
    return std::max(memory_ms(limits), arithmetic_ms(limits));
}

std::optional<MachineLimits> measure_limits(const Engine& engine) {
    const Engine::Impl& impl = impl_of(engine);
    const LayerShare& share = impl.layers().first();
    const bool is_cpu = share.n_layers() == impl.model.n_layers && share.backend->is_host();
    if (!is_cpu || !has_cpu_weights(impl.model, impl.weights->tensors(), share)) {
        return std::nullopt;
    }
    const ggml_tensor* weight = impl.weights->tensors().layers.front().wq;
    return MachineLimits{
        .gb_per_second = memory_gb_per_second(impl.config.n_threads),
        .gmac_per_second = gmac_per_second(*share.backend, packed_weight(weight)->matrix)};
}

LeastWork whole_pass_work(const Engine& engine, int n_context, int n_rows) {
    const Engine::Impl& impl = impl_of(engine);
    return plan_work(impl, ModulePlan(impl.model.n_layers), n_context, n_rows);
}

LeastWork module_work(const Engine& engine, int layer, Module module, int n_context) {
    const Engine::Impl& impl = impl_of(engine);
    const LeastWork whole = whole_pass_work(engine, n_context, 1);
    ModulePlan without(impl.model.n_layers);
    without.set(layer, module, Level::skip);
    const LeastWork rest = plan_work(impl, without, n_context, 1);
    return {.bytes = whole.bytes - rest.bytes,
            .n_multiply_adds = whole.n_multiply_adds - rest.n_multiply_adds};
}

LeastWork head_work(const Engine& engine) {
    const Engine::Impl& impl = impl_of(engine);
    return {.bytes = impl.cost.head_bytes, .n_multiply_adds = head_multiply_adds(impl.model)};
}

}  // namespace knap
