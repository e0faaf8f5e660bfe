#include "cuda/cuda_stage.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "ggml-cpp.h"

#include "base/clock.h"
#include "base/error.h"
#include "cuda/attention_blocks.h"
#include "cuda/cuda_weights.h"
#include "cuda/pass_arena.h"
#include "cuda/phase_list.h"
#include "graph/attention/rope_rows.h"
#include "graph/pass_results.h"
#include "graph/pass_rows.h"
#include "kernels/cuda/cache_pages.h"
#include "kernels/cuda/prefill.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/strips.h"
#include "kv/sequence.h"

namespace knap {
namespace {

constexpr int kMaxChain = 16;
static_assert(kMaxPlanGroups <= kMaxCudaAttentions, "every group has a plan of attention");

// The frequency divisors of the model, in host memory.
class HostDivisors {
  public:
    HostDivisors(const ggml_tensor* divisors, CudaStream& stream) {
        if (divisors == nullptr) {
            return;
        }
        const std::size_t n_bytes = ggml_nbytes(divisors);
        context_.reset(ggml_init({n_bytes + 2 * ggml_tensor_overhead(), nullptr, false}));
        tensor_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, divisors->ne[0]);
        stream.download(tensor_->data, divisors->data, n_bytes);
        stream.wait();
    }
    ggml_tensor* tensor() const { return tensor_; }

  private:
    ggml_context_ptr context_;
    ggml_tensor* tensor_ = nullptr;
};

// Memory that grows to what the largest pass so far needed.
class GrowingMemory {
  public:
    explicit GrowingMemory(const char* what) : what_(what) {}
    float* reserve(std::size_t n_numbers, CudaStream& stream) {
        if (memory_.bytes() < n_numbers * sizeof(float)) {
            stream.wait();
            memory_ = {};
            memory_ = CudaMemory(n_numbers * sizeof(float), what_);
        }
        return memory_.as<float>();
    }
    std::size_t bytes() const { return memory_.bytes(); }

  private:
    const char* what_;
    CudaMemory memory_;
};

class CudaStage final : public Stage {
  public:
    CudaStage(const ModelConfig& config,
              const ModelTensors& tensors,
              CudaKvStore& cache,
              int max_rows);

    LayerRange layers() const override { return cache_.layers(); }
    bool run(std::span<RowRun* const> runs, bool gives_stream) override;
    int max_rows(int /*first_row*/) const override { return max_rows_; }
    int max_chain(int /*first_row*/) const override { return std::min(kMaxChain, max_rows_); }
    bool run_chain(const ChainRun& run) override;
    // Streams go through the host's memory.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t /*n_rows*/) override { return {}; }
    std::size_t n_bank_rows() const override { return 0; }
    ForwardStatistics statistics() const override;

  private:
    CudaShape new_shape();
    void reserve_buffers();
    void plan_attention(int n_steps, bool is_step);
    void list(const PhaseRequest& request);
    void add_rows(const RowRun& run, std::size_t first);
    void set_pass(int n_rows, int n_steps);
    void start(bool is_step);
    void deliver_rows(bool chooses);
    std::span<const float> fetch(const float* from, std::size_t n_numbers);

