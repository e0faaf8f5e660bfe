#include "cpu/cpu_stage.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cpu/cpu_pass.h"
#include "device/backend.h"
#include "graph/attention/rope_rows.h"
#include "graph/pass_results.h"
#include "graph/pass_rows.h"
#include "graph/rotation.h"
#include "model/head_subset.h"

namespace knap {
namespace {

CpuModel cpu_model(const ModelConfig& config,
                   const ModelTensors& tensors,
                   const GgmlKvStore& cache) {
    const LayerShare& share = cache.share();
    CpuModel model{.config = config,
                   .layers = cpu_layers(config, tensors, share),
                   .first_layer = share.first_layer,
                   .token_embd = tensors.token_embd};
    if (share.end_layer == config.n_layers && tensors.output_norm != nullptr) {
        model.output_norm = static_cast<const float*>(tensors.output_norm->data);
    }
    for (int layer = share.first_layer; layer < share.end_layer; ++layer) {
        model.cached.push_back(cache.tensors(layer));
    }
    return model;
}

class CpuStage final : public Stage {
  public:
    CpuStage(const ModelConfig& config,
             const ModelTensors& tensors,
             GgmlKvStore& cache,
             int max_rows)
        : config_(config),
          tensors_(tensors),
          cache_(cache),
          max_rows_(max_rows),
          team_(cache.backend().team()),
          rope_(config.rope, divisors()),
          local_rope_(config.local_rope, divisors()),
          unit_pairs_(static_cast<std::size_t>(config.rope.n_rot)),
          pass_(cpu_model(config, tensors, cache), max_rows, team_.n_threads()) {
        fill_unit_pairs(config.rope, unit_pairs_);
        for (int group = 0; group < kMaxGroups; ++group) {
            task_views_.push_back(&tasks_.emplace_back(config));
        }
    }

    LayerRange layers() const override { return cache_.layers(); }
    bool run(std::span<RowRun* const> runs, bool gives_stream) override;
    int max_rows(int /*first_row*/) const override { return max_rows_; }

    // The host need not wait for anything between two passes.
    int max_chain(int /*first_row*/) const override { return 0; }
    bool run_chain(const ChainRun& /*run*/) override { return false; }
    int max_best() const override { return BestRows::kMost; }
    // Its memory is the host's.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t /*n_rows*/) override { return {}; }
    std::size_t n_bank_rows() const override { return 0; }

    ForwardStatistics statistics() const override {
        return {.scratch_bytes = pass_.bytes() + rope_.bytes() + local_rope_.bytes(),
                .compute_ms = compute_ms_};
    }

  private:
    ggml_tensor* divisors() const {
        return tensors_.layers[static_cast<std::size_t>(cache_.share().first_layer)].rope_freqs;
    }
    void plan_attention();
    void set_rows();

