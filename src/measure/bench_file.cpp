#include "measure/bench_file.h"

#include <string>

#include "base/error.h"
#include "base/quoted.h"
#include "measure/bench_row_json.h"
#include "runtime/json_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
// What rows of one file have in common: those of another model or machine do not mix with them.
constexpr const char* kIdentity[] = {"format", "knap", "device", "model", "settings"};

ordered_json to_json(const BenchHost& host) {
    return {{"cpu", host.cpu},
            {"n_cores", host.n_cores},
            {"isa", host.isa},
            {"memory_bytes", host.memory_bytes},
            {"system", host.system}};
}

ordered_json to_json(const BenchModel& model) {
    return {{"file", model.file},
            {"name", model.name},
            {"architecture", model.architecture},
            {"n_layers", model.n_layers},
            {"n_embd", model.n_embd},
            {"n_parameters", model.n_parameters},
            {"types", model.types},
            {"file_bytes", model.file_bytes},
            {"fingerprint", model.fingerprint}};
}

ordered_json to_json(const BenchCost& cost) {
    return {{"plan", cost.plan},
            {"n_context", cost.n_context},
            {"n_rows", cost.n_rows},
            {"has_head", cost.has_head},
            {"ms", cost.ms}};
}

ordered_json to_json(const SkippedPrompt& skipped) {
    return {{"where", skipped.where}, {"why", skipped.why}};
}

// A number as it was given: 0.95, and not the nearest float's 0.949999988.
double as_given(float value) {
    return std::stod(concat(value));
}

std::string shown(const json& value) {
    return in_quotes(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void check_same(const std::string& name, const json& expected, const json& found) {
    if (expected.is_object() && found.is_object()) {
        for (const auto& [key, value] : expected.items()) {
            check_same(concat(name, ".", key), value, found.value(key, json()));
        }
    } else if (expected != found) {
        fail("its `", name, "` differs: expected ", shown(expected), ", found ", shown(found));
    }
}

EarlierRows rows_from(const json& file, const BenchReport& report) {
    const json expected = to_json(report);
    for (const char* name : kIdentity) {
        check_same(name, expected[name], file.value(name, json()));
    }
    EarlierRows earlier;
    for (const json& row : array_in(file, "rows")) {
        earlier.rows.push_back(row_from(row));
    }
    earlier.memory_gb_per_second = optional_number_in(file, "memory_gb_per_second");
    return earlier;
}

}  // namespace

ordered_json to_json(const BenchSettings& settings) {
    const SamplingOptions& sampling = settings.sampling;
    return {{"threads", settings.threads},
            {"n_ctx", settings.n_ctx},
            {"n_predict", settings.n_predict},
            {"limit", settings.limit},
            {"max_prompt_tokens", settings.max_prompt_tokens},
            {"repeat", settings.repeat},
            {"depths", settings.depths},
            {"strategies", settings.strategies},
            {"adapter", or_null(settings.adapter)},
            {"acceptance", settings.acceptance},
            {"temperature", as_given(sampling.temperature)},
            {"top_k", sampling.top_k},
            {"top_p", as_given(sampling.top_p)},
            {"min_p", as_given(sampling.min_p)},
            {"seed", sampling.seed},
            {"assume_acceptance", or_null(settings.assume_acceptance)},
            {"peer", settings.has_peer ? ordered_json(kPeerStrategy) : ordered_json(nullptr)},
            {"cache_type_k", settings.cache_type_k},
            {"cache_type_v", settings.cache_type_v},
            {"kernels", settings.kernels},
            {"data", settings.data}};
}

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
        {"rows", list_of(report.rows, [](const BenchRow& row) { return to_json(row); })}};
}

EarlierRows load_rows(const std::filesystem::path& path, const BenchReport& report) {
    try {
        const auto file = read_json_file(path);
        if (!file) {
            fail("found no such file");
        }
        return rows_from(*file, report);
    } catch (const Error& error) {
        fail("--resume: this benchmark cannot go on from ", path.string(), ": ", error.what());
    }
}

}  // namespace knap
