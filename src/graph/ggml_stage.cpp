#include "graph/ggml_stage.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/rounding.h"
#include "device/backend.h"
#include "forward/forward.h"
#include "graph/attention/attention_groups.h"
#include "graph/attention/ggml_attention.h"
#include "graph/forward_inputs.h"
#include "graph/forward_outputs.h"
#include "graph/graph_cache.h"
#include "graph/pass_graph.h"
#include "graph/pass_results.h"
#include "graph/stream_bank.h"
#include "kv/sequence.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {
namespace {

constexpr std::size_t kMaxGraphs = 64;
// Whoever wants more carries streams over the program's memory.

std::size_t arena_bytes(std::size_t n_tensors) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes =
        n_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_tensors, false);
    return round_up(bytes, kPage);
}

// At most as many blocks as the longest context cuts the largest pass into, or as many as a pass
// that several runs share has rows.
int max_blocks(int capacity, const BlockRules& rules, int max_rows) {
    const int step = max_block_rows(capacity, rules.n_score_heads);
    const int n_shared = rules.n_score_heads > 0 ? kMaxBlocks : rules.exact_rows;
    return std::min(kMaxBlocks, std::max({steps_for(max_rows, step), rules.max_exact_blocks(),
                                          std::min(n_shared, max_rows)}));
}

[[noreturn]] void fail_for_memory(int n_rows) {
    fail("memory: expected room to compute ", n_rows,
         " rows, found less (a smaller `.n_ubatch` or `.n_ctx` needs less)");
}

class GgmlStage final : public Stage {
  public:
    explicit GgmlStage(const StageParts& parts);

    LayerRange layers() const override { return cache_.layers(); }
    bool run(std::span<RowRun* const> runs, bool gives_stream) override;
    int max_rows(int first_row) const override;
    int max_chain(int first_row) const override;
    bool run_chain(const ChainRun& run) override;
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows) override;
    std::size_t n_bank_rows() const override { return bank_ != nullptr ? bank_->n_rows() : 0; }
    ForwardStatistics statistics() const override;

  private:
    bool uses_kernel() const { return attention_.path == AttentionPath::kernel; }
    int max_chain() const;
    void describe(const PassRows& rows, bool gives_stream, GraphKey& key) const;
    void describe(const ChainRun& run, GraphKey& key) const;
    void set_layers(const ModulePlan& plan, int exit_layer, GraphKey& key);
    void plan_attention(const PassRows& rows, GraphKey& key);
    void set_blocks(std::span<const RunCut> cuts, GraphKey& key);
    void ready_cache(std::span<const RunCut> cuts);
    void reserve_for(int first_row);
    BuiltGraph& graph_for(const GraphKey& key, HeadSubset* head);
    BuiltGraph& build(const GraphKey& key, HeadSubset* head);
    void lay_out(const GraphKey& key, HeadSubset* head, BuiltGraph& built);
    bool reserve(ggml_cgraph* graph, int n_rows);
    bool compute(const BuiltGraph& built, std::span<RowRun* const> runs);

    const ModelConfig& config_;
    const ModelTensors& tensors_;
    Backend& backend_;
    GgmlKvStore& cache_;
    const AttentionPolicy attention_;
    const int max_rows_;
    const BlockRules rules_;
    const std::size_t n_tensors_;  // of one graph, at most
    ForwardInputs inputs_;
    ggml_gallocr_ptr allocator_;
    GraphCache graphs_;
    std::shared_ptr<GgmlStreamBank>
        bank_;                          // null until one is wanted; kept for the next who wants one
    std::deque<AttentionTasks> tasks_;  // of each group, for our kernel; graphs point to them
    ForwardOutputs outputs_;
    // Scratch of a pass, kept so that its vectors keep their memory.
    PassRows rows_;
    GraphKey key_;
    AttentionGroups groups_;
    std::vector<TaskRun> task_runs_;
    std::vector<RunCut> cuts_;
    ForwardStatistics statistics_;
};