    const ModelConfig& config_;
    CudaKvStore& cache_;
    const int max_rows_;
    CudaWeights weights_;
    CudaStream stream_;
    HostDivisors divisors_;
    RopeRows rope_;
    std::vector<CudaLayer> layer_table_;
    CudaMemory layers_;  // the same on the device
    CudaMemory memory_;  // what all passes use
    GrowingMemory logits_{"logits"};
    GrowingMemory captures_{"captured streams"};
    CudaShape shape_;
    StepPlan plan_;
    CudaBuffers buffers_;
    PassArena arena_;
    PinnedMemory results_;
    std::deque<CudaAttentionBlocks> attentions_;  // of each group
    ForwardStatistics statistics_;
    // Scratch of a pass, kept so that its vectors keep their memory.
    PassRows rows_;
    AttentionGroups groups_;
    std::vector<TaskRun> task_runs_;
    std::vector<int> pages_;
    std::vector<int> first_pages_;
    std::vector<std::int32_t> positions_;
    std::vector<CudaRow> pass_rows_;
    std::vector<float> turns_;
    std::vector<CudaPhase> phases_;
    std::vector<std::span<const float>> capture_views_;
    CudaPassData pass_;
};

std::size_t round_to_line(std::size_t n) {
    constexpr std::size_t kLine = 256;
    return (n + kLine - 1) / kLine * kLine;
}

CudaStage::CudaStage(const ModelConfig& config,
                     const ModelTensors& tensors,
                     CudaKvStore& cache,
                     int max_rows)
    : config_(config),
      cache_((use_device(cache.device()), cache)),
      max_rows_(max_rows),
      weights_(cuda_weights(tensors)),
      divisors_(tensors.rope_freqs, stream_),
      rope_(config.rope, divisors_.tensor()),
      shape_(new_shape()),
      plan_(plan_step(cache.device(), step_needs(config, tensors))) {
    for (int group = 0; group < kMaxGroups; ++group) {
        attentions_.emplace_back(config, cache.device().n_processors);
    }
    reserve_buffers();
}

CudaShape CudaStage::new_shape() {
    for (int i = 0; i < config_.n_layers; ++i) {
        const CudaWeights::Layer& weights = weights_.layers[static_cast<std::size_t>(i)];
        CudaLayer& layer = layer_table_.emplace_back(
            CudaLayer{.q_norm = weights.q_norm, .k_norm = weights.k_norm});
        cache_.place(i, layer);
    }
    const std::size_t n_bytes = layer_table_.size() * sizeof(CudaLayer);
    layers_ = CudaMemory(n_bytes, "a table of layers");
    stream_.upload(layers_.data(), layer_table_.data(), n_bytes);
    stream_.wait();
    return {.n_embd = config_.n_embd,
            .n_heads = config_.n_heads,
            .n_kv_heads = config_.n_kv_heads,
            .head_dim = config_.head_dim,
            .n_ff = config_.n_ff,
            .n_vocab = config_.n_vocab,
            .n_rot = config_.rope.n_rot,
            .rotates_halves = config_.rope.pairing == RopePairing::halves,
            .rms_eps = config_.rms_eps,
            .attention_scale = config_.attention_scale,
            .has_int8_keys = cache_.types().keys == CacheType::q8_0,
            .has_int8_values = cache_.types().values == CacheType::q8_0,
            .layers = layers_.as<CudaLayer>(),
            .embedding = weights_.embedding};
}

// One piece of memory for all buffers whose size is known.
void CudaStage::reserve_buffers() {
    const auto n_rows = static_cast<std::size_t>(std::max(max_rows_, kMaxStepRows));
    const auto stride = static_cast<std::size_t>(
        std::max(kMaxStepRows, prefill_stride(std::max(max_rows_, kMaxStepRows))));
    const auto n_in =
        static_cast<std::size_t>(std::max({config_.n_embd, config_.n_embd_q(), config_.n_ff}));
    const auto n_heads = static_cast<std::size_t>(config_.n_heads);
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    // A sequence may be longer than the model was trained for, up to the whole cache.
    buffers_.max_parts = count_parts(cache_.n_pages() * kCudaPageRows) + 1;
    std::size_t n_bytes = 0;
    const auto take = [&](auto*& place, std::size_t n) {
        using Number = std::remove_reference_t<decltype(*place)>;
        const std::size_t at = n_bytes;
        n_bytes = round_to_line(n_bytes + n * sizeof(Number));
        if (memory_.data() != nullptr) {
            place = reinterpret_cast<Number*>(memory_.data() + at);
        }
    };
    const auto take_all = [&] {
        n_bytes = 0;
        take(buffers_.stream, n_rows * n_embd);
        take(buffers_.heads,
             n_rows * static_cast<std::size_t>(config_.n_embd_q() + 2 * config_.n_embd_kv()));
        take(buffers_.partials, kMaxStepRows * n_heads *
                                    static_cast<std::size_t>(buffers_.max_parts) *
                                    static_cast<std::size_t>(config_.head_dim + 2));
        for (int i = 0; i < 2; ++i) {
            take(buffers_.codes[i], stride * n_in);
            take(buffers_.scales[i], stride * n_in / kCudaBlock * 2);
            take(buffers_.floats[i], stride * n_in);
        }
        take(buffers_.halves, stride * n_in);
        take(buffers_.factors, stride);
        take(buffers_.squares, stride * n_embd / kCudaBlock);
        take(buffers_.best, best_numbers(plan_.n_blocks));
        take(buffers_.choices, n_rows);
        take(buffers_.probabilities, n_rows);
        take(buffers_.barrier, 2);
    };
    take_all();
    memory_ = CudaMemory(n_bytes, "passes");
    take_all();
}

ForwardStatistics CudaStage::statistics() const {
    ForwardStatistics statistics = statistics_;
    statistics.scratch_bytes = memory_.bytes() + logits_.bytes() + captures_.bytes() +
                               arena_.bytes() + layers_.bytes() + rope_.bytes();
    return statistics;
}

// A plan for each group of attentions, from task_runs_.
void CudaStage::plan_attention(int n_steps, bool is_step) {
    pages_.clear();
    first_pages_.clear();
    for (const TaskRun& run : task_runs_) {
        first_pages_.push_back(static_cast<int>(pages_.size()));
        const auto pages = run.sequence->pages();
        pages_.insert(pages_.end(), pages.begin(), pages.end());
    }
    for (std::size_t i = 0; i < groups_.groups().size(); ++i) {
        if (i > 0 || groups_.has_full()) {
            attentions_[i].plan(
                task_runs_, first_pages_, groups_.groups()[i].window,
                is_step ? CudaAttentionBlocks::For::step : CudaAttentionBlocks::For::prefill,
                n_steps);
        }
    }
}

void CudaStage::list(const PhaseRequest& request) {
    PhaseRequest whole = request;
    whole.groups = &groups_;
    list_phases(weights_, whole, phases_);
}

// Tokens, places and rotations of a run's rows.
void CudaStage::add_rows(const RowRun& run, std::size_t first) {
    const ForwardRequest& request = run.request;
    const auto n_own = static_cast<std::size_t>(run.n_rows);
    positions_.resize(n_own);
    fill_positions(request.layout, request.first_row, positions_);
    for (std::size_t i = 0; i < n_own; ++i) {
        pass_rows_.push_back({.token = request.tokens.empty() ? 0 : request.tokens[i],
                              .stored = rows_.stored[first + i]});
        const float* turns = rope_.at(positions_[i]);
        turns_.insert(turns_.end(), turns, turns + config_.rope.n_rot);
    }
}

// Sends everything to the device.
void CudaStage::set_pass(int n_rows, int n_steps) {
    struct Offsets {
        std::size_t blocks, runs, n_seen;
    };
    std::array<Offsets, kMaxGroups> offsets{};
    arena_.clear();
    const std::size_t phases = arena_.put(std::span<const CudaPhase>(phases_));
    const std::size_t rows = arena_.put(std::span<const CudaRow>(pass_rows_));
    const std::size_t turns = arena_.put(std::span<const float>(turns_));
    const std::size_t layers = arena_.put(std::span<const CudaLayer>(layer_table_));
    const std::size_t n_groups = groups_.groups().size();
    for (std::size_t i = 0; i < n_groups; ++i) {
        offsets[i] = {arena_.put(attentions_[i].blocks()), arena_.put(attentions_[i].runs()),
                      arena_.put(attentions_[i].n_seen())};
    }
    const std::size_t n_shared_bytes = arena_.bytes_used();
    const std::size_t pages = arena_.put(std::span<const int>(pages_));
    const std::size_t logit_rows = arena_.put(std::span<const int>(rows_.logit_rows));
    arena_.upload(stream_);
    pass_ = {.n_shared_bytes = n_shared_bytes,
             .phases = arena_.at<CudaPhase>(phases),
             .n_phases = static_cast<int>(phases_.size()),
             .n_rows = n_rows,
             .n_steps = n_steps,
             .layers = arena_.at<CudaLayer>(layers),
             .rows = arena_.at<CudaRow>(rows),
             .turns = arena_.at<float>(turns),
             .pages = arena_.at<int>(pages),
             .logit_rows = arena_.at<int>(logit_rows),
             .n_logit_rows = static_cast<int>(rows_.logit_rows.size())};
    for (std::size_t i = 0; i < n_groups; ++i) {
        pass_.attentions[i] = {.blocks = arena_.at<CudaBlock>(offsets[i].blocks),
                               .n_blocks = static_cast<int>(attentions_[i].blocks().size()),
                               .runs = arena_.at<CudaRun>(offsets[i].runs),
                               .merges = attentions_[i].merges(),
                               .n_seen = arena_.at<int>(offsets[i].n_seen)};
    }
}

void CudaStage::start(bool is_step) {
    if (is_step) {
        run_step(plan_, shape_, buffers_, pass_, stream_);
        return;
    }
    PrefillPlan plan{.phases = phases_};
    for (std::size_t i = 0; i < groups_.groups().size(); ++i) {
        plan.blocks[i] = attentions_[i].blocks();
    }
    run_prefill(cache_.device(), shape_, buffers_, pass_, plan, stream_);
}

// Numbers from the device, valid until the next call.
std::span<const float> CudaStage::fetch(const float* from, std::size_t n_numbers) {
    const std::size_t n_bytes = n_numbers * sizeof(float);
    if (results_.bytes() < n_bytes) {
        results_ = PinnedMemory(n_bytes);
    }
    stream_.download(results_.data(), from, n_bytes);
    stream_.wait();
    statistics_.bytes_read += n_bytes;
    return {results_.as<float>(), n_numbers};
}

bool CudaStage::run(std::span<RowRun* const> runs, bool gives_stream) {
    KNAP_ASSERT(!gives_stream, "all layers are on this device");
    if (are_unwanted(runs)) {
        return false;
    }
    use_device(cache_.device());
    const Stopwatch watch;
    rows_.assign(runs);
    const ForwardRequest& any = rows_.any_request();
    KNAP_ASSERT(any.bank.n_numbers() == 0, "no bank is lent");
    const bool is_step = rows_.n_rows <= plan_.max_rows;
    const bool chooses =
        !rows_.logit_rows.empty() && std::ranges::all_of(runs, [](const RowRun* run) {
            return run->request.chooses || run->request.logit_rows.empty();
        });
    groups_.assign(*any.plan, any.entry_layer, any.exit_layer);
    rows_.list_task_runs(groups_.has_windows(), task_runs_);
    pass_rows_.clear();
    turns_.clear();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const RowRun& run = rows_.run(i);
        add_rows(run, static_cast<std::size_t>(rows_.first[i]));
        if (run.request.tokens.empty()) {
            const std::size_t n_embd = static_cast<std::size_t>(config_.n_embd);
            stream_.upload(buffers_.stream + static_cast<std::size_t>(rows_.first[i]) * n_embd,
                           run.request.hidden.data(),
                           static_cast<std::size_t>(run.n_rows) * n_embd * sizeof(float));
        }
    }
    plan_attention(1, is_step);
    list({.plan = any.plan,
          .entry_layer = any.entry_layer,
          .exit_layer = any.exit_layer,
          .captures = rows_.captures,
          .embeds_tokens = !any.tokens.empty(),
          .has_logits = !rows_.logit_rows.empty(),
          .chooses = chooses});
    const auto n_rows = static_cast<std::size_t>(rows_.n_rows);
    const std::size_t n_logit_rows = rows_.logit_rows.empty() ? 0
                                     : is_step                ? n_rows
                                                              : rows_.logit_rows.size();
    buffers_.logits =
        logits_.reserve(n_logit_rows * static_cast<std::size_t>(config_.n_vocab), stream_);
    buffers_.captures = captures_.reserve(
        rows_.captures.size() * n_rows * static_cast<std::size_t>(config_.n_embd), stream_);
    set_pass(rows_.n_rows, 1);
    start(is_step);
    deliver_rows(chooses);
    statistics_.compute_ms += watch.elapsed_ms();
    return true;
}

