#include "graph/forward.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "graph/stage.h"
#include "kv/kv_cache.h"
#include "model/config.h"

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

}  // namespace

int count_rows(const ForwardRequest& request, const ModelConfig& config) {
    return static_cast<int>(request.tokens.size() + request.bank.hidden.size() +
                            request.hidden.size() / static_cast<std::size_t>(config.n_embd));
}

struct Forward::Impl {
    Impl(const ModelConfig& model_config,
         const ModelTensors& tensors,
         KvCache& kv,
         int max_rows_per_pass);

    ForwardRequest filled_in(const ForwardRequest& request) const;
    void check(const ForwardRequest& request) const;
    void check_bank(const BankRows& rows, std::size_t n_captured) const;
    void set_legs(const ForwardRequest& request);
    ForwardResult run_legs(const ForwardRequest& request);

    // What one device has to do of a request.
    struct Leg {
        Stage* stage;
        ForwardRequest request;
    };

    const ModelConfig& config;
    KvCache& cache;
    const int n_ubatch;
    const ModulePlan full_plan;
    std::vector<std::unique_ptr<Stage>> stages;  // in the order of the layers
    bool has_draft_head = false;                 // or the whole head alone
    // Of the pass at hand; kept so that they keep their memory.
    std::vector<Leg> legs;
    std::vector<std::span<const float>> captures;
    ForwardStatistics statistics;
};

Forward::Impl::Impl(const ModelConfig& model_config,
                    const ModelTensors& tensors,
                    KvCache& kv,
                    int max_rows_per_pass)
    : config(model_config), cache(kv), n_ubatch(max_rows_per_pass), full_plan(config.n_layers) {
    for (const auto& store : cache.stores()) {
        stages.push_back(std::make_unique<Stage>(config, tensors, *store, n_ubatch));
    }
}

// The request with what it leaves open.
ForwardRequest Forward::Impl::filled_in(const ForwardRequest& request) const {
    ForwardRequest filled = request;
    filled.plan = request.plan != nullptr ? request.plan : &full_plan;
    filled.exit_layer = request.exit_layer < 0 ? config.n_layers : request.exit_layer;
    filled.layout.context = request.layout.context < 0 ? cache.committed() : request.layout.context;
    return filled;
}

void Forward::Impl::check(const ForwardRequest& request) const {
    const int n_rows = count_rows(request, config);
    KNAP_ASSERT(0 <= request.entry_layer && request.entry_layer <= request.exit_layer &&
                    request.exit_layer <= config.n_layers &&
                    request.plan->n_layers() == config.n_layers,
                "layers of this model");
    KNAP_ASSERT(request.plan->head() == HeadLevel::full || has_draft_head,
                "only a head that is there is reduced");
    KNAP_ASSERT(has_one_input(request), "one kind of input");
    KNAP_ASSERT(n_rows > 0 && n_rows <= n_ubatch, "rows fit max_rows()");
    KNAP_ASSERT(request.first_row >= 0 && request.first_row + n_rows <= cache.capacity(),
                "rows fit the cache");
    KNAP_ASSERT(are_ascending(request.logit_rows, 0, n_rows - 1), "rows of the pass");
    KNAP_ASSERT(are_ascending(request.captures, 2 * request.entry_layer, 2 * request.exit_layer),
                "captures lie within the layers that run");
    check_bank(request.bank, request.captures.size() * static_cast<std::size_t>(n_rows));
}

