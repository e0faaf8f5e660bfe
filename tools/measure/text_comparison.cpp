#include "tools/measure/text_comparison.h"

#include "base/error.h"
#include "tools/check/lossless_check.h"

namespace knap {
namespace {

bool has_text_of_plain(const SpeculationOptions& how, const SamplingOptions& sampling) {
    const bool is_greedy = sampling.temperature == 0;
    return how.assume_acceptance < 0 && (is_greedy || how.acceptance != AcceptanceRule::ratio);
}

bool has_edges(const SamplingOptions& sampling) {
    return sampling.temperature > 0 &&
           (sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0);
}

}  // namespace

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
    if (!found->gap && !may_be_an_edge) {
        fail(where, ": expected the text of plain decoding, found another token at position ",
             found->position, ", which is no near-tie");
    }
    return BenchDifference{.position = found->position, .gap = found->gap};
}

}  // namespace knap
