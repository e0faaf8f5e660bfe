#include "graph/forward.h"

#include <algorithm>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/backend.h"
#include "graph/attention.h"
#include "graph/blocks.h"
#include "graph/forward_inputs.h"
#include "graph/graph_cache.h"
#include "kv/kv_cache.h"
#include "model/weights.h"

namespace knap {
namespace {

constexpr std::size_t kMaxGraphs = 32;
// Reserved for in advance; a pass that asks for more logits makes the memory grow once.
constexpr int kReservedLogitRows = 32;

// Upper bounds on the tensors of a graph, views included: see blocks.cpp and attention.cpp.
constexpr int kTensorsPerLayer = 48;
constexpr int kTensorsPerBlock = 20;
constexpr std::size_t kTensorsPerGraph = 64;

std::size_t max_tensors(int n_layers, int n_blocks) {
    const int per_layer = kTensorsPerLayer + kTensorsPerBlock * n_blocks;
    return static_cast<std::size_t>(n_layers) * static_cast<std::size_t>(per_layer) +
           kTensorsPerGraph;
}

std::size_t arena_bytes(std::size_t n_tensors) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes =
        n_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_tensors, false);
    return (bytes + kPage - 1) / kPage * kPage;
}

// At most as many blocks as the longest context cuts the largest pass into.
int max_blocks(int capacity, int n_score_heads, int n_ubatch) {
    const int step = max_block_rows(capacity, n_score_heads);
    return std::min(kMaxBlocks, (n_ubatch + step - 1) / step);
}

[[noreturn]] void fail_for_memory(int n_rows) {
    fail("memory: expected room to compute ", n_rows,
         " rows, found less (a smaller -ub or -c needs less)");
}

std::span<const float> host_view(const ggml_tensor* tensor) {
    if (tensor == nullptr) {
        return {};
    }
    return {static_cast<const float*>(tensor->data),
            static_cast<std::size_t>(ggml_nelements(tensor))};
}

}  // namespace

struct Forward::Impl {
    Impl(const ModelConfig& model_config,
         const Weights& model_weights,
         Backend& device,
         KvCache& kv,
         int max_rows_per_pass);

    void set_key(const ForwardRequest& request);
    BuiltGraph& graph_for(const ForwardRequest& request);
    BuiltGraph& build();
    void lay_out(BuiltGraph& built);
    int max_rows(int first_row) const;
    void reserve_for(int first_row);
    bool reserve(ggml_cgraph* graph);
    bool is_captured(int n_modules) const;

    const ModelConfig& config;
    const Weights& weights;
    Backend& backend;
    KvCache& cache;
    const int n_ubatch;
    const int n_score_heads;
    const std::size_t n_tensors;  // of one graph, at most
    ForwardInputs inputs;
    ggml_gallocr_ptr allocator;
    GraphCache graphs;
    GraphKey key;  // of the pass at hand; kept so that its vectors keep their memory
    ModulePlan full_plan;
    std::vector<std::span<const float>> capture_views;
    ForwardStatistics statistics;
};

Forward::Impl::Impl(const ModelConfig& model_config,
                    const Weights& model_weights,
                    Backend& device,
                    KvCache& kv,
                    int max_rows_per_pass)
    : config(model_config),
      weights(model_weights),
      backend(device),
      cache(kv),
      n_ubatch(max_rows_per_pass),
      n_score_heads(heads_with_scores(config, cache)),
      n_tensors(
          max_tensors(config.n_layers, max_blocks(cache.capacity(), n_score_heads, n_ubatch))),
      inputs(config, backend, cache, n_ubatch),
      allocator(ggml_gallocr_new(backend.buffer_type())),
      graphs(kMaxGraphs, arena_bytes(n_tensors)),
      key(config.n_layers),
      full_plan(config.n_layers) {
    reserve_for(0);
    reserve_for(std::max(0, cache.capacity() - n_ubatch));
    graphs.clear();
    graphs.reset_statistics();  // what was built to size the memory is nobody's pass
    statistics = {};
}

int Forward::Impl::max_rows(int first_row) const {
    const int end = std::min(first_row + n_ubatch, cache.capacity());
    return max_pass_rows(context_bucket(end, cache.capacity()), n_score_heads, n_ubatch);
}

// Reserves compute memory for the largest pass that starts at `first_row`.
void Forward::Impl::reserve_for(int first_row) {
    key.n_rows = std::min(max_rows(first_row), cache.capacity() - first_row);
    key.exit_layer = config.n_layers;
    key.n_logit_rows = std::min(kReservedLogitRows, key.n_rows);
    cut_into_blocks(first_row, key.n_rows, n_score_heads, cache.capacity(), key.blocks);
    BuiltGraph& built = graphs.place(key);
    lay_out(built);
    reserve(built.graph);
}

bool Forward::Impl::is_captured(int n_modules) const {
    return std::find(key.captures.begin(), key.captures.end(), n_modules) != key.captures.end();
}

void Forward::Impl::set_key(const ForwardRequest& request) {
    key.embeds_tokens = request.hidden.empty();
    key.n_rows = static_cast<int>(key.embeds_tokens ? request.tokens.size()
                                                    : request.hidden.size() /
                                                          static_cast<std::size_t>(config.n_embd));
    key.entry_layer = request.entry_layer;
    key.exit_layer = request.exit_layer < 0 ? config.n_layers : request.exit_layer;
    key.n_logit_rows = static_cast<int>(request.logit_rows.size());
    key.layout = request.layout;
    key.captures.assign(request.captures.begin(), request.captures.end());
    key.plan = request.plan != nullptr ? *request.plan : full_plan;
    KNAP_ASSERT(key.n_rows > 0 && request.first_row + key.n_rows <= cache.capacity(),
                "rows fit the cache");
    KNAP_ASSERT(key.embeds_tokens ? key.entry_layer == 0 : request.tokens.empty(),
                "one kind of input");
    cut_into_blocks(request.first_row, key.n_rows, n_score_heads, cache.capacity(), key.blocks);
    KNAP_ASSERT(key.n_rows <= n_ubatch && key.blocks.size() <= kMaxBlocks, "rows fit max_rows()");
}

