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
#include "cuda/cuda_stream_bank.h"
#include "cuda/cuda_weights.h"
#include "cuda/growing_memory.h"
#include "cuda/pass_arena.h"
#include "cuda/phase_list.h"
#include "cuda/result_arena.h"
#include "cuda/row_results.h"
#include "graph/attention/rope_rows.h"
#include "graph/pass_rows.h"
#include "kernels/cuda/cache_pages.h"
#include "kernels/cuda/prefill/prefill.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/strips.h"
#include "kv/sequence.h"

namespace knap {
namespace {

constexpr int kMaxChain = 16;
// A chain lists tokens by the largest logits of as many blocks, and a list has room for many more.
constexpr int kMaxBest = 100;
static_assert(kMaxGroups <= kMaxCudaAttentions, "every group has a plan of attention");

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
    int max_best() const override { return std::min(kMaxBest, plan_.n_blocks); }
    bool run_chain(const ChainRun& run) override;
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows) override;
    std::size_t n_bank_rows() const override { return bank_ != nullptr ? bank_->n_rows() : 0; }
    ForwardStatistics statistics() const override;

  private:
    CudaShape new_shape();
    void reserve_buffers();
    void plan_attention(int n_steps, bool is_step);
    void list(const PhaseRequest& request);
    void add_rows(const RowRun& run, std::size_t first);
    void add_row(Token token, int stored, int position);
    void set_pass(int n_rows, int n_steps, const BankRows& bank = {});
    void start(bool is_step);
    bool check_guess(ChainRun& rest, std::optional<StopState>& stop);
    void run_steps(const ChainRun& run, std::span<const Token> tokens, int n_steps);
    void append_steps(const ChainRun& run, std::size_t n_all, bool may_end_early);

    const ModelConfig& config_;
    CudaKvStore& cache_;
    const int max_rows_;
    CudaWeights weights_;
    CudaStream stream_;
    HostDivisors divisors_;
    RopeRows rope_;
    RopeRows local_rope_;
    std::vector<CudaLayer> layer_table_;
    CudaMemory layers_;  // the same on the device
    CudaMemory memory_;  // what all passes use
    GrowingMemory<float> logits_{"logits"};
    GrowingMemory<float> captures_{"captured streams"};
    GrowingMemory<float> cosines_{"cosines"};
    // Null until one is wanted; kept for the next who wants one.
    std::shared_ptr<CudaStreamBank> bank_;
    BankPass bank_pass_;  // of the pass at hand
    CudaShape shape_;
    StepPlan plan_;
    CudaBuffers buffers_;
    PassArena arena_;
    ResultArena results_;  // of chains
    RowResults row_results_;
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
    std::vector<float> turns_;  // [row][n_rot], then local_turns_
    std::vector<float> local_turns_;
    std::vector<CudaPhase> phases_;
    std::vector<int> bank_numbers_;
    std::vector<Token> guess_rows_;
    CudaPassData pass_;
};

// The table of CudaPassData::turns that a layer rotates by.
int rotation_table(Rotation rotation) {
    switch (rotation) {
        case Rotation::none:
            return -1;
        case Rotation::global:
            return 0;
        case Rotation::local:
            break;
    }
    return 1;
}

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
      local_rope_(config.local_rope, divisors_.tensor()),
      shape_(new_shape()),
      plan_(plan_step(cache.device(), step_needs(config, tensors))),
      row_results_(config, plan_.max_rows) {
    for (int group = 0; group < kMaxGroups; ++group) {
        attentions_.emplace_back(config, cache.device().n_processors);
    }
    reserve_buffers();
}