GgmlStage::GgmlStage(const StageParts& parts)
    : config_(parts.config),
      tensors_(parts.tensors),
      backend_(parts.cache.backend()),
      cache_(parts.cache),
      attention_(parts.attention),
      max_rows_(parts.max_rows),
      rules_(block_rules(config_, backend_, attention_)),
      n_tensors_(
          max_pass_tensors(config_,
                           cache_.share().n_layers(),
                           uses_kernel() ? 1 : max_blocks(cache_.page_rows(), rules_, max_rows_))),
      inputs_(config_, cache_, rules_, max_rows_),
      allocator_(ggml_gallocr_new(backend_.buffer_type())),
      graphs_(kMaxGraphs,
              arena_bytes(n_tensors_ * static_cast<std::size_t>(std::max(1, max_chain())))),
      outputs_(backend_) {
    for (int group = 0; group < (uses_kernel() ? kMaxGroups : 0); ++group) {
        tasks_.emplace_back(config_);
    }
    reserve_for(0);
    if (!uses_kernel()) {
        reserve_for(std::max(0, cache_.page_rows() - max_rows_));
    }
    graphs_.clear();
    graphs_.reset_statistics();  // what was built to size the memory is nobody's pass
    statistics_ = {};
}

int GgmlStage::max_rows(int first_row) const {
    const int end = std::min(first_row + max_rows_, cache_.page_rows());
    return uses_kernel() ? max_rows_
                         : max_pass_rows(context_bucket(end, cache_.page_rows(), rules_.step),
                                         rules_.n_score_heads, max_rows_);
}

// Reserves compute memory for the largest pass that starts at `first_row`.
void GgmlStage::reserve_for(int first_row) {
    const LayerShare& share = cache_.share();
    const bool is_last = share.end_layer == config_.n_layers;
    GraphKey key;
    key.n_rows =
        uses_kernel() ? max_rows_ : std::min(max_rows(first_row), cache_.page_rows() - first_row);
    key.entry_layer = share.first_layer;
    key.embeds_tokens = share.first_layer == 0;
    key.gives_stream = !is_last;
    key.n_logit_rows = is_last ? std::min(kReservedLogitRows, key.n_rows) : 0;
    set_layers(ModulePlan(config_.n_layers), share.end_layer, key);
    if (!uses_kernel()) {
        const RunCut cut{.rows = {.first_row = first_row,
                                  .n_rows = key.n_rows,
                                  .capacity = cache_.page_rows(),
                                  .rules = rules_}};
        set_blocks({&cut, 1}, key);
    }
    BuiltGraph& built = graphs_.place(key);
    lay_out(key, nullptr, built);
    reserve(built.graph, key.n_rows);
}

// The key of a pass's graph, but for its layers and blocks.
void GgmlStage::describe(const PassRows& rows, bool gives_stream, GraphKey& key) const {
    const ForwardRequest& any = rows.any_request();
    const bool pads = uses_kernel() && any.bank.n_numbers() == 0;
    const int n_logits = static_cast<int>(rows.logit_rows.size());
    key.n_rows = pads ? padded_rows(rows.n_rows, max_rows_) : rows.n_rows;
    key.n_logit_rows = n_logits == rows.n_rows ? key.n_rows
                       : pads && n_logits > 0
                           // Fewer than rows, so that they are selected.
                           ? std::min(padded_rows(n_logits, max_rows_), key.n_rows - 1)
                           : n_logits;
    key.entry_layer = any.entry_layer;
    key.embeds_tokens = !any.tokens.empty();
    key.gives_stream = gives_stream;
    key.bank = {.takes = !any.bank.hidden.empty(),
                .puts = !any.bank.captured.empty(),
                .compares = !any.bank.compared.empty()};
    key.captures.assign(rows.captures.begin(), rows.captures.end());
    key.n_chained = 0;
    const RowRun& first = rows.run(0);
    key.reduced_head = first.reduced_head != nullptr && n_logits > 0 ? first.reduced_head->id() : 0;
    // The host's memory has the logits anyway, and only there is a head reduced, which numbers its
    // tokens otherwise.
    key.chooses = n_logits > 0 && !backend_.is_host() &&
                  std::ranges::all_of(rows.runs, [](const RowRun* run) {
                      return run->request.chooses || run->request.logit_rows.empty();
                  });
}

