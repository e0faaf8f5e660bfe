#include "tools/measure/report/bench_csv.h"

#include <iomanip>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tools/measure/report/bench_load_summary.h"

namespace knap {
namespace {

// The columns of a line: name and value. Header and lines are made from the same list.
using Columns = std::vector<std::pair<std::string, std::string>>;

std::string text(double value) {
    std::ostringstream out;
    out << std::setprecision(9) << value;
    return out.str();
}

template <typename T>
std::string text(const std::optional<T>& value) {
    return value ? text(static_cast<double>(*value)) : "";
}

std::string text(bool value) {
    return value ? "true" : "false";
}

std::string text(const std::optional<bool>& value) {
    return value ? text(*value) : "";
}

std::string text(const std::vector<double>& values) {
    return join(values, " ", [](double value) { return text(value); });
}

std::string mean_of(const std::vector<BenchTurn>& turns, double BenchTurn::*member) {
    double sum = 0;
    for (const BenchTurn& turn : turns) {
        sum += turn.*member;
    }
    return turns.empty() ? "" : text(sum / static_cast<double>(turns.size()));
}

Columns prompt_columns(const BenchRow& row) {
    return {{"data", row.data},
            {"id", row.id},
            {"task", row.task},
            {"depth", text(row.depth)},
            {"n_prompt", concat(row.n_prompt)},
            {"n_document_tokens", concat(row.n_document_tokens)},
            {"is_cut", text(row.is_cut)},
            {"prefill_ms", text(row.prefill_ms)},
            {"strategy", row.strategy},
            {"options", row.options},
            {"acceptance", row.acceptance}};
}

Columns time_columns(const BenchRow& row) {
    return {{"n_turns", concat(row.turns.size())},
            {"n_generated", row.turns.empty() ? "" : concat(row.turns.back().n_generated)},
            {"decode_ms", mean_of(row.turns, &BenchTurn::decode_ms)},
            {"plain_ms", mean_of(row.turns, &BenchTurn::plain_ms)},
            {"draft_ms", mean_of(row.turns, &BenchTurn::draft_ms)},
            {"verify_ms", mean_of(row.turns, &BenchTurn::verify_ms)},
            {"search_ms", mean_of(row.turns, &BenchTurn::search_ms)},
            {"other_ms", mean_of(row.turns, &BenchTurn::other_ms)},
            {"speedup", text(row.speedup.mean)},
            {"speedup_low", text(row.speedup.low)},
            {"speedup_high", text(row.speedup.high)},
            {"request_speedup", text(row.request_speedup.mean)},
            {"request_speedup_low", text(row.request_speedup.low)},
            {"request_speedup_high", text(row.request_speedup.high)},
            {"tokens_per_second", text(row.tokens_per_second)}};
}

Columns draft_columns(const BenchRow& row) {
    const auto& difference = row.first_difference;
    return {{"rounds", concat(row.rounds)},
            {"n_drafted", concat(row.n_drafted)},
            {"n_accepted", concat(row.n_accepted)},
            {"acceptance_rate", text(row.acceptance_rate)},
            {"mean_accepted_length", text(row.mean_accepted_length)},
            {"acceptance_by_position", text(row.acceptance_by_position)},
            {"peak_memory_bytes", concat(row.peak_memory_bytes)},
            {"bandwidth_gb_per_second", text(row.bandwidth_gb_per_second)},
            {"distinct_trigrams", text(row.distinct_trigrams)},
            {"predicted", text(row.predicted)},
            {"measured", text(row.measured)},
            {"near_ties", concat(row.near_ties)},
            {"first_difference", difference ? concat(difference->position) : ""},
            {"first_difference_gap", difference ? text(difference->gap) : ""},
            {"identical_to_libllama", text(row.identical_to_libllama)},
            {"identical_to_knap", text(row.identical_to_knap)},
            {"is_projection", text(row.is_projection)}};
}

Columns context_columns(const BenchReport& report) {
    const BenchSettings& settings = report.settings;
    return {{"model", report.model.file},
            {"types", report.model.types},
            {"fingerprint", report.model.fingerprint},
            {"threads", concat(settings.threads)},
            {"n_ctx", concat(settings.n_ctx)},
            {"n_predict", concat(settings.n_predict)},
            {"temperature", concat(settings.sampling.temperature)},
            {"top_k", concat(settings.sampling.top_k)},
            {"top_p", concat(settings.sampling.top_p)},
            {"min_p", concat(settings.sampling.min_p)},
            {"seed", concat(settings.sampling.seed)},
            {"cache_type_k", settings.cache_type_k},
            {"cache_type_v", settings.cache_type_v},
            {"kernels", settings.kernels},
            {"exact", text(settings.exact)},
            {"fresh_strategies", text(settings.fresh_strategies)},
            {"profile", text(settings.profile)},
            {"memory", text(settings.memory)},
            {"device", report.device},
            {"isa", report.host.isa},
            {"system", report.host.system},
            {"memory_gb_per_second", text(report.memory_gb_per_second)},
            {"knap", report.version}};
}

// Of all prompts with the row's strategy and rule; empty unless several were served at once.
Columns load_columns(const BenchReport& report, const BenchRow& row) {
    const BenchLoad* load = load_of(report, row);
    const auto known = [&](auto value) {
        return load == nullptr ? std::string() : text(value(*load));
    };
    const auto over_turns = [&](double LoadTimes::*member) {
        return known([=](const BenchLoad& one) { return times_over_turns(one).*member; });
    };
    return {{"parallel", concat(report.settings.parallel)},
            {"throughput", known([](const BenchLoad& one) { return one.throughput.mean; })},
            {"throughput_low", known([](const BenchLoad& one) { return one.throughput.low; })},
            {"throughput_high", known([](const BenchLoad& one) { return one.throughput.high; })},
            {"all_tokens_per_second", over_turns(&LoadTimes::tokens_per_second)},
            {"first_median_ms", over_turns(&LoadTimes::first_median_ms)},
            {"first_p95_ms", over_turns(&LoadTimes::first_p95_ms)},
            {"gap_median_ms", over_turns(&LoadTimes::gap_median_ms)},
            {"gap_p95_ms", over_turns(&LoadTimes::gap_p95_ms)},
            {"gap_max_ms", over_turns(&LoadTimes::gap_max_ms)}};
}

Columns columns_of(const BenchReport& report, const BenchRow& row) {
    Columns all = prompt_columns(row);
    for (const Columns& more : {time_columns(row), draft_columns(row), context_columns(report),
                                load_columns(report, row)}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

std::string quoted(const std::string& field) {
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
        return field;
    }
    std::string text = "\"";
    for (const char letter : field) {
        text += letter == '"' ? "\"\"" : std::string(1, letter);
    }
    return text + "\"";
}

std::string line_of(const Columns& columns, std::string Columns::value_type::*part) {
    return join(columns, ",", [&](const auto& column) { return quoted(column.*part); }) + "\r\n";
}

}  // namespace

std::string to_csv(const BenchReport& report) {
    using Column = Columns::value_type;
    std::string csv = line_of(columns_of(report, {}), &Column::first);
    for (const BenchRow& row : report.rows) {
        csv += line_of(columns_of(report, row), &Column::second);
    }
    return csv;
}

}  // namespace knap
