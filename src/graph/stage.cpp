#include "graph/stage.h"

#include <algorithm>
#include <optional>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/backend.h"
#include "forward/choices.h"
#include "graph/attention.h"
#include "graph/attention_groups.h"
#include "graph/forward_inputs.h"
#include "graph/graph_cache.h"
#include "graph/pass_graph.h"
#include "graph/stream_bank.h"
#include "kv/kv_store.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {
namespace {

constexpr std::size_t kMaxGraphs = 64;

std::size_t arena_bytes(std::size_t n_tensors) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes =
        n_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_tensors, false);
    return (bytes + kPage - 1) / kPage * kPage;
}

// Whoever wants more carries streams over the program's memory.
constexpr std::size_t kMaxBankBytes = std::size_t{512} << 20;

// At most as many blocks as the longest context cuts the largest pass into.
int max_blocks(int capacity, const BlockRules& rules, int n_ubatch) {
    const int step = max_block_rows(capacity, rules.n_score_heads);
    return std::min(kMaxBlocks, std::max((n_ubatch + step - 1) / step, rules.max_exact_blocks()));
}

[[noreturn]] void fail_for_memory(int n_rows) {
    fail("memory: expected room to compute ", n_rows,
         " rows, found less (a smaller `.n_ubatch` or `.n_ctx` needs less)");
}

}  // namespace

struct Stage::Impl {
    Impl(const ModelConfig& model_config,
         const ModelTensors& model_tensors,
         KvStore& kv,
         int max_rows_per_pass);

    void describe(const ForwardRequest& request, bool gives_stream);
    void describe(const ChainRequest& request, int context);
    void set_layout(const ForwardRequest& request);
    void set_layers(const ModulePlan& plan, int exit_layer);
    void set_blocks(int first_row);
    void ready_cache(int first_row);
    BuiltGraph& graph_for_pass();
    BuiltGraph& build();
    void lay_out(BuiltGraph& built);
    int max_rows(int first_row) const;
    int max_chain() const;
    int max_chain(int first_row) const;
    void reserve_for(int first_row);
    bool reserve(ggml_cgraph* graph);
    HeadTensors head();
    template <typename Fetch>
    auto compute(const BuiltGraph& built, Fetch fetch);
    StageResult fetch(const BuiltGraph& built, bool chooses);

    const ModelConfig& config;
    const ModelTensors& tensors;
    Backend& backend;
    KvStore& cache;
    const int n_ubatch;
    const BlockRules rules;
    const std::size_t n_tensors;  // of one graph, at most
    ForwardInputs inputs;
    ggml_gallocr_ptr allocator;
    GraphCache graphs;
    HeadSubset* draft_head = nullptr;  // null: there is the whole head alone
    std::shared_ptr<StreamBank> bank;  // null until one is wanted; kept for the next who wants one
    // Of the pass at hand; kept so that their vectors keep their memory.
    GraphKey key;
    AttentionLayout layout;
    AttentionGroups groups;
    ForwardOutputs outputs;
    std::vector<float> spread_logits;  // [n_vocab, n_logit_rows] of a reduced head
    std::vector<Token> choices;        // [n_logit_rows], made of the logits here
    ForwardStatistics statistics;
};

Stage::Impl::Impl(const ModelConfig& model_config,
                  const ModelTensors& model_tensors,
                  KvStore& kv,
                  int max_rows_per_pass)
    : config(model_config),
      tensors(model_tensors),
      backend(kv.backend()),
      cache(kv),
      n_ubatch(max_rows_per_pass),
      rules(block_rules(config, cache)),
      n_tensors(max_pass_tensors(cache.share().n_layers(),
                                 max_blocks(cache.capacity(), rules, n_ubatch))),
      inputs(config, cache, n_ubatch),
      allocator(ggml_gallocr_new(backend.buffer_type())),
      graphs(kMaxGraphs,
             arena_bytes(n_tensors * static_cast<std::size_t>(std::max(1, max_chain())))),
      outputs(backend) {
    reserve_for(0);
    reserve_for(std::max(0, cache.capacity() - n_ubatch));
    graphs.clear();
    graphs.reset_statistics();  // what was built to size the memory is nobody's pass
    statistics = {};
}

