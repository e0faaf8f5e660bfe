#include "forward/pipeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "forward/attention_blocks.h"
#include "model/config.h"

namespace knap {
namespace {

bool runs_any_module(const ForwardRequest& request) {
    for (int layer = request.entry_layer; layer < request.exit_layer; ++layer) {
        if (request.plan->runs(layer, Module::attention) ||
            request.plan->runs(layer, Module::mlp)) {
            return true;
        }
    }
    return false;
}

void add(const ForwardStatistics& part, ForwardStatistics& sum) {
    sum.graphs.built += part.graphs.built;
    sum.graphs.reused += part.graphs.reused;
    sum.graphs.evicted += part.graphs.evicted;
    sum.reservations += part.reservations;
    sum.scratch_bytes += part.scratch_bytes;
    sum.bytes_read += part.bytes_read;
    sum.compute_ms += part.compute_ms;
}

// A page holds a whole sequence where a device cannot read pages. Even then it is a whole number of
// steps that every attention reads.
PageShape page_shape(const DeviceLimits& limits, const PipelineSize& size) {
    constexpr int kRowStep = 256;
    KNAP_ASSERT(size.n_rows == 0 || size.n_rows >= size.capacity, "the longest sequence fits");
    if (limits.page_rows == 0) {
        const int n_slots = size.n_rows > 0 ? size.n_rows / size.capacity : size.n_sequences;
        return {.page_rows = round_up(size.capacity, kRowStep), .n_pages = n_slots};
    }
    const int n_pages = size.n_rows > 0
                            ? steps_for(size.n_rows, limits.page_rows)
                            : steps_for(size.capacity, limits.page_rows) * size.n_sequences;
    return {.page_rows = limits.page_rows, .n_pages = n_pages};
}

std::unique_ptr<KvMemory> new_memory(std::span<const std::unique_ptr<DeviceModel>> devices,
                                     const PageShape& shape) {
    std::vector<std::unique_ptr<KvStore>> stores;
    for (const auto& device : devices) {
        stores.push_back(device->new_store(shape));
    }
    return std::make_unique<KvMemory>(std::move(stores), shape);
}

// 0: no limit.
int smaller_limit(int a, int b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

DeviceLimits weakest_limits(std::span<const std::unique_ptr<DeviceModel>> devices) {
    DeviceLimits limits = devices.front()->limits();
    for (const auto& device : devices.subspan(1)) {
        const DeviceLimits other = device->limits();
        const bool is_weaker =
            other.has_exact_trees < limits.has_exact_trees || other.exact_rows < limits.exact_rows;
        limits = {.exact_rows = std::min(limits.exact_rows, other.exact_rows),
                  .has_exact_trees = limits.has_exact_trees && other.has_exact_trees,
                  .verify_rows = smaller_limit(limits.verify_rows, other.verify_rows),
                  .page_rows = limits.page_rows == other.page_rows ? limits.page_rows : 0,
                  .attention = is_weaker ? other.attention : limits.attention};
    }
    return limits;
}

Pipeline::Pipeline(const ModelConfig& config,
                   std::span<const std::unique_ptr<DeviceModel>> devices,
                   const PipelineSize& size)
    : config_(config),
      max_rows_(size.max_rows),
      exact_rows_(size.exact_rows),
      device_limits_(weakest_limits(devices)),
      memory_(new_memory(devices, page_shape(device_limits_, size))) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
        stages_.push_back(devices[i]->new_stage(*memory_->stores()[i], size.max_rows));
    }
    count_pass();
}

// Runs share a pass only where rows do not depend on the rows beside them. Where a page holds a
// whole sequence, every run needs a block of attention of its own.
PassLimits Pipeline::limits() const {
    const bool has_pages = device_limits_.page_rows > 0;
    const int n_exact = std::min({device_limits_.exact_rows, exact_rows_, max_rows_});
    return {.max_rows = max_rows_,
            .max_shared_rows = has_pages ? n_exact : std::min(n_exact, kMaxBlocks),
            .divides_prompts = has_pages && n_exact == max_rows_};
}

// Which devices the batch goes through, and with what. A capture between two devices is the earlier
// one's. A device on whose layers nothing is computed or captured is passed over, but for the
// first, which looks tokens up, and the last, which has the head.
void Pipeline::set_legs(std::span<RowRun* const> runs) {
    std::size_t n_legs = 0;
    for (const auto& stage : stages_) {
        const auto [begin, end] = stage->layers();
        const bool is_last = stage == stages_.back();
        const ForwardRequest& any = runs.front()->request;
        if (end <= any.entry_layer && !is_last) {
            continue;
        }
        legs_.resize(std::max(legs_.size(), n_legs + 1));
        Leg& leg = legs_[n_legs];
        leg.stage = stage.get();
        leg.runs.clear();
        bool is_needed = n_legs == 0 && !any.tokens.empty();
        for (const RowRun* run : runs) {
            RowRun part = *run;
            ForwardRequest& request = part.request;
            request.entry_layer = std::max(request.entry_layer, begin);
            request.exit_layer = std::max(request.entry_layer, std::min(request.exit_layer, end));
            const auto all = run->request.captures;
            const auto first = n_legs == 0 ? all.begin() : std::ranges::upper_bound(all, 2 * begin);
            request.captures = {first, std::ranges::upper_bound(all, 2 * end)};
            request.logit_rows = is_last ? request.logit_rows : std::span<const int>();
            is_needed = is_needed || runs_any_module(request) || !request.captures.empty() ||
                        !request.logit_rows.empty();
            leg.runs.push_back(part);
        }
        n_legs += is_needed ? 1 : 0;
    }
    legs_.resize(n_legs);
}

// Each device goes on with the streams that the one before it gave.
bool Pipeline::run_legs(std::span<RowRun* const> runs) {
    set_legs(runs);
    for (const RowRun* run : runs) {
        run->result->logits.clear();
        run->result->choices.clear();
        run->result->captures.clear();
    }
    std::vector<RowRun*> parts;
    for (std::size_t i = 0; i < legs_.size(); ++i) {
        Leg& leg = legs_[i];
        leg.results.resize(runs.size());
        parts.clear();
        for (std::size_t r = 0; r < runs.size(); ++r) {
            RowRun& part = leg.runs[r];
            part.result = &leg.results[r];
            if (i > 0) {
                part.request.hidden = legs_[i - 1].results[r].stream;
                part.request.tokens = {};
            }
            parts.push_back(&part);
        }
        if (!leg.stage->run(parts, i + 1 < legs_.size())) {
            return false;
        }
        for (std::size_t r = 0; r < runs.size(); ++r) {
            RunResult& whole = *runs[r]->result;
            RunResult& part = leg.results[r];
            std::ranges::move(part.captures, std::back_inserter(whole.captures));
            // Exchanged, so that both keep memory for the next pass.
            std::swap(whole.logits, part.logits);
            std::swap(whole.choices, part.choices);
        }
    }
    return true;
}

void Pipeline::run(std::span<RowRun* const> runs) {
    const bool is_complete =
        stages_.size() == 1 ? stages_.front()->run(runs, false) : run_legs(runs);
    for (const RowRun* run : runs) {
        run->result->is_complete = is_complete;
        run->result->n_rows = run->n_rows;
    }
    set_pass_facts(runs, count_pass());
}

// Takes down what the devices did, for other threads to read. Returns the time of the pass.
double Pipeline::count_pass() {
    ForwardStatistics now;
    for (const auto& stage : stages_) {
        add(stage->statistics(), now);
    }
    const std::lock_guard lock(statistics_mutex_);
    const double before_ms = statistics_.compute_ms;
    statistics_ = now;
    return now.compute_ms - before_ms;
}

int Pipeline::max_rows(int first_row) const {
    int n_rows = max_rows_;
    for (const auto& stage : stages_) {
        n_rows = std::min(n_rows, stage->max_rows(first_row));
    }
    return n_rows;
}

int Pipeline::max_chain(int first_row) const {
    return stages_.size() == 1 ? stages_.front()->max_chain(first_row) : 0;
}

int Pipeline::max_best() const {
    return stages_.size() == 1 ? stages_.front()->max_best() : 0;
}

void Pipeline::run_chain(const ChainRun& run) {
    run.result->is_complete = stages_.front()->run_chain(run);
    run.result->pass = {.ms = count_pass()};
}

std::shared_ptr<const StreamBank> Pipeline::borrow_bank(std::size_t n_rows) {
    auto bank = stages_.size() == 1 ? stages_.front()->borrow_bank(n_rows) : nullptr;
    count_pass();
    return bank;
}

std::size_t Pipeline::n_bank_rows() const {
    return stages_.size() == 1 ? stages_.front()->n_bank_rows() : 0;
}

ForwardStatistics Pipeline::statistics() const {
    const std::lock_guard lock(statistics_mutex_);
    return statistics_;
}

}  // namespace knap
