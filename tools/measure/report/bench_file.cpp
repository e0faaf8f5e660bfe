#include "tools/measure/report/bench_file.h"

#include <algorithm>
#include <string>

#include "base/quoted.h"
#include "tools/measure/report/bench_json.h"
#include "tools/measure/report/bench_load_json.h"
#include "tools/measure/report/bench_row_json.h"
#include "tools/measure/report/bench_setup_json.h"
#include "tools/measure/report/bench_speedup.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
// Members that all rows of a file share: rows of another model or machine must not be mixed in.
constexpr const char* kIdentity[] = {"knap", "device", "model", "settings"};

ordered_json to_json(const BenchCost& cost) {
    return {{"plan", cost.plan},
            {"n_context", cost.n_context},
            {"n_rows", cost.n_rows},
            {"has_head", cost.has_head},
            {"ms", cost.ms}};
}

BenchCost cost_from(const json& object, int n_layers) {
    return {.plan = plan_in(object, "plan", n_layers),
            .n_context = count_in(object, "n_context"),
            .n_rows = positive_count_in(object, "n_rows"),
            .has_head = flag_in(object, "has_head"),
            .ms = amount_in(object, "ms")};
}

ordered_json to_json(const SkippedPrompt& skipped) {
    return {{"where", skipped.where}, {"why", skipped.why}};
}

SkippedPrompt skipped_from(const json& object) {
    return {.where = text_in(object, "where"), .why = text_in(object, "why")};
}

void check_format(const json& file) {
    const auto format = file.find("format");
    if (format == file.end() || !format->is_number_integer()) {
        fail("expected a file of knap bench, found no `format`");
    }
    if (*format != kFormat) {
        fail("expected format ", kFormat, " of knap bench, found ", printable(format->dump()));
    }
}

// Plain decoding's prefill of the prompt of `row`; the row's own when there is no such row.
double plain_prefill_ms(const std::vector<BenchRow>& rows, const BenchRow& row) {
    const auto plain = std::ranges::find_if(rows, [&](const BenchRow& other) {
        return other.strategy == plain_decoding().strategy && other.data == row.data &&
               other.id == row.id && other.depth == row.depth;
    });
    return plain == rows.end() ? row.prefill_ms : plain->prefill_ms;
}

// Older files have no request speedups.
void fill_request_speedups(std::vector<BenchRow>& rows) {
    for (BenchRow& row : rows) {
        if (row.request_speedup.mean == 0) {
            row.request_speedup =
                request_speedup_of(row.turns, row.prefill_ms, plain_prefill_ms(rows, row));
        }
    }
}

BenchReport report_from(const json& file) {
    check_format(file);
    const BenchModel model = read_object(file, "model", model_from);
    const int n_layers = model.n_layers;
    BenchReport report{
        .version = text_in(file, "knap"),
        .host = read_object(file, "host", host_from),
        .device = text_in(file, "device"),
        .model = model,
        .settings = read_object(file, "settings", settings_from),
        .memory_gb_per_second = unless_null(file, "memory_gb_per_second", amount_in),
        .costs = read_list(file, "costs", "cost",
                           [=](const json& cost) { return cost_from(cost, n_layers); }),
        .is_complete = flag_in(file, "is_complete"),
        .skipped = read_list(file, "skipped", "skipped prompt", skipped_from),
        .rows = read_list(file, "rows", "row",
                          [=](const json& row) { return row_from(row, n_layers); }),
        .loads = file.contains("loads") ? read_list(file, "loads", "load", load_from)
                                        : std::vector<BenchLoad>(),  // an older file
    };
    fill_request_speedups(report.rows);
    return report;
}

// Throws with a message that the caller puts after the path.
BenchReport read_report(const std::filesystem::path& path) {
    const auto file = read_json_file(path);
    if (!file) {
        fail("found no such file");
    }
    return report_from(*file);
}

std::string shown(const json& value) {
    return in_quotes(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void check_same(const std::string& name, const json& expected, const json& found) {
    if (expected.is_object()) {
        for (const auto& [key, value] : expected.items()) {
            check_same(concat(name, ".", key), value, found[key]);
        }
    } else if (expected != found) {
        fail("its `", name, "` differs: expected ", shown(expected), ", found ", shown(found));
    }
}

void check_same_benchmark(const BenchReport& expected, const BenchReport& found) {
    const json expected_members = to_json(expected);
    const json found_members = to_json(found);
    for (const char* name : kIdentity) {
        check_same(name, expected_members[name], found_members[name]);
    }
}

}  // namespace

ordered_json to_json(const BenchReport& report) {
    return {
        {"format", kFormat},
        {"knap", report.version},
        {"host", to_json(report.host)},
        {"device", report.device},
        {"model", to_json(report.model)},
        {"settings", to_json(report.settings)},
        {"memory_gb_per_second", or_null(report.memory_gb_per_second)},
        {"costs", list_of(report.costs, [](const BenchCost& cost) { return to_json(cost); })},
        {"is_complete", report.is_complete},
        {"skipped", list_of(report.skipped, [](const SkippedPrompt& one) { return to_json(one); })},
        {"rows", list_of(report.rows, [](const BenchRow& row) { return to_json(row); })},
        {"loads", list_of(report.loads, [](const BenchLoad& load) { return to_json(load); })}};
}

BenchReport load_report(const std::filesystem::path& path) {
    try {
        return read_report(path);
    } catch (const Error& error) {
        fail(path.string(), ": ", error.what());
    }
}

EarlierRows load_rows(const std::filesystem::path& path, const BenchReport& report) {
    try {
        BenchReport earlier = read_report(path);
        check_same_benchmark(report, earlier);
        return {.rows = std::move(earlier.rows),
                .memory_gb_per_second = earlier.memory_gb_per_second};
    } catch (const Error& error) {
        fail("--resume: cannot continue the benchmark in ", path.string(), ": ", error.what());
    }
}

}  // namespace knap