CudaShape CudaStage::new_shape() {
    for (int i = 0; i < config_.n_layers; ++i) {
        const CudaWeights::Layer& weights = weights_.layers[static_cast<std::size_t>(i)];
        CudaLayer& layer = layer_table_.emplace_back(
            CudaLayer{.q_norm = weights.q_norm,
                      .k_norm = weights.k_norm,
                      .post_norms = {weights.attn_post_norm, weights.ffn_post_norm},
                      .rotation = rotation_table(config_.layer(i).rotation)});
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
            .norms_rotated = config_.head_norm == HeadNorm::after_rotation,
            .norms_rows = config_.head_norm == HeadNorm::whole_row,
            .activation = config_.activation,
            .rms_eps = config_.rms_eps,
            .attention_scale = config_.attention_scale,
            .scales_queries = config_.temperature.scale != 0,
            .soft_cap = config_.soft_cap,
            .embedding_scale = config_.embedding_scale,
            .residual_scale = config_.residual_scale,
            .logit_scale = config_.logit_scale,
            .final_soft_cap = config_.final_soft_cap,
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
        if (shape_.norms_rows) {
            take(buffers_.head_factors, 2 * n_rows);
        }
        if (std::ranges::any_of(weights_.layers, &CudaWeights::Layer::has_post_norm)) {
            take(buffers_.results, n_rows * n_embd);
            take(buffers_.result_squares, stride * n_embd / kCudaBlock);
        }
        take(buffers_.best, best_numbers(plan_.n_blocks));
        take(buffers_.choices, n_rows);
        take(buffers_.probabilities, n_rows);
        take(buffers_.barrier, 2);
        take(buffers_.listed, kMaxStepRows * kMaxListed);
        take(buffers_.n_listed, kMaxStepRows);
        take(buffers_.drawn, static_cast<std::size_t>(plan_.n_blocks) * kMaxStepRows);
        take(buffers_.n_done, 1);
    };
    take_all();
    memory_ = CudaMemory(n_bytes, "passes");
    take_all();
}

ForwardStatistics CudaStage::statistics() const {
    ForwardStatistics statistics = statistics_;
    statistics.scratch_bytes = memory_.bytes() + logits_.bytes() + captures_.bytes() +
                               row_results_.bytes() + cosines_.bytes() +
                               (bank_ != nullptr ? bank_->bytes() : 0) + arena_.bytes() +
                               layers_.bytes() + rope_.bytes() + local_rope_.bytes();
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
                task_runs_, first_pages_, groups_.groups()[i].scope(),
                is_step ? CudaAttentionBlocks::For::step : CudaAttentionBlocks::For::prefill,
                n_steps);
        }
    }
}

void CudaStage::list(const PhaseRequest& request) {
    PhaseRequest whole = request;
    whole.groups = &groups_;
    list_phases(config_, weights_, whole, phases_);
}

// Tokens, places and rotations of a run's rows.
void CudaStage::add_rows(const RowRun& run, std::size_t first) {
    const ForwardRequest& request = run.request;
    const auto n_own = static_cast<std::size_t>(run.n_rows);
    positions_.resize(n_own);
    fill_positions(request.layout, request.first_row, positions_);
    for (std::size_t i = 0; i < n_own; ++i) {
        add_row(request.tokens.empty() ? 0 : request.tokens[i], rows_.stored[first + i],
                positions_[i]);
    }
}

void CudaStage::add_row(Token token, int stored, int position) {
    CudaRow row{.token = token, .stored = stored};
    if (shape_.scales_queries) {
        row.query_scale = query_scale(config_.temperature, position);
    }
    pass_rows_.push_back(row);
    const auto n_rot = config_.rope.n_rot;
    const float* turns = rope_.at(position);
    turns_.insert(turns_.end(), turns, turns + n_rot);
    if (config_.has(Rotation::local)) {
        const float* local = local_rope_.at(position);
        local_turns_.insert(local_turns_.end(), local, local + n_rot);
    }
}

// Sends everything to the device.
void CudaStage::set_pass(int n_rows, int n_steps, const BankRows& bank) {
    struct Offsets {
        std::size_t blocks, runs, n_seen, first_seen;
    };
    std::array<Offsets, kMaxGroups> offsets{};
    arena_.clear();
    const std::size_t phases = arena_.put(std::span<const CudaPhase>(phases_));
    const std::size_t rows = arena_.put(std::span<const CudaRow>(pass_rows_));
    turns_.insert(turns_.end(), local_turns_.begin(), local_turns_.end());
    const std::size_t turns = arena_.put(std::span<const float>(turns_));
    const std::size_t layers = arena_.put(std::span<const CudaLayer>(layer_table_));
    const std::size_t n_groups = groups_.groups().size();
    for (std::size_t i = 0; i < n_groups; ++i) {
        offsets[i] = {arena_.put(attentions_[i].blocks()), arena_.put(attentions_[i].runs()),
                      arena_.put(attentions_[i].n_seen()), arena_.put(attentions_[i].first_seen())};
    }
    const std::size_t n_shared_bytes = arena_.bytes_used();
    const std::size_t pages = arena_.put(std::span<const int>(pages_));
    const std::size_t logit_rows = arena_.put(std::span<const int>(rows_.logit_rows));
    bank_numbers_.clear();
    for (const std::span<const int> part : {bank.hidden, bank.captured, bank.compared}) {
        bank_numbers_.insert(bank_numbers_.end(), part.begin(), part.end());
    }
    const std::size_t bank_rows = arena_.put(std::span<const int>(bank_numbers_));
    arena_.upload(stream_);
    bank_pass_ = {.rows = bank, .on_device = arena_.at<int>(bank_rows), .n_rows = n_rows};
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
                               .n_seen = arena_.at<int>(offsets[i].n_seen),
                               .first_seen = attentions_[i].first_seen().empty()
                                                 ? nullptr
                                                 : arena_.at<int>(offsets[i].first_seen)};
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