void GgmlStage::describe(const ChainRun& run, GraphKey& key) const {
    key.n_rows = run.request.n_steps;
    key.n_chained = run.request.n_steps;
    key.entry_layer = 0;
    key.embeds_tokens = true;
    key.gives_stream = false;
    key.bank = {};
    key.n_logit_rows = 0;
    key.chooses = false;
    key.captures.assign(run.request.captures.begin(), run.request.captures.end());
    key.reduced_head = 0;
}

int GgmlStage::max_chain() const {
    constexpr int kMost = 8;
    const bool has_all_layers = cache_.share().n_layers() == config_.n_layers;
    return backend_.is_host() || !has_all_layers ? 0 : std::min(kMost, max_rows_);
}

// Steps read as much of the cache as the last one does. Where rows are exact this has to be what
// each would read by itself.
int GgmlStage::max_chain(int first_row) const {
    const int n_alike = context_bucket(first_row + 1, cache_.page_rows(), rules_.step) - first_row;
    return rules_.exact_rows > 0 ? std::min(max_chain(), n_alike) : max_chain();
}

// What is built of each layer.
void GgmlStage::set_layers(const ModulePlan& plan, int exit_layer, GraphKey& key) {
    groups_.assign(plan, key.entry_layer, exit_layer, config_.layers);
    key.layers.clear();
    for (int layer = key.entry_layer; layer < exit_layer; ++layer) {
        const LayerWeights& weights = tensors_.layers[static_cast<std::size_t>(layer)];
        const bool has_mlp = weights.ffn_down != nullptr || weights.expert_down != nullptr;
        const Level& mlp = plan.level(layer, Module::mlp);
        key.layers.push_back(
            {.attention_group = groups_.group_of(plan.level(layer, Module::attention),
                                                 config_.layer(layer).window),
             .has_mlp = has_mlp && plan.runs(layer, Module::mlp),
             .n_experts = mlp.n_experts});
    }
}

// What the rows attend to: for our kernel a plan that it reads while it runs, otherwise blocks that
// shape the graph.
void GgmlStage::plan_attention(const PassRows& rows, GraphKey& key) {
    rows.list_task_runs(groups_.has_windows(), task_runs_);
    if (!uses_kernel()) {
        cuts_.clear();
        for (const TaskRun& run : task_runs_) {
            cuts_.push_back({.rows = {.first_row = run.first_row,
                                      .n_rows = run.n_rows,
                                      .capacity = cache_.page_rows(),
                                      .rules = rules_},
                             .context = run.layout.context,
                             .first = run.first,
                             .page = run.sequence->pages().front()});
        }
        set_blocks(cuts_, key);
        return;
    }
    for (std::size_t i = 0; i < groups_.groups().size(); ++i) {
        if (i > 0 || groups_.has_full()) {
            tasks_[i].plan(task_runs_, groups_.groups()[i].scope(), backend_.n_threads());
        }
    }
}

void GgmlStage::set_blocks(std::span<const RunCut> cuts, GraphKey& key) {
    groups_.cut(cuts);
    if (key.n_chained > 0) {
        groups_.narrow_to_one_row(rules_);
    }
    for (std::size_t i = 0; i < key.blocks.size(); ++i) {
        if (i < groups_.groups().size()) {
            key.blocks[i] = groups_.groups()[i].blocks;
        } else {
            key.blocks[i].clear();
        }
        KNAP_ASSERT(key.blocks[i].size() <= kMaxBlocks, "rows fit max_rows()");
    }
    if (inputs_.reserve_masks(groups_.n_mask_entries() * key.n_passes())) {
        ++statistics_.reservations;
        graphs_.clear();
    }
}

