#include "tools/measure/race_options.h"

#include "base/text.h"
#include "tools/measure/bench_row.h"

namespace knap {

std::vector<Contender> sides_with(const RaceRule& rule, const RaceOptions& options) {
    std::vector<Contender> sides{
        {.name = plain_decoding().strategy, .speculation = plain_decoding()}};
    for (const Contender& contender : options.contenders) {
        sides.push_back(contender);
        sides.back().speculation.acceptance = rule.rule;
        sides.back().speculation.assume_acceptance = options.assume_acceptance;
    }
    return sides;
}

GenerateOptions request_for(const BenchPrompt& prompt,
                            const SpeculationOptions& how,
                            int n_predict,
                            const RaceOptions& options) {
    // A synthetic prompt stops mid-text, and the text of a projection has no meaningful end.
    const bool never_ends = prompt.depth.has_value() || options.assume_acceptance >= 0;
    return {.n_predict = n_predict,
            .sampling = options.sampling,
            .speculation = how,
            .ignore_eos = never_ends};
}

std::string place_of(const BenchPrompt& prompt) {
    return prompt.where.empty() ? concat(prompt.data, ": ", prompt.id) : prompt.where;
}

std::string why_too_short(const Result& result) {
    return n_steps(result.n_generated) > 0
               ? ""
               : concat("expected an answer of two tokens or more, found one of ",
                        result.n_generated);
}

}  // namespace knap