// In the step kernel all rows have logits, else only those that were asked for.
void CudaStage::deliver_rows(bool chooses) {
    const auto n_rows = static_cast<std::size_t>(rows_.n_rows);
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    const auto n_vocab = static_cast<std::size_t>(config_.n_vocab);
    const bool is_step = rows_.n_rows <= plan_.max_rows;
    const std::size_t n_logit_rows = rows_.logit_rows.size();
    const std::size_t n_captured = rows_.captures.size() * n_rows * n_embd;
    const std::size_t n_logits = chooses ? 0 : n_logit_rows * n_vocab;
    const std::size_t n_choices = chooses ? n_rows : 0;
    const std::size_t n_numbers = n_captured + n_logits + n_choices;
    if (results_.bytes() < n_numbers * sizeof(float)) {
        results_ = PinnedMemory(n_numbers * sizeof(float));
    }
    float* captured = results_.as<float>();
    float* logits = captured + n_captured;
    auto* choices = reinterpret_cast<std::int32_t*>(logits + n_logits);
    if (n_captured > 0) {
        stream_.download(captured, buffers_.captures, n_captured * sizeof(float));
    }
    if (n_logits > 0 && (!is_step || n_logit_rows == n_rows)) {
        stream_.download(logits, buffers_.logits, n_logits * sizeof(float));
    } else if (n_logits > 0) {
        for (std::size_t i = 0; i < n_logit_rows; ++i) {
            stream_.download(
                logits + i * n_vocab,
                buffers_.logits + static_cast<std::size_t>(rows_.logit_rows[i]) * n_vocab,
                n_vocab * sizeof(float));
        }
    }
    if (n_choices > 0) {
        stream_.download(choices, buffers_.choices, n_choices * sizeof(std::int32_t));
    }
    stream_.wait();
    statistics_.bytes_read += n_numbers * sizeof(float);
    capture_views_.clear();
    for (std::size_t i = 0; i < rows_.captures.size(); ++i) {
        capture_views_.emplace_back(captured + i * n_rows * n_embd, n_rows * n_embd);
    }
    if (chooses && is_step) {
        for (std::size_t i = 0; i < n_logit_rows; ++i) {
            choices[i] = choices[rows_.logit_rows[i]];
        }
    }
    deliver(config_, rows_,
            {.logits = {logits, n_logits},
             .choices = {choices, chooses ? n_logit_rows : 0},
             .captures = capture_views_,
             .n_logit_rows = static_cast<int>(n_logit_rows)});
}