int Stage::Impl::max_rows(int first_row) const {
    const int end = std::min(first_row + n_ubatch, cache.capacity());
    return max_pass_rows(context_bucket(end, cache.capacity(), rules.step), rules.n_score_heads,
                         n_ubatch);
}

// Reserves compute memory for the largest pass that starts at `first_row`.
void Stage::Impl::reserve_for(int first_row) {
    const LayerShare& share = cache.share();
    const bool is_last = share.end_layer == config.n_layers;
    key.n_rows = std::min(max_rows(first_row), cache.capacity() - first_row);
    key.entry_layer = share.first_layer;
    key.embeds_tokens = share.first_layer == 0;
    key.gives_stream = !is_last;
    key.n_logit_rows = is_last ? std::min(kReservedLogitRows, key.n_rows) : 0;
    set_layers(ModulePlan(config.n_layers), share.end_layer);
    set_blocks(first_row);
    BuiltGraph& built = graphs.place(key);
    lay_out(built);
    reserve(built.graph);
}

// Turns a request into the key of its graph, and what its inputs are made of.
void Stage::Impl::describe(const ForwardRequest& request, bool gives_stream) {
    key.n_rows = count_rows(request, config);
    key.entry_layer = request.entry_layer;
    key.embeds_tokens = !request.tokens.empty();
    key.gives_stream = gives_stream;
    key.bank = {.takes = !request.bank.hidden.empty(),
                .puts = !request.bank.captured.empty(),
                .compares = !request.bank.compared.empty()};
    key.n_logit_rows = static_cast<int>(request.logit_rows.size());
    key.captures.assign(request.captures.begin(), request.captures.end());
    key.n_chained = 0;
    key.head = key.n_logit_rows > 0 ? request.plan->head() : HeadLevel::full;
    // The host's memory has the logits anyway, and only there is a head reduced, which numbers its
    // tokens otherwise.
    key.chooses = request.chooses && key.n_logit_rows > 0 && !backend.is_host();
    set_layers(*request.plan, request.exit_layer);
    set_layout(request);
    set_blocks(request.first_row);
}

// A chain is cut as the pass over all of its rows; then every step has a row to itself.
void Stage::Impl::describe(const ChainRequest& request, int context) {
    key.n_rows = request.n_steps;
    key.n_chained = request.n_steps;
    key.entry_layer = 0;
    key.embeds_tokens = true;
    key.gives_stream = false;
    key.bank = {};
    key.n_logit_rows = 0;
    key.chooses = false;
    key.captures.assign(request.captures.begin(), request.captures.end());
    key.head = HeadLevel::full;
    set_layers(*request.plan, config.n_layers);
    set_layout({.first_row = request.first_row, .layout = {.context = context}});
    set_blocks(request.first_row);
}

int Stage::Impl::max_chain() const {
    constexpr int kMost = 8;
    const bool has_all_layers = cache.share().n_layers() == config.n_layers;
    return backend.is_host() || !has_all_layers ? 0 : std::min(kMost, n_ubatch);
}

// Steps read as much of the cache as the last one does. Where rows are exact this has to be what
// each would read by itself.
int Stage::Impl::max_chain(int first_row) const {
    const int n_alike = context_bucket(first_row + 1, cache.capacity(), rules.step) - first_row;
    return rules.exact_rows > 0 ? std::min(max_chain(), n_alike) : max_chain();
}

// What is built of each layer.
void Stage::Impl::set_layers(const ModulePlan& plan, int exit_layer) {
    groups.assign(plan, key.entry_layer, exit_layer);
    key.layers.clear();
    for (int layer = key.entry_layer; layer < exit_layer; ++layer) {
        const bool has_mlp = tensors.layers[static_cast<std::size_t>(layer)].ffn_down != nullptr;
        key.layers.push_back(
            {.attention_group = groups.group_of(plan.level(layer, Module::attention)),
             .has_mlp = has_mlp && plan.runs(layer, Module::mlp)});
    }
}

