#include "forward/forward.h"

#include <algorithm>

#include "base/error.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "model/head_subset.h"

namespace knap {
namespace {

// Whether numbers rise from `lowest` to `highest` at most, each once.
bool are_ascending(std::span<const int> numbers, int lowest, int highest) {
    return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
               numbers.end() &&
           (numbers.empty() || (numbers.front() >= lowest && numbers.back() <= highest));
}

// Tokens begin before the first layer.
bool has_one_input(const ForwardRequest& request) {
    const int n_inputs = (request.tokens.empty() ? 0 : 1) + (request.hidden.empty() ? 0 : 1) +
                         (request.bank.hidden.empty() ? 0 : 1);
    return n_inputs == 1 && (request.tokens.empty() || request.entry_layer == 0);
}

}  // namespace

int count_rows(const ForwardRequest& request, const ModelConfig& config) {
    return static_cast<int>(request.tokens.size() + request.bank.hidden.size() +
                            request.hidden.size() / static_cast<std::size_t>(config.n_embd));
}

Forward::Forward(Pipeline& pipeline, PassRunner& runner, Sequence& sequence)
    : pipeline_(pipeline),
      runner_(runner),
      sequence_(sequence),
      full_plan_(pipeline.config().n_layers),
      before_(pipeline.statistics()) {
    KNAP_ASSERT(&sequence.memory() == &pipeline.memory(), "a sequence of this pipeline");
}

HeadLevel Forward::cheapest_head() const {
    return draft_head_ != nullptr ? HeadLevel::reduced : HeadLevel::full;
}

// The request with what it leaves open.
ForwardRequest Forward::filled_in(const ForwardRequest& request) const {
    ForwardRequest filled = request;
    filled.plan = request.plan != nullptr ? request.plan : &full_plan_;
    filled.exit_layer = request.exit_layer < 0 ? config().n_layers : request.exit_layer;
    filled.layout.context =
        request.layout.context < 0 ? sequence_.committed() : request.layout.context;
    return filled;
}

void Forward::check(const ForwardRequest& request, int n_rows) const {
    KNAP_ASSERT(0 <= request.entry_layer && request.entry_layer <= request.exit_layer &&
                    request.exit_layer <= config().n_layers &&
                    request.plan->n_layers() == config().n_layers,
                "layers of this model");
    KNAP_ASSERT(request.plan->head() == HeadLevel::full || draft_head_ != nullptr,
                "only a head that is there is reduced");
    KNAP_ASSERT(has_one_input(request), "one kind of input");
    KNAP_ASSERT(n_rows > 0 && n_rows <= max_rows(request.first_row), "rows fit max_rows()");
    KNAP_ASSERT(request.first_row >= 0 && request.first_row + n_rows <= sequence_.capacity(),
                "rows fit the cache");
    KNAP_ASSERT(are_ascending(request.logit_rows, 0, n_rows - 1), "rows of the pass");
    KNAP_ASSERT(request.n_best == 0 || (request.n_best > 0 && request.n_best <= max_best() &&
                                        request.plan->head() == HeadLevel::full),
                "as many tokens as the device ranks, of whole rows");
    KNAP_ASSERT(are_ascending(request.captures, 2 * request.entry_layer, 2 * request.exit_layer),
                "captures lie within the layers that run");
    check_bank(request.bank, request.captures.size() * static_cast<std::size_t>(n_rows));
}

void Forward::check_bank(const BankRows& rows, std::size_t n_captured) const {
    const std::size_t n_bank_rows = rows.n_numbers() > 0 ? pipeline_.n_bank_rows() : 0;
    const auto is_row = [&](int row) {
        return row >= 0 && static_cast<std::size_t>(row) < n_bank_rows;
    };
    for (const std::span<const int> numbers : {rows.hidden, rows.captured, rows.compared}) {
        KNAP_ASSERT(std::ranges::all_of(numbers, is_row), "rows of the bank");
    }
    for (const std::span<const int> numbers : {rows.captured, rows.compared}) {
        KNAP_ASSERT(numbers.empty() || numbers.size() == n_captured,
                    "a row of the bank for every captured one");
    }
}

void Forward::reserve(int n_rows) {
    bool has_pages = sequence_.is_reserved(n_rows);
    if (!has_pages) {
        use_rows([&] { has_pages = sequence_.reserve(n_rows); });
    }
    if (!has_pages) {
        fail("cache: expected pages for ", n_rows, " rows, found none left");
    }
}

void Forward::count_pass(int n_rows) {
    const PassFacts& pass = result_.pass;
    compute_ms_ += pass.ms;
    ++totals_.n_passes;
    totals_.n_other_rows += pass.n_others;
    totals_.wait_ms += pass.wait_ms;
    totals_.others_ms += pass.ms * pass.n_others / (pass.n_others + n_rows);
}

ForwardResult Forward::run(const ForwardRequest& request) {
    const ForwardRequest filled = filled_in(request);
    const int n_rows = count_rows(filled, config());
    check(filled, n_rows);
    reserve(filled.first_row + n_rows);
    const bool is_reduced = filled.plan->head() == HeadLevel::reduced && !filled.logit_rows.empty();
    RowRun run{.sequence = &sequence_,
               .request = filled,
               .n_rows = n_rows,
               .reduced_head = is_reduced ? draft_head_ : nullptr,
               .is_cancelled = is_cancelled_,
               .result = &result_};
    runner_.run(run);
    if (!result_.is_complete) {
        return {.is_complete = false};
    }
    count_pass(result_.n_rows);
    view_captures();
    return {.n_rows = result_.n_rows,
            .logits = result_.logits,
            .choices = result_.choices,
            .best = {result_.best, result_.best_ends},
            .captures = captures_,
            .cosines = result_.cosines,
            .pass = result_.pass};
}

bool Forward::can_draw(const DrawRule& rule) const {
    const int n_most = pipeline_.max_best();
    return rule.is_greedy() || (n_most > 0 && rule.top_k <= n_most);
}

ChainResult Forward::run_chain(const ChainRequest& request) {
    ChainRun run{.sequence = &sequence_,
                 .request = request,
                 .context = sequence_.committed(),
                 .is_cancelled = is_cancelled_,
                 .result = &result_};
    ChainRequest& filled = run.request;
    filled.plan = request.plan != nullptr ? request.plan : &full_plan_;
    KNAP_ASSERT(filled.n_steps > 0 && filled.n_steps <= max_chain(filled.first_row) &&
                    filled.first_row >= 0 &&
                    filled.first_row + filled.n_steps <= sequence_.capacity(),
                "a chain that the device can compute and the cache can hold");
    KNAP_ASSERT(filled.plan->n_layers() == config().n_layers &&
                    filled.plan->head() == HeadLevel::full &&
                    are_ascending(filled.captures, 0, 2 * config().n_layers),
                "a plan of this model, with captures in it");
    KNAP_ASSERT(can_draw(filled.draw) &&
                    ((filled.stop == nullptr && filled.guess.empty()) || chains_stop()),
                "the device chooses by itself what it can");
    KNAP_ASSERT(static_cast<int>(filled.guess.size()) < filled.n_steps, "steps for the guess");
    reserve(filled.first_row + filled.n_steps);
    runner_.run_alone([&] { pipeline_.run_chain(run); });
    if (!result_.is_complete) {
        return {.is_complete = false};
    }
    count_pass(result_.n_rows);
    view_captures();
    return {
        .tokens = result_.choices, .probabilities = result_.probabilities, .captures = captures_};
}

void Forward::view_captures() {
    captures_.assign(result_.captures.begin(), result_.captures.end());
}

void Forward::copy_row(int from, int to) {
    use_rows([&] { sequence_.copy_row(from, to); });
}

void Forward::use_rows(const std::function<void()>& work) {
    if (sequence_.memory().copies_beside_passes()) {
        work();
    } else {
        runner_.run_alone(work);
    }
}

std::shared_ptr<const StreamBank> Forward::borrow_bank(std::size_t n_rows) {
    std::shared_ptr<const StreamBank> bank;
    runner_.run_alone([&] { bank = pipeline_.borrow_bank(n_rows); });
    return bank;
}

ForwardStatistics Forward::statistics() const {
    ForwardStatistics now = pipeline_.statistics();
    now.graphs.built -= before_.graphs.built;
    now.graphs.reused -= before_.graphs.reused;
    now.graphs.evicted -= before_.graphs.evicted;
    now.reservations -= before_.reservations;
    now.bytes_read -= before_.bytes_read;
    now.compute_ms = compute_ms_;
    now.scratch_bytes += draft_head_ != nullptr ? draft_head_->bytes() : 0;
    return now;
}

}  // namespace knap