// Before the pass writes its rows: what windows read of the cache is there.
void GgmlStage::ready_cache(std::span<const RunCut> cuts) {
    for (const RunCut& cut : cuts) {
        if (groups_.has_any()) {
            cache_.expect_write(cut.page, cut.rows.first_row, cut.rows.n_rows);
        }
    }
    for (const AttentionGroup& group : groups_.groups()) {
        for (const AttentionBlock& block : group.blocks) {
            if (block.sinks_follow) {
                cache_.repeat_first_rows(block.page, block.n_sinks, block.end_of_recent());
            }
        }
    }
}

BuiltGraph& GgmlStage::graph_for(const GraphKey& key, HeadSubset* head) {
    BuiltGraph* built = graphs_.find(key);
    return built != nullptr ? *built : build(key, head);
}

BuiltGraph& GgmlStage::build(const GraphKey& key, HeadSubset* head) {
    const WorkerWait wait = backend_.waiting();
    BuiltGraph* built = &graphs_.place(key);
    lay_out(key, head, *built);
    if (reserve(built->graph, key.n_rows)) {
        // The compute memory moved: every graph allocated in it before is void, and this one is
        // laid out anew.
        graphs_.clear();
        built = &graphs_.place(key);
        lay_out(key, head, *built);
        reserve(built->graph, key.n_rows);
    }
    if (!ggml_gallocr_alloc_graph(allocator_.get(), built->graph)) {
        fail_for_memory(key.n_rows);
    }
    backend_.settle(built->graph);
    return *built;
}

// Plans the graph's memory afresh (ggml would otherwise reuse the plan of another graph of equal
// sizes); true when the compute memory had to grow.
bool GgmlStage::reserve(ggml_cgraph* graph, int n_rows) {
    const std::size_t before = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
    if (!ggml_gallocr_reserve(allocator_.get(), graph)) {
        fail_for_memory(n_rows);
    }
    const std::size_t after = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
    statistics_.reservations += after != before ? 1 : 0;
    return after != before;
}

// Builds the nodes of the pass that `key` describes.
void GgmlStage::lay_out(const GraphKey& key, HeadSubset* head, BuiltGraph& built) {
    const std::span<std::byte> arena = graphs_.arena(built);
    built.context.reset(ggml_init({arena.size(), arena.data(), true}));
    built.graph = ggml_new_graph_custom(built.context.get(), n_tensors_ * key.n_passes(), false);
    const HeadTensors whole{tensors_.output, tensors_.output_b};
    build_pass({.config = config_,
                .tensors = tensors_,
                .cache = cache_,
                .inputs = inputs_,
                .tasks = tasks_,
                .bank = bank_.get(),
                .head = key.reduced_head != 0 ? head->tensors() : whole},
               key, built);
}

// Runs a graph whose inputs are set; false: every run is cancelled. ggml asks between the nodes of
// a graph on the host whether it is still wanted; elsewhere it is asked for here, before the graph.
bool GgmlStage::compute(const BuiltGraph& built, std::span<RowRun* const> runs) {
    const bool may_be_cancelled = may_be_unwanted(runs);
    if (may_be_cancelled) {
        backend_.set_abort([runs] { return are_unwanted(runs); });
    }
    const bool is_wanted = backend_.is_host() || !backend_.is_aborted();
    const bool is_complete = is_wanted && backend_.compute(built.graph);
    if (may_be_cancelled) {
        backend_.set_abort({});
    }
    return is_complete;
}