bool CudaStage::run_chain(const ChainRun& run) {
    const ChainRequest& request = run.request;
    if (run.is_cancelled != nullptr && *run.is_cancelled && (*run.is_cancelled)()) {
        return false;
    }
    use_device(cache_.device());
    const Stopwatch watch;
    groups_.assign(*request.plan, 0, config_.n_layers);
    task_runs_.assign(1, {.sequence = run.sequence,
                          .layout = {.context = run.context},
                          .first_row = request.first_row,
                          .n_rows = 1});
    pass_rows_.clear();
    turns_.clear();
    rows_.logit_rows.clear();
    for (int step = 0; step < request.n_steps; ++step) {
        const int row = request.first_row + step;
        pass_rows_.push_back({.token = request.token, .stored = run.sequence->stored_row(row)});
        const float* turns = rope_.at(row);
        turns_.insert(turns_.end(), turns, turns + config_.rope.n_rot);
    }
    plan_attention(request.n_steps, true);
    list({.plan = request.plan,
          .exit_layer = config_.n_layers,
          .captures = request.captures,
          .has_logits = true,
          .chooses = true});
    const auto n_steps = static_cast<std::size_t>(request.n_steps);
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    buffers_.logits = logits_.reserve(static_cast<std::size_t>(config_.n_vocab), stream_);
    buffers_.captures = captures_.reserve(request.captures.size() * n_steps * n_embd, stream_);
    set_pass(1, request.n_steps);
    start(true);
    RunResult& result = *run.result;
    result.n_rows = request.n_steps;
    const std::span<const float> probabilities = fetch(buffers_.probabilities, n_steps);
    result.probabilities.assign(probabilities.begin(), probabilities.end());
    const auto* choices = reinterpret_cast<const std::int32_t*>(
        fetch(reinterpret_cast<const float*>(buffers_.choices), n_steps).data());
    result.choices.assign(choices, choices + n_steps);
    result.captures.resize(request.captures.size());
    for (std::size_t i = 0; i < result.captures.size(); ++i) {
        const std::span<const float> captured =
            fetch(buffers_.captures + i * n_steps * n_embd, n_steps * n_embd);
        result.captures[i].assign(captured.begin(), captured.end());
    }
    statistics_.compute_ms += watch.elapsed_ms();
    return true;
}

}  // namespace

std::unique_ptr<Stage> new_cuda_stage(const ModelConfig& config,
                                      const ModelTensors& tensors,
                                      CudaKvStore& cache,
                                      int max_rows) {
    return std::make_unique<CudaStage>(config, tensors, cache, max_rows);
}

}  // namespace knap
