#include "search/cost/cost_profile.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

#include "knap/types.h"

#include "base/error.h"
#include "base/quantile.h"
#include "forward/plan_cost.h"

namespace knap {

namespace {

// Limits of plausible samples. They keep sums and products of times and rows finite.
constexpr double kShortestMs = 1e-6;
constexpr double kLongestMs = 1e9;
constexpr int kLongestContext = 1 << 26;

// Contexts at which a pass takes about the same time.
bool are_near(int n_context, int other) {
    constexpr int kShort = 128;
    return std::max(n_context, other) <= 2 * std::max(std::min(n_context, other), kShort);
}

}  // namespace

int CostProfile::n_classes() const {
    return layer_classes.empty() ? 0 : std::ranges::max(layer_classes) + 1;
}

double PartBytes::reduced_share() const {
    const double share = reduced_head / head;
    return share > 0 && share < 1 ? share : 1;
}

double CostProfile::heads(const ModulePlan& plan, bool has_head) const {
    return !has_head ? 0.0 : plan.head() == HeadLevel::reduced ? bytes.reduced_share() : 1.0;
}

double ExpertShare::relative(int n_allowed, int n_rows) const {
    return share == 0 ? 1 : 1 - share + share * experts.n_read(n_allowed, n_rows) / experts.n_used;
}

CostProfile empty_profile(const ModelCost& model, std::vector<int> layer_classes) {
    KNAP_ASSERT(model.layers.size() == layer_classes.size(), "a class for every layer");
    CostProfile profile{.layer_classes = std::move(layer_classes)};
    std::ranges::transform(model.layers, std::back_inserter(profile.layer_windows),
                           &LayerCost::window);
    PartBytes& bytes = profile.bytes;
    for (int c = 0; c < profile.n_classes(); ++c) {
        const auto first = std::ranges::find(profile.layer_classes, c);
        KNAP_ASSERT(first != profile.layer_classes.end(), "classes are counted from 0");
        const auto layer = static_cast<std::size_t>(first - profile.layer_classes.begin());
        bytes.attention.push_back(static_cast<double>(model.layers[layer].attention_bytes));
        const LayerCost& cost = model.layers[layer];
        const auto of_experts = static_cast<double>(cost.experts.bytes * cost.experts.n_used);
        bytes.mlp.push_back(static_cast<double>(cost.mlp_bytes) + of_experts);
        profile.expert_shares.push_back(
            {.share = of_experts > 0 ? of_experts / bytes.mlp.back() : 0, .experts = cost.experts});
    }
    bytes.head = static_cast<double>(model.head_bytes);
    bytes.reduced_head = static_cast<double>(model.reduced_head_bytes);
    bytes.cache_row = static_cast<double>(model.cache_row_bytes);
    return profile;
}

bool is_plausible(const CostSample& sample, int n_layers) {
    // A time of NaN fails both comparisons.
    return sample.plan.n_layers() == n_layers && sample.ms >= kShortestMs &&
           sample.ms <= kLongestMs && sample.n_context >= 0 &&
           sample.n_context <= kLongestContext && sample.n_rows >= 1 && sample.n_rows <= kMaxUbatch;
}

bool is_plain_step(const CostSample& sample, int n_layers) {
    return is_plausible(sample, n_layers) && sample.plan.is_full() && sample.has_head &&
           sample.n_rows == 1;
}

void add_measured(CostProfile& profile, const CostSample& sample) {
    const auto is_disturbed_twin = [&](const CostSample& known) {
        return known.was_busy && known.plan == sample.plan && known.n_rows == sample.n_rows &&
               known.has_head == sample.has_head;
    };
    if (!sample.was_busy) {
        std::erase_if(profile.samples, is_disturbed_twin);
        profile.samples.push_back(sample);
        return;
    }
    const auto twin = std::ranges::find_if(profile.samples, [&](const CostSample& known) {
        return is_disturbed_twin(known) && are_near(known.n_context, sample.n_context);
    });
    if (twin == profile.samples.end()) {
        profile.samples.push_back(sample);
        return;
    }
    const int n_measured = twin->n_measured + sample.n_measured;
    if (sample.ms < twin->ms) {
        *twin = sample;
    }
    twin->n_measured = n_measured;
}

ProfileNoise noise_of(const CostProfile& profile) {
    if (profile.samples.empty()) {
        return {};
    }
    std::vector<double> spreads;
    std::ranges::transform(profile.samples, std::back_inserter(spreads),
                           [](const CostSample& sample) { return sample.spread_ms / sample.ms; });
    const auto n_busy = std::ranges::count_if(profile.samples, &CostSample::was_busy);
    return {.busy_share = static_cast<double>(n_busy) / static_cast<double>(spreads.size()),
            .spread = median(spreads)};
}

int longest_context(const CostProfile& profile) {
    const auto longest =
        std::ranges::max_element(profile.samples, std::less<>(), &CostSample::n_context);
    return longest == profile.samples.end() ? 0 : longest->n_context;
}

bool can_fit(const CostProfile& profile) {
    const int n_layers = profile.n_layers();
    const auto is_class = [&](int c) { return c >= 0 && c < n_layers; };
    const auto is_step = [&](const CostSample& sample) { return is_plain_step(sample, n_layers); };
    return n_layers > 0 && std::ranges::all_of(profile.layer_classes, is_class) &&
           std::ranges::any_of(profile.samples, is_step);
}

}  // namespace knap
