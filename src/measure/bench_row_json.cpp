#include "measure/bench_row_json.h"

#include <limits>

#include "base/error.h"
#include "runtime/json_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kAnyNumber = std::numeric_limits<double>::max();
constexpr int kAnyInteger = std::numeric_limits<int>::max();

ordered_json to_json(const BenchTurn& turn) {
    return {{"decode_ms", turn.decode_ms},     {"plain_ms", turn.plain_ms},
            {"n_generated", turn.n_generated}, {"draft_ms", turn.draft_ms},
            {"verify_ms", turn.verify_ms},     {"search_ms", turn.search_ms},
            {"other_ms", turn.other_ms}};
}

ordered_json to_json(const BenchSpeedup& speedup) {
    return {{"mean", speedup.mean}, {"low", or_null(speedup.low)}, {"high", or_null(speedup.high)}};
}

ordered_json to_json(const BenchLevel& level) {
    return {{"plan", level.plan}, {"n_context", level.n_context}, {"n_tokens", level.n_tokens}};
}

ordered_json to_json(const std::optional<BenchDifference>& difference) {
    return difference
               ? ordered_json{{"position", difference->position}, {"gap", or_null(difference->gap)}}
               : ordered_json(nullptr);
}

double amount_in(const json& object, const char* name) {
    return number_in(object, name, -kAnyNumber, kAnyNumber);
}

int count_in(const json& object, const char* name) {
    return integer_in(object, name, 0, kAnyInteger);
}

bool is_null(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_null();
}

BenchTurn turn_from(const json& object) {
    return {.decode_ms = amount_in(object, "decode_ms"),
            .plain_ms = amount_in(object, "plain_ms"),
            .n_generated = count_in(object, "n_generated"),
            .draft_ms = amount_in(object, "draft_ms"),
            .verify_ms = amount_in(object, "verify_ms"),
            .search_ms = amount_in(object, "search_ms"),
            .other_ms = amount_in(object, "other_ms")};
}

BenchSpeedup speedup_from(const json& object) {
    return {.mean = amount_in(object, "mean"),
            .low = optional_number_in(object, "low"),
            .high = optional_number_in(object, "high")};
}

BenchLevel level_from(const json& object) {
    return {.plan = text_in(object, "plan"),
            .n_context = count_in(object, "n_context"),
            .n_tokens = count_in(object, "n_tokens")};
}

double share_from(const json& value) {
    if (!value.is_number()) {
        fail("expected numbers in `acceptance_by_position`, found ", value.type_name());
    }
    return value.get<double>();
}

std::optional<BenchDifference> difference_in(const json& object, const char* name) {
    if (is_null(object, name)) {
        return std::nullopt;
    }
    const json& found = object_in(object, name);
    return BenchDifference{.position = count_in(found, "position"),
                           .gap = optional_number_in(found, "gap")};
}

std::optional<int> depth_in(const json& object) {
    return is_null(object, "depth") ? std::nullopt : std::optional(count_in(object, "depth"));
}

template <typename Convert>
auto values_in(const json& object, const char* name, Convert convert) {
    std::vector<decltype(convert(object))> values;
    for (const json& value : array_in(object, name)) {
        values.push_back(convert(value));
    }
    return values;
}

}  // namespace

std::optional<double> optional_number_in(const json& object, const char* name) {
    return is_null(object, name) ? std::nullopt : std::optional(amount_in(object, name));
}

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
            {"is_projection", row.is_projection}};
}

BenchRow row_from(const json& object) {
    return {
        .data = text_in(object, "data"),
        .id = text_in(object, "id"),
        .task = text_in(object, "task"),
        .depth = depth_in(object),
        .n_prompt = count_in(object, "n_prompt"),
        .n_document_tokens = count_in(object, "n_document_tokens"),
        .is_cut = flag_in(object, "is_cut"),
        .prefill_ms = amount_in(object, "prefill_ms"),
        .strategy = text_in(object, "strategy"),
        .options = text_in(object, "options"),
        .acceptance = text_in(object, "acceptance"),
        .turns = values_in(object, "turns", turn_from),
        .speedup = speedup_from(object_in(object, "speedup")),
        .tokens_per_second = amount_in(object, "tokens_per_second"),
        .rounds = count_in(object, "rounds"),
        .n_drafted = count_in(object, "n_drafted"),
        .n_accepted = count_in(object, "n_accepted"),
        .acceptance_rate = optional_number_in(object, "acceptance_rate"),
        .mean_accepted_length = amount_in(object, "mean_accepted_length"),
        .acceptance_by_position = values_in(object, "acceptance_by_position", share_from),
        .peak_memory_bytes = static_cast<std::int64_t>(amount_in(object, "peak_memory_bytes")),
        .bandwidth_gb_per_second = optional_number_in(object, "bandwidth_gb_per_second"),
        .distinct_trigrams = amount_in(object, "distinct_trigrams"),
        .levels = values_in(object, "levels", level_from),
        .predicted = optional_number_in(object, "predicted"),
        .measured = optional_number_in(object, "measured"),
        .near_ties = count_in(object, "near_ties"),
        .first_difference = difference_in(object, "first_difference"),
        .is_projection = flag_in(object, "is_projection"),
    };
}

}  // namespace knap