bool CudaStage::run(std::span<RowRun* const> runs, bool gives_stream) {
    KNAP_ASSERT(!gives_stream, "all layers are on this device");
    if (are_unwanted(runs)) {
        return false;
    }
    use_device(cache_.device());
    const Stopwatch watch;
    rows_.assign(runs);
    const ForwardRequest& any = rows_.any_request();
    const bool is_step = rows_.n_rows <= plan_.max_rows;
    row_results_.begin(rows_);
    groups_.assign(*any.plan, any.entry_layer, any.exit_layer, config_.layers);
    rows_.list_task_runs(groups_.has_windows(), task_runs_);
    pass_rows_.clear();
    turns_.clear();
    local_turns_.clear();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const RowRun& run = rows_.run(i);
        add_rows(run, static_cast<std::size_t>(rows_.first[i]));
        if (!run.request.hidden.empty()) {
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
          .chooses = row_results_.has_choices()});
    const auto n_rows = static_cast<std::size_t>(rows_.n_rows);
    buffers_.logits = logits_.reserve(
        row_results_.n_logit_rows() * static_cast<std::size_t>(config_.n_vocab), stream_);
    buffers_.captures = captures_.reserve(
        rows_.captures.size() * n_rows * static_cast<std::size_t>(config_.n_embd), stream_);
    set_pass(rows_.n_rows, 1, any.bank);
    if (!any.bank.hidden.empty()) {
        bank_->take(bank_pass_, buffers_.stream, stream_);
    }
    start(is_step);
    row_results_.list_best(buffers_.logits, stream_);
    const std::size_t n_cosines = any.bank.compared.size();
    const float* cosines = cosines_.reserve(n_cosines, stream_);
    if (bank_pass_.keeps_streams()) {
        bank_->keep(bank_pass_, buffers_.captures, cosines_.data(), stream_);
    }
    statistics_.bytes_read +=
        row_results_.deliver(buffers_, bank_pass_.keeps_streams(), {cosines, n_cosines}, stream_);
    statistics_.compute_ms += watch.elapsed_ms();
    return true;
}

std::shared_ptr<const StreamBank> CudaStage::borrow_bank(std::size_t n_rows) {
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    const bool is_lent = bank_.use_count() > 1;
    if (is_lent || n_rows > kMaxBankBytes / sizeof(float) / n_embd) {
        return nullptr;
    }
    if (n_bank_rows() < n_rows) {
        use_device(cache_.device());
        bank_.reset();
        bank_ = CudaStreamBank::make(n_rows, config_.n_embd);
    }
    return bank_;
}

bool CudaStage::run_chain(const ChainRun& run) {
    if (run.is_cancelled != nullptr && *run.is_cancelled && (*run.is_cancelled)()) {
        return false;
    }
    use_device(cache_.device());
    const Stopwatch watch;
    RunResult& result = *run.result;
    result.choices.clear();
    result.probabilities.clear();
    result.captures.resize(run.request.captures.size());
    for (std::vector<float>& capture : result.captures) {
        capture.clear();
    }
    ChainRun rest = run;
    std::optional<StopState> stop;
    if (run.request.stop != nullptr) {
        stop = *run.request.stop;
        rest.request.stop = &*stop;
    }
    if (run.request.guess.empty() || check_guess(rest, stop)) {
        run_steps(rest, std::span(&rest.request.token, 1), rest.request.n_steps);
    }
    result.n_rows = static_cast<int>(result.choices.size());
    statistics_.compute_ms += watch.elapsed_ms();
    return true;
}