void Stage::Impl::set_layout(const ForwardRequest& request) {
    layout = request.layout;
    KNAP_ASSERT(is_valid_layout(layout, request.first_row, key.n_rows, groups.has_windows()),
                "the layout fits the rows");
    key.follows_tree =
        is_tiled(cache.options().layout) && layout.kind == AttentionLayout::Kind::tree;
}

void Stage::Impl::set_blocks(int first_row) {
    BlockCut cut{
        .first_row = first_row, .n_rows = key.n_rows, .capacity = cache.capacity(), .rules = rules};
    if (key.n_chained > 0) {
        cut.rules.n_score_heads = 0;  // a step holds the scores of a single row
        cut.rules.exact_rows = 0;     // and is padded by itself
    }
    groups.cut(cut, layout.context);
    if (key.n_chained > 0) {
        groups.narrow_to_one_row(rules);
    }
    const bool has_moving_runs = path_for(cache.options().layout) == AttentionPath::kernel;
    for (std::size_t i = 0; i < key.blocks.size(); ++i) {
        if (i >= groups.groups().size()) {
            key.blocks[i].clear();
            continue;
        }
        key.blocks[i] = groups.groups()[i].blocks;
        KNAP_ASSERT(key.blocks[i].size() <= kMaxBlocks, "rows fit max_rows()");
        for (AttentionBlock& block : key.blocks[i]) {
            block.recent_row = has_moving_runs ? 0 : block.recent_row;
        }
    }
    if (inputs.reserve_masks(groups.n_mask_entries() * key.n_passes())) {
        ++statistics.reservations;
        graphs.clear();
    }
}

// Before the pass writes its rows, from `first_row` on: what windows read of the cache is there.
void Stage::Impl::ready_cache(int first_row) {
    if (groups.has_any()) {
        cache.expect_write(first_row, key.n_rows);
    }
    for (const AttentionGroup& group : groups.groups()) {
        for (const AttentionBlock& block : group.blocks) {
            if (block.sinks_follow) {
                cache.repeat_first_rows(block.n_sinks, block.end_of_recent());
            }
        }
    }
}

BuiltGraph& Stage::Impl::graph_for_pass() {
    BuiltGraph* built = graphs.find(key);
    return built != nullptr ? *built : build();
}

BuiltGraph& Stage::Impl::build() {
    const WorkerWait wait = backend.waiting();
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
    backend.settle(built->graph);
    return *built;
}

// Plans the graph's memory afresh (ggml would otherwise reuse the plan of another graph of equal
// sizes); true when the compute memory had to grow.
bool Stage::Impl::reserve(ggml_cgraph* graph) {
    const std::size_t before = ggml_gallocr_get_buffer_size(allocator.get(), 0);
    if (!ggml_gallocr_reserve(allocator.get(), graph)) {
        fail_for_memory(key.n_rows);
    }
    const std::size_t after = ggml_gallocr_get_buffer_size(allocator.get(), 0);
    statistics.reservations += after != before ? 1 : 0;
    return after != before;
}

// Builds the nodes of the pass that `key` describes.
void Stage::Impl::lay_out(BuiltGraph& built) {
    const std::span<std::byte> arena = graphs.arena(built);
    built.context.reset(ggml_init({arena.size(), arena.data(), true}));
    built.graph = ggml_new_graph_custom(built.context.get(), n_tensors * key.n_passes(), false);
    build_pass({config, tensors, cache, inputs, bank.get(), head()}, key, built);
}

HeadTensors Stage::Impl::head() {
    if (key.head == HeadLevel::reduced) {
        return draft_head->tensors();
    }
    return {tensors.output, tensors.output_b};
}

// Computes a pass whose inputs are set, and gives what it gave, by `fetch`; nullopt: cancelled.
// ggml asks between the nodes of a graph on the host whether it is still wanted; elsewhere it is
// asked for here, before the graph.
template <typename Fetch>
auto Stage::Impl::compute(const BuiltGraph& built, Fetch fetch) {
    const Stopwatch watch;
    const bool is_wanted = backend.is_host() || !backend.is_aborted();
    auto given =
        is_wanted && backend.compute(built.graph) ? std::optional(fetch(built)) : std::nullopt;
    statistics.compute_ms += given ? watch.elapsed_ms() : 0;
    return given;
}