    const ModelConfig& config_;
    const ModelTensors& tensors_;
    GgmlKvStore& cache_;
    const int max_rows_;
    ThreadTeam& team_;
    RopeRows rope_;
    RopeRows local_rope_;
    std::vector<float> unit_pairs_;  // [n_rot]
    CpuPass pass_;
    std::deque<AttentionTasks> tasks_;  // of each group
    std::vector<const AttentionTasks*> task_views_;
    double compute_ms_ = 0;
    // Scratch of a pass, kept so that its vectors keep their memory.
    PassRows rows_;
    AttentionGroups groups_;
    std::vector<TaskRun> task_runs_;
    std::vector<Token> tokens_;
    std::vector<std::int32_t> positions_;
    std::vector<const float*> turns_;
    std::vector<const float*> local_turns_;
    std::vector<float> query_scales_;
};

bool CpuStage::run(std::span<RowRun* const> runs, bool gives_stream) {
    rows_.assign(runs);
    const ForwardRequest& any = rows_.any_request();
    KNAP_ASSERT(any.bank.n_numbers() == 0, "the host lends no bank");
    groups_.assign(*any.plan, any.entry_layer, any.exit_layer, config_.layers);
    plan_attention();
    set_rows();
    CpuRequest request{.n_rows = rows_.n_rows,
                       .tokens = tokens_,
                       .stored = rows_.stored,
                       .turns = turns_,
                       .local_turns = local_turns_,
                       .unit_pairs = unit_pairs_,
                       .query_scales = query_scales_,
                       .plan = any.plan,
                       .groups = &groups_,
                       .tasks = task_views_,
                       .entry_layer = any.entry_layer,
                       .exit_layer = any.exit_layer,
                       .captures = rows_.captures,
                       .logit_rows = rows_.logit_rows,
                       .ranks = std::ranges::any_of(
                           runs, [](const RowRun* run) { return run->request.n_best > 0; }),
                       .gives_stream = gives_stream};
    if (!rows_.logit_rows.empty()) {
        HeadSubset* reduced = rows_.run(0).reduced_head;
        const HeadTensors head = reduced != nullptr
                                     ? reduced->tensors()
                                     : HeadTensors{tensors_.output, tensors_.output_b};
        request.head = cpu_matrix(head.weight, head.bias);
    }
    if (may_be_unwanted(runs)) {
        request.is_cancelled = [runs] { return are_unwanted(runs); };
    }
    const Stopwatch watch;
    if (!pass_.run(team_, request)) {
        return false;
    }
    deliver(config_, rows_,
            {.logits = pass_.logits(),
             .best = request.ranks ? pass_.best() : BestTokens(),
             .captures = pass_.captures(),
             .stream = gives_stream ? pass_.stream(rows_.n_rows) : std::span<const float>(),
             .n_logit_rows = static_cast<int>(rows_.logit_rows.size())});
    compute_ms_ += watch.elapsed_ms();
    return true;
}

// One plan for each group of attentions.
void CpuStage::plan_attention() {
    // More shares than threads let one thread help another, but split more tasks.
    constexpr int kManyRows = 16;
    const int n_shares = (rows_.n_rows < kManyRows ? 2 : 8) * team_.n_threads();
    rows_.list_task_runs(groups_.has_windows(), task_runs_);
    for (std::size_t i = 0; i < groups_.groups().size(); ++i) {
        if (i > 0 || groups_.has_full()) {
            tasks_[i].plan(task_runs_, groups_.groups()[i].scope(), n_shares);
        }
    }
}

void CpuStage::set_rows() {
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    tokens_.clear();
    positions_.resize(static_cast<std::size_t>(rows_.n_rows));
    for (std::size_t i = 0; i < rows_.runs.size(); ++i) {
        const RowRun& run = rows_.run(i);
        const ForwardRequest& request = run.request;
        const auto first = static_cast<std::size_t>(rows_.first[i]);
        const auto n_own = static_cast<std::size_t>(run.n_rows);
        fill_positions(request.layout, request.first_row,
                       std::span(positions_).subspan(first, n_own));
        if (request.tokens.empty()) {
            std::ranges::copy(request.hidden.first(n_own * n_embd),
                              pass_.stream(rows_.n_rows).subspan(first * n_embd).begin());
        } else {
            const auto tokens = request.tokens.first(n_own);
            tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
        }
    }
    turns_.clear();
    local_turns_.clear();
    for (const std::int32_t position : positions_) {
        turns_.push_back(rope_.at(position));
        if (config_.has(Rotation::local)) {
            local_turns_.push_back(local_rope_.at(position));
        }
    }
    query_scales_.clear();
    if (config_.temperature.scale != 0) {
        for (const std::int32_t position : positions_) {
            query_scales_.push_back(query_scale(config_.temperature, position));
        }
    }
}

}  // namespace

std::unique_ptr<Stage> new_cpu_stage(const ModelConfig& config,
                                     const ModelTensors& tensors,
                                     GgmlKvStore& cache,
                                     int max_rows) {
    return std::make_unique<CpuStage>(config, tensors, cache, max_rows);
}

}  // namespace knap
