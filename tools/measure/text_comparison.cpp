#include "tools/measure/text_comparison.h"

#include <algorithm>

#include "base/error.h"
#include "tools/check/lossless_check.h"

namespace knap {
namespace {

bool has_edges(const SamplingOptions& sampling) {
    return sampling.temperature > 0 &&
           (sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0);
}

// The gap of a near tie that the answer lists there; a benchmark measures no rounding of its own.
std::optional<double> listed_gap(const Result& drafted, int position) {
    const auto& listed = drafted.speculation.near_ties;
    const auto tie = std::ranges::find(listed, position, &NearTie::position);
    return tie != listed.end() ? std::optional<double>(tie->gap) : std::nullopt;
}

}  // namespace

bool has_text_of_plain(const SpeculationOptions& how, const SamplingOptions& sampling) {
    const bool is_greedy = sampling.temperature == 0;
    return how.assume_acceptance < 0 && (is_greedy || how.acceptance != AcceptanceRule::ratio);
}

std::optional<BenchDifference> compare_texts(const Result& plain,
                                             const Result& drafted,
                                             const SpeculationOptions& how,
                                             const SamplingOptions& sampling,
                                             std::string_view where) {
    if (!has_text_of_plain(how, sampling)) {
        return std::nullopt;
    }
    const std::optional<Divergence> found = find_divergence(plain, drafted);
    if (!found) {
        return std::nullopt;
    }
    const bool may_be_an_edge = !drafted.speculation.row_invariant && has_edges(sampling);
    const std::optional<double> gap = listed_gap(drafted, found->position);
    if (!gap && !may_be_an_edge) {
        fail(where, ": expected the text of plain decoding, found another token at position ",
             found->position, ", which is not a near tie");
    }
    return BenchDifference{.position = found->position, .gap = gap};
}

}  // namespace knap