void Forward::Impl::check_bank(const BankRows& rows, std::size_t n_captured) const {
    const std::size_t n_bank_rows = stages.size() == 1 ? stages.front()->n_bank_rows() : 0;
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

// Which devices the request goes through, and with what. A capture between two devices is the
// earlier one's. A device on whose layers nothing is computed or captured is passed over, but for
// the first, which looks tokens up, and the last, which has the head.
void Forward::Impl::set_legs(const ForwardRequest& request) {
    legs.clear();
    std::span<const int> left = request.captures;
    for (const auto& stage : stages) {
        const LayerShare& share = stage->share();
        const bool is_last = stage == stages.back();
        if (share.end_layer <= request.entry_layer && !is_last) {
            continue;
        }
        ForwardRequest part = request;
        part.entry_layer = std::max(request.entry_layer, share.first_layer);
        part.exit_layer = std::max(part.entry_layer, std::min(request.exit_layer, share.end_layer));
        const auto n_captures = static_cast<std::size_t>(
            std::ranges::upper_bound(left, 2 * share.end_layer) - left.begin());
        part.captures = left.first(n_captures);
        left = left.subspan(n_captures);
        part.logit_rows = is_last ? request.logit_rows : std::span<const int>();
        const bool embeds = legs.empty() && !request.tokens.empty();
        if (embeds || runs_any_module(part) || !part.captures.empty() || !part.logit_rows.empty()) {
            legs.push_back({stage.get(), part});
        }
    }
}

// Each device goes on with the stream that the one before it gave.
ForwardResult Forward::Impl::run_legs(const ForwardRequest& request) {
    set_legs(request);
    captures.clear();
    ForwardResult whole;
    std::span<const float> stream = request.hidden;
    for (Leg& leg : legs) {
        leg.request.hidden = stream;
        leg.request.tokens = stream.empty() ? request.tokens : std::span<const Token>();
        const auto [result, given] = leg.stage->run(leg.request, &leg != &legs.back());
        if (!result.is_complete) {
            return result;
        }
        captures.insert(captures.end(), result.captures.begin(), result.captures.end());
        whole.logits = result.logits;
        whole.choices = result.choices;
        stream = given;
    }
    whole.captures = captures;
    return whole;
}

Forward::Forward(const ModelConfig& config,
                 const ModelTensors& tensors,
                 KvCache& cache,
                 int n_ubatch)
    : impl_(std::make_unique<Impl>(config, tensors, cache, n_ubatch)) {}

Forward::~Forward() = default;

void Forward::set_draft_head(HeadSubset& head) {
    impl_->stages.back()->set_draft_head(head);
    impl_->has_draft_head = true;
}

HeadLevel Forward::cheapest_head() const {
    return impl_->has_draft_head ? HeadLevel::reduced : HeadLevel::full;
}

ForwardResult Forward::run(const ForwardRequest& request) {
    Impl& self = *impl_;
    const ForwardRequest filled = self.filled_in(request);
    self.check(filled);
    return self.stages.size() == 1 ? self.stages.front()->run(filled, false).result
                                   : self.run_legs(filled);
}

int Forward::max_chain(int first_row) const {
    return impl_->stages.front()->max_chain(first_row);
}

ChainResult Forward::run_chain(const ChainRequest& request) {
    Impl& self = *impl_;
    ChainRequest filled = request;
    filled.plan = request.plan != nullptr ? request.plan : &self.full_plan;
    KNAP_ASSERT(filled.n_steps > 0 && filled.n_steps <= max_chain(filled.first_row) &&
                    filled.first_row >= 0 &&
                    filled.first_row + filled.n_steps <= self.cache.capacity(),
                "a chain that the device can compute and the cache can hold");
    KNAP_ASSERT(filled.plan->n_layers() == self.config.n_layers &&
                    filled.plan->head() == HeadLevel::full &&
                    are_ascending(filled.captures, 0, 2 * self.config.n_layers),
                "a plan of this model, with captures in it");
    return self.stages.front()->run_chain(filled, self.cache.committed());
}

std::shared_ptr<const StreamBank> Forward::borrow_bank(std::size_t n_rows) {
    return impl_->stages.size() == 1 ? impl_->stages.front()->borrow_bank(n_rows) : nullptr;
}

int Forward::max_rows(int first_row) const {
    int n_rows = impl_->n_ubatch;
    for (const auto& stage : impl_->stages) {
        n_rows = std::min(n_rows, stage->max_rows(first_row));
    }
    return n_rows;
}

const ModelConfig& Forward::config() const {
    return impl_->config;
}

const ForwardStatistics& Forward::statistics() const {
    impl_->statistics = {};
    for (const auto& stage : impl_->stages) {
        add(stage->statistics(), impl_->statistics);
    }
    return impl_->statistics;
}

}  // namespace knap
