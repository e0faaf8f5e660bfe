#include "tools/measure/report/bench_load_json.h"

#include "tools/measure/report/bench_json.h"
#include "tools/measure/report/bench_speedup_json.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(const LoadTimes& times) {
    return {{"n_tokens", times.n_tokens},
            {"wall_ms", times.wall_ms},
            {"tokens_per_second", times.tokens_per_second},
            {"first_median_ms", times.first_median_ms},
            {"first_p95_ms", times.first_p95_ms},
            {"gap_median_ms", times.gap_median_ms},
            {"gap_p95_ms", times.gap_p95_ms},
            {"gap_max_ms", times.gap_max_ms}};
}

LoadTimes times_from(const json& object) {
    return {.n_tokens = positive_count_in(object, "n_tokens"),
            .wall_ms = positive_in(object, "wall_ms"),
            .tokens_per_second = positive_in(object, "tokens_per_second"),
            .first_median_ms = amount_in(object, "first_median_ms"),
            .first_p95_ms = amount_in(object, "first_p95_ms"),
            .gap_median_ms = amount_in(object, "gap_median_ms"),
            .gap_p95_ms = amount_in(object, "gap_p95_ms"),
            .gap_max_ms = amount_in(object, "gap_max_ms")};
}

std::vector<LoadTimes> load_turns_from(const json& load) {
    auto turns = read_list(load, "turns", "turn", times_from);
    if (turns.empty()) {
        fail("expected at least one of `turns`, found none");
    }
    return turns;
}

}  // namespace

ordered_json to_json(const BenchLoad& load) {
    return {{"strategy", load.strategy},
            {"options", load.options},
            {"acceptance", load.acceptance},
            {"turns", list_of(load.turns, [](const LoadTimes& turn) { return to_json(turn); })},
            {"throughput", to_json(load.throughput)},
            {"n_prompts", load.n_prompts},
            {"n_identical", or_null(load.n_identical)},
            {"is_projection", load.is_projection}};
}

BenchLoad load_from(const json& object) {
    return {.strategy = text_in(object, "strategy"),
            .options = text_in(object, "options"),
            .acceptance = text_in(object, "acceptance"),
            .turns = load_turns_from(object),
            .throughput = read_object(object, "throughput", speedup_from),
            .n_prompts = positive_count_in(object, "n_prompts"),
            .n_identical = unless_null(object, "n_identical", count_in),
            .is_projection = flag_in(object, "is_projection")};
}

}  // namespace knap