// One pass over the first row and the guess, of which the rows that the choices agree with count.
// Moves `rest` and its stop rule past those. Returns whether the chain goes on.
bool CudaStage::check_guess(ChainRun& rest, std::optional<StopState>& stop) {
    ChainRequest& request = rest.request;
    guess_rows_.assign(1, request.token);
    guess_rows_.insert(guess_rows_.end(), request.guess.begin(), request.guess.end());
    run_steps(rest, guess_rows_, 1);
    RunResult& result = *rest.result;
    const auto n_agreed = static_cast<std::size_t>(
        std::ranges::mismatch(request.guess, result.choices).in1 - request.guess.begin());
    bool goes_on = true;
    std::size_t n_kept = 0;
    while (goes_on && n_kept <= n_agreed) {
        goes_on = n_kept + 1 < static_cast<std::size_t>(request.n_steps);
        goes_on = (!stop || stop->goes_on(result.probabilities[n_kept], false)) && goes_on;
        ++n_kept;
    }
    result.choices.resize(n_kept);
    result.probabilities.resize(n_kept);
    for (std::vector<float>& capture : result.captures) {
        capture.resize(n_kept * static_cast<std::size_t>(config_.n_embd));
    }
    request.token = result.choices.back();
    request.first_row += static_cast<int>(n_kept);
    request.n_steps -= static_cast<int>(n_kept);
    return goes_on;
}

// Several rows in one pass, or the first of several steps. Appends what they chose.
void CudaStage::run_steps(const ChainRun& run, std::span<const Token> tokens, int n_steps) {
    const ChainRequest& request = run.request;
    const auto n_rows = static_cast<int>(tokens.size());
    const int n_all = std::max(n_rows, n_steps);
    groups_.assign(*request.plan, 0, config_.n_layers, config_.layers);
    task_runs_.assign(1, {.sequence = run.sequence,
                          .layout = {.context = run.context},
                          .first_row = request.first_row,
                          .n_rows = n_rows});
    pass_rows_.clear();
    turns_.clear();
    local_turns_.clear();
    rows_.logit_rows.clear();
    for (int i = 0; i < n_all; ++i) {
        const int row = request.first_row + i;
        add_row(i < n_rows ? tokens[static_cast<std::size_t>(i)] : 0, run.sequence->stored_row(row),
                row);
    }
    plan_attention(n_steps, true);
    list({.plan = request.plan,
          .exit_layer = config_.n_layers,
          .captures = request.captures,
          .has_logits = true,
          .chooses = true,
          .draws = !request.draw.is_greedy()});
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    buffers_.logits =
        logits_.reserve(tokens.size() * static_cast<std::size_t>(config_.n_vocab), stream_);
    buffers_.captures = captures_.reserve(
        request.captures.size() * static_cast<std::size_t>(n_all) * n_embd, stream_);
    set_pass(n_rows, n_steps);
    pass_.draw = {.rule = request.draw, .first_position = request.first_row + 1};
    if (request.stop != nullptr) {
        pass_.draw.confidence_of = request.stop->rule().confidence_of;
        pass_.draw.stops = n_rows == 1;
        pass_.draw.stop = *request.stop;
    }
    start(true);
    append_steps(run, static_cast<std::size_t>(n_all), n_rows == 1);
}

// Everything comes over before the host knows how many steps there were.
void CudaStage::append_steps(const ChainRun& run, std::size_t n_all, bool may_end_early) {
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    const std::size_t n_captures = run.request.captures.size();
    results_.clear();
    const std::size_t captured = results_.take(buffers_.captures, n_captures * n_all * n_embd);
    const std::size_t probabilities = results_.take(buffers_.probabilities, n_all);
    const std::size_t choices = results_.take(buffers_.choices, n_all);
    const std::size_t n_done = results_.take(buffers_.n_done, 1);
    statistics_.bytes_read += results_.fetch(stream_);
    const std::size_t n =
        may_end_early ? static_cast<std::size_t>(results_.at<int>(n_done, 1).front()) : n_all;
    const auto append = [&](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
    RunResult& result = *run.result;
    append(result.choices, results_.at<std::int32_t>(choices, n));
    append(result.probabilities, results_.at<float>(probabilities, n));
    for (std::size_t i = 0; i < n_captures; ++i) {
        append(result.captures[i],
               results_.at<float>(captured + i * n_all * n_embd * sizeof(float), n * n_embd));
    }
}

}  // namespace

std::unique_ptr<Stage> new_cuda_stage(const ModelConfig& config,
                                      const ModelTensors& tensors,
                                      CudaKvStore& cache,
                                      int max_rows) {
    return std::make_unique<CudaStage>(config, tensors, cache, max_rows);
}

}  // namespace knap