BuiltGraph& Forward::Impl::graph_for(const ForwardRequest& request) {
    set_key(request);
    if (BuiltGraph* built = graphs.find(key)) {
        return *built;
    }
    return build();
}

BuiltGraph& Forward::Impl::build() {
    BuiltGraph* built = &graphs.place(key);
    lay_out(*built);
    if (reserve(built->graph)) {
        // The compute memory moved: every graph allocated in it before is void, and this one is
        // laid out anew.
        graphs.clear();
        built = &graphs.place(key);
        lay_out(*built);
        reserve(built->graph);
    }
    if (!ggml_gallocr_alloc_graph(allocator.get(), built->graph)) {
        fail_for_memory(key.n_rows);
    }
    return *built;
}

// Plans the graph's memory afresh (ggml would otherwise reuse the plan of another graph of equal
// sizes); true when the compute memory had to grow.
bool Forward::Impl::reserve(ggml_cgraph* graph) {
    const std::size_t before = ggml_gallocr_get_buffer_size(allocator.get(), 0);
    if (!ggml_gallocr_reserve(allocator.get(), graph)) {
        fail_for_memory(key.n_rows);
    }
    const std::size_t after = ggml_gallocr_get_buffer_size(allocator.get(), 0);
    statistics.reservations += after != before ? 1 : 0;
    return after != before;
}

// Builds the nodes of the pass that `key` describes.
void Forward::Impl::lay_out(BuiltGraph& built) {
    const std::span<std::byte> arena = graphs.arena(built);
    built.context.reset(ggml_init({arena.size(), arena.data(), true}));
    ggml_context* ctx = built.context.get();
    built.graph = ggml_new_graph_custom(ctx, n_tensors, false);

    const std::vector<ggml_tensor*> masks = inputs.masks(ctx, key.blocks);
    const BlockContext block{ctx,
                             built.graph,
                             config,
                             weights.tensors(),
                             cache,
                             inputs.positions(ctx, key.n_rows),
                             cache.view_slots(ctx, inputs.slots(), key.n_rows),
                             key.blocks,
                             masks};
    ggml_tensor* stream = key.embeds_tokens ? ggml_get_rows(ctx, weights.tensors().token_embd,
                                                            inputs.tokens(ctx, key.n_rows))
                                            : inputs.hidden(ctx, key.n_rows);
    const auto capture = [&](int n_modules) {
        if (is_captured(n_modules)) {
            ggml_set_output(stream);
            ggml_build_forward_expand(built.graph, stream);
            built.captures.push_back(stream);
        }
    };
    const bool selects_rows = key.n_logit_rows > 0 && key.n_logit_rows < key.n_rows;
    bool has_selected = false;
    const auto select_rows = [&] {
        if (selects_rows && !has_selected) {
            stream = ggml_get_rows(ctx, stream, inputs.logit_rows(ctx, key.n_logit_rows));
            has_selected = true;
        }
    };

    capture(2 * key.entry_layer);
    for (int layer = key.entry_layer; layer < key.exit_layer; ++layer) {
        if (key.plan.runs(layer, Module::attention)) {
            stream = ggml_add(ctx, stream, build_attention_module(block, layer, stream));
        }
        capture(2 * layer + 1);
        if (layer == key.exit_layer - 1 && !is_captured(2 * layer + 2)) {
            select_rows();  // nobody needs the other rows of the last MLP
        }
        if (key.plan.runs(layer, Module::mlp)) {
            stream = ggml_add(ctx, stream, build_mlp_module(block, layer, stream));
        }
        capture(2 * layer + 2);
    }
    // Without logits the last attention is only built as far as its keys and values: what nobody
    // reads is not added.
    if (key.n_logit_rows > 0) {
        select_rows();
        built.logits = build_head(block, stream);
        ggml_set_output(built.logits);
        ggml_build_forward_expand(built.graph, built.logits);
    }
}

Forward::Forward(const ModelConfig& config,
                 const Weights& weights,
                 Backend& backend,
                 KvCache& cache,
                 int n_ubatch)
    : impl_(std::make_unique<Impl>(config, weights, backend, cache, n_ubatch)) {}

Forward::~Forward() = default;

ForwardResult Forward::run(const ForwardRequest& request) {
    Impl& self = *impl_;
    BuiltGraph& built = self.graph_for(request);
    self.inputs.set(request, self.key, self.cache);

    const Stopwatch watch;
    const bool is_complete = self.backend.compute(built.graph);
    self.statistics.compute_ms += watch.elapsed_ms();
    if (!is_complete) {
        return {.is_complete = false};
    }
    self.capture_views.clear();
    for (const ggml_tensor* capture : built.captures) {
        self.capture_views.push_back(host_view(capture));
    }
    return {.logits = host_view(built.logits), .captures = self.capture_views};
}

int Forward::max_rows(int first_row) const {
    return impl_->max_rows(first_row);
}

const ForwardStatistics& Forward::statistics() const {
    Impl& self = *impl_;
    self.statistics.graphs = self.graphs.statistics();
    self.statistics.scratch_bytes =
        ggml_gallocr_get_buffer_size(self.allocator.get(), 0) + self.inputs.bytes();
    return self.statistics;
}

}  // namespace knap
