#include "tools/measure/report/bench_row_json.h"

#include <limits>

#include "base/quoted.h"
#include "tools/measure/report/bench_json.h"
#include "tools/measure/report/bench_speedup_json.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(const BenchTurn& turn) {
    return {{"decode_ms", turn.decode_ms},     {"plain_ms", turn.plain_ms},
            {"n_generated", turn.n_generated}, {"draft_ms", turn.draft_ms},
            {"verify_ms", turn.verify_ms},     {"search_ms", turn.search_ms},
            {"other_ms", turn.other_ms}};
}

ordered_json to_json(const BenchLevel& level) {
    return {{"plan", level.plan}, {"n_context", level.n_context}, {"n_tokens", level.n_tokens}};
}

ordered_json to_json(const std::optional<BenchDifference>& difference) {
    return difference
               ? ordered_json{{"position", difference->position}, {"gap", or_null(difference->gap)}}
               : ordered_json(nullptr);
}

// The remainder of a subtraction of times: rounding can make it negative.
double remainder_in(const json& object, const char* name) {
    constexpr double kLargest = std::numeric_limits<double>::max();
    return number_in(object, name, -kLargest, kLargest);
}

BenchTurn turn_from(const json& object) {
    return {.decode_ms = positive_in(object, "decode_ms"),
            .plain_ms = positive_in(object, "plain_ms"),
            .n_generated = positive_count_in(object, "n_generated"),
            .draft_ms = amount_in(object, "draft_ms"),
            .verify_ms = amount_in(object, "verify_ms"),
            .search_ms = amount_in(object, "search_ms"),
            .other_ms = remainder_in(object, "other_ms")};
}

std::vector<BenchTurn> turns_from(const json& row) {
    auto turns = read_list(row, "turns", "turn", turn_from);
    if (turns.empty()) {
        fail("expected at least one of `turns`, found none");
    }
    return turns;
}

BenchSpeedup speedup_in(const json& object, const char* name) {
    return read_object(object, name, speedup_from);
}

BenchLevel level_from(const json& object, int n_layers) {
    return {.plan = plan_in(object, "plan", n_layers),
            .n_context = count_in(object, "n_context"),
            .n_tokens = count_in(object, "n_tokens")};
}

double share_from(const json& value) {
    if (!value.is_number() || value < 0 || value > 1) {
        fail("expected a number from 0 to 1, found ", printable(value.dump()));
    }
    return value.get<double>();
}

BenchDifference difference_from(const json& object) {
    return {.position = count_in(object, "position"), .gap = unless_null(object, "gap", amount_in)};
}

BenchDifference difference_in(const json& object, const char* name) {
    return read_object(object, name, difference_from);
}

}  // namespace

ordered_json to_json(const BenchRow& row) {
    return {{"data", row.data},
            {"id", row.id},
            {"task", row.task},
            {"depth", or_null(row.depth)},
            {"n_prompt", row.n_prompt},
            {"n_document_tokens", row.n_document_tokens},
            {"is_cut", row.is_cut},
            {"prefill_ms", row.prefill_ms},
            {"strategy", row.strategy},
            {"options", row.options},
            {"acceptance", row.acceptance},
            {"turns", list_of(row.turns, [](const BenchTurn& turn) { return to_json(turn); })},
            {"speedup", to_json(row.speedup)},
            {"request_speedup", to_json(row.request_speedup)},
            {"tokens_per_second", row.tokens_per_second},
            {"rounds", row.rounds},
            {"n_drafted", row.n_drafted},
            {"n_accepted", row.n_accepted},
            {"acceptance_rate", or_null(row.acceptance_rate)},
            {"mean_accepted_length", row.mean_accepted_length},
            {"acceptance_by_position", row.acceptance_by_position},
            {"peak_memory_bytes", row.peak_memory_bytes},
            {"bandwidth_gb_per_second", or_null(row.bandwidth_gb_per_second)},
            {"distinct_trigrams", row.distinct_trigrams},
            {"levels", list_of(row.levels, [](const BenchLevel& one) { return to_json(one); })},
            {"predicted", or_null(row.predicted)},
            {"measured", or_null(row.measured)},
            {"near_ties", row.near_ties},
            {"first_difference", to_json(row.first_difference)},
            {"identical_to_libllama", or_null(row.identical_to_libllama)},
            {"identical_to_knap", or_null(row.identical_to_knap)},
            {"is_projection", row.is_projection}};
}

BenchRow row_from(const json& object, int n_layers) {
    return {
        .data = text_in(object, "data"),
        .id = text_in(object, "id"),
        .task = text_in(object, "task"),
        .depth = unless_null(object, "depth", count_in),
        .n_prompt = count_in(object, "n_prompt"),
        .n_document_tokens = count_in(object, "n_document_tokens"),
        .is_cut = flag_in(object, "is_cut"),
        .prefill_ms = amount_in(object, "prefill_ms"),
        .strategy = text_in(object, "strategy"),
        .options = text_in(object, "options"),
        .acceptance = text_in(object, "acceptance"),
        .turns = turns_from(object),
        .speedup = read_object(object, "speedup", speedup_from),
        .request_speedup = if_known(object, "request_speedup", speedup_in).value_or(BenchSpeedup()),
        .tokens_per_second = positive_in(object, "tokens_per_second"),
        .rounds = count_in(object, "rounds"),
        .n_drafted = count_in(object, "n_drafted"),
        .n_accepted = count_in(object, "n_accepted"),
        .acceptance_rate = unless_null(object, "acceptance_rate", share_in),
        .mean_accepted_length = amount_in(object, "mean_accepted_length"),
        .acceptance_by_position =
            read_list(object, "acceptance_by_position", "acceptance_by_position", share_from),
        .peak_memory_bytes = large_count_in(object, "peak_memory_bytes"),
        .bandwidth_gb_per_second = unless_null(object, "bandwidth_gb_per_second", amount_in),
        .distinct_trigrams = share_in(object, "distinct_trigrams"),
        .levels = read_list(object, "levels", "level",
                            [=](const json& level) { return level_from(level, n_layers); }),
        .predicted = unless_null(object, "predicted", amount_in),
        .measured = unless_null(object, "measured", amount_in),
        .near_ties = count_in(object, "near_ties"),
        .first_difference = unless_null(object, "first_difference", difference_in),
        .identical_to_libllama = if_known(object, "identical_to_libllama", flag_in),
        .identical_to_knap = if_known(object, "identical_to_knap", flag_in),
        .is_projection = flag_in(object, "is_projection"),
    };
}

}  // namespace knap