bool GgmlStage::run(std::span<RowRun* const> runs, bool gives_stream) {
    rows_.assign(runs);
    describe(rows_, gives_stream, key_);
    const ForwardRequest& any = rows_.any_request();
    set_layers(*any.plan, any.exit_layer, key_);
    plan_attention(rows_, key_);
    BuiltGraph& built = graph_for(key_, rows_.run(0).reduced_head);
    ready_cache(cuts_);
    inputs_.set(rows_, key_, groups_.groups());
    if (any.bank.n_numbers() > 0) {
        bank_->set(any.bank);
    }
    const Stopwatch watch;
    const bool is_complete = compute(built, runs);
    if (is_complete) {
        PassOutputs outputs = outputs_.fetch(built);
        outputs.n_logit_rows = key_.n_logit_rows;
        deliver(config_, rows_, outputs);
        statistics_.compute_ms += watch.elapsed_ms();
    }
    return is_complete;
}

bool GgmlStage::run_chain(const ChainRun& run) {
    const ChainRequest& request = run.request;
    describe(run, key_);
    set_layers(*request.plan, config_.n_layers, key_);
    // A chain is cut as the pass over all of its rows; then every step has a row to itself.
    RunCut cut{.rows = {.first_row = request.first_row,
                        .n_rows = request.n_steps,
                        .capacity = cache_.page_rows(),
                        .rules = rules_},
               .context = run.context,
               .page = run.sequence->pages().front()};
    cut.rows.rules.n_score_heads = 0;  // a step holds the scores of a single row
    cut.rows.rules.exact_rows = 0;     // and is padded by itself
    set_blocks({&cut, 1}, key_);
    BuiltGraph& built = graph_for(key_, nullptr);
    ready_cache({&cut, 1});
    inputs_.set_chain(run, groups_.groups());
    RowRun as_run{.is_cancelled = run.is_cancelled};
    RowRun* only = &as_run;
    const Stopwatch watch;
    const bool is_complete = compute(built, {&only, 1});
    if (is_complete) {
        const PassOutputs outputs = outputs_.fetch(built);
        RunResult& result = *run.result;
        result.n_rows = request.n_steps;
        result.choices.assign(outputs.choices.begin(), outputs.choices.end());
        result.probabilities.assign(outputs.probabilities.begin(), outputs.probabilities.end());
        result.captures.resize(outputs.captures.size());
        for (std::size_t i = 0; i < outputs.captures.size(); ++i) {
            result.captures[i].assign(outputs.captures[i].begin(), outputs.captures[i].end());
        }
        statistics_.compute_ms += watch.elapsed_ms();
    }
    return is_complete;
}

std::shared_ptr<const StreamBank> GgmlStage::borrow_bank(std::size_t n_rows) {
    const int n_streams = 2 * config_.n_layers + 1;
    const BankSize size = {
        .n_embd = config_.n_embd,
        .n_rows = n_rows,
        // Rows to resume from, and for every stream where they go and what they are compared with.
        .max_numbers =
            static_cast<std::size_t>(1 + 2 * n_streams) * static_cast<std::size_t>(max_rows_),
    };
    const bool is_lent = bank_.use_count() > 1;
    if (backend_.is_host() || is_lent || size.bytes() > kMaxBankBytes) {
        return nullptr;
    }
    if (n_bank_rows() < n_rows) {
        if (bank_ != nullptr) {
            graphs_.clear();  // those that hold its tensors
            bank_.reset();
        }
        bank_ = GgmlStreamBank::make(backend_, size);
    }
    return bank_;
}

ForwardStatistics GgmlStage::statistics() const {
    ForwardStatistics statistics = statistics_;
    statistics.graphs = graphs_.statistics();
    statistics.bytes_read = outputs_.bytes_read();
    statistics.scratch_bytes = ggml_gallocr_get_buffer_size(allocator_.get(), 0) + inputs_.bytes() +
                               (bank_ != nullptr ? bank_->bytes() : 0);
    return statistics;
}

}  // namespace

std::unique_ptr<Stage> new_ggml_stage(const StageParts& parts) {
    return std::make_unique<GgmlStage>(parts);
}

}  // namespace knap