// What the pass gave, once it is computed.
StageResult Stage::Impl::fetch(const BuiltGraph& built, bool chooses) {
    StageResult given = outputs.fetch(built);
    if (key.head == HeadLevel::reduced) {
        draft_head->spread(given.result.logits, spread_logits);
        given.result.logits = spread_logits;
    }
    if (chooses && built.logits != nullptr) {
        choices.clear();
        append_choices(given.result.logits, key.n_logit_rows, choices);
        given.result.logits = {};
        given.result.choices = choices;
    }
    return given;
}

Stage::Stage(const ModelConfig& config, const ModelTensors& tensors, KvStore& cache, int n_ubatch)
    : impl_(std::make_unique<Impl>(config, tensors, cache, n_ubatch)) {}

Stage::~Stage() = default;

const LayerShare& Stage::share() const {
    return impl_->cache.share();
}

void Stage::set_draft_head(HeadSubset& head) {
    impl_->draft_head = &head;
    impl_->graphs.clear();  // those that hold another one's tensors
}

StageResult Stage::run(const ForwardRequest& request, bool gives_stream) {
    Impl& self = *impl_;
    self.describe(request, gives_stream);
    BuiltGraph& built = self.graph_for_pass();
    self.ready_cache(request.first_row);
    self.inputs.set(request, self.layout, self.groups.groups(), self.key.n_rows);
    if (request.bank.n_numbers() > 0) {
        self.bank->set(request.bank);
    }
    const auto fetch = [&](const BuiltGraph& computed) {
        return self.fetch(computed, request.chooses);
    };
    return self.compute(built, fetch).value_or(StageResult{.result = {.is_complete = false}});
}

int Stage::max_chain(int first_row) const {
    return impl_->max_chain(first_row);
}

ChainResult Stage::run_chain(const ChainRequest& request, int context) {
    Impl& self = *impl_;
    self.describe(request, context);
    BuiltGraph& built = self.graph_for_pass();
    self.ready_cache(request.first_row);
    self.inputs.set_chain(request, self.layout, self.groups.groups());
    const auto fetch = [&](const BuiltGraph& computed) {
        return self.outputs.fetch_chain(computed);
    };
    return self.compute(built, fetch).value_or(ChainResult{.is_complete = false});
}

std::shared_ptr<const StreamBank> Stage::borrow_bank(std::size_t n_rows) {
    Impl& self = *impl_;
    const int n_streams = 2 * self.config.n_layers + 1;
    const BankSize size = {
        .n_embd = self.config.n_embd,
        .n_rows = n_rows,
        // Rows to resume from, and for every stream where they go and what they are compared with.
        .max_numbers =
            static_cast<std::size_t>(1 + 2 * n_streams) * static_cast<std::size_t>(self.n_ubatch),
    };
    const bool is_lent = self.bank.use_count() > 1;
    if (self.backend.is_host() || is_lent || size.bytes() > kMaxBankBytes) {
        return nullptr;
    }
    if (n_bank_rows() < n_rows) {
        if (self.bank != nullptr) {
            self.graphs.clear();  // those that hold its tensors
            self.bank.reset();
        }
        self.bank = StreamBank::make(self.backend, size);
    }
    return self.bank;
}

std::size_t Stage::n_bank_rows() const {
    return impl_->bank != nullptr ? impl_->bank->n_rows() : 0;
}

int Stage::max_rows(int first_row) const {
    return impl_->max_rows(first_row);
}

ForwardStatistics Stage::statistics() const {
    const Impl& self = *impl_;
    ForwardStatistics statistics = self.statistics;
    statistics.graphs = self.graphs.statistics();
    statistics.bytes_read = self.outputs.bytes_read();
    statistics.scratch_bytes = ggml_gallocr_get_buffer_size(self.allocator.get(), 0) +
                               self.inputs.bytes() +
                               (self.bank != nullptr ? self.bank->bytes() : 0) +
                               (self.draft_head != nullptr ? self.draft_head->bytes() : 0);
    return statistics;
}

}  // namespace knap
