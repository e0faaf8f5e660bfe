#include "report_file.h"

#include <limits>

#include "base/error.h"
#include "base/quoted.h"
#include "graph/plan_text.h"
#include "runtime/json_file.h"

namespace knap {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr int kMaxLayers = 4096;
constexpr int kAnyInteger = std::numeric_limits<int>::max();
constexpr double kAnyNumber = 1e15;  // ms, tokens or bytes; far from what would overflow in a sum
constexpr double kLeastTime = 1e-9;  // what speeds are divided by

bool is_null(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_null();
}

std::optional<double> number_or_null(const json& object,
                                     const char* name,
                                     double most = kAnyNumber) {
    return is_null(object, name) ? std::nullopt : std::optional(number_in(object, name, 0, most));
}

std::optional<int> integer_or_null(const json& object, const char* name) {
    return is_null(object, name) ? std::nullopt
                                 : std::optional(integer_in(object, name, 0, kAnyInteger));
}

// Reads every element; an error says which one it is about: "row 3: ...".
template <typename Read>
auto list_of(const json& object, const char* name, const char* what, Read read) {
    std::vector<decltype(read(object))> list;
    for (const json& element : array_in(object, name)) {
        try {
            list.push_back(read(element));
        } catch (const Error& error) {
            fail(what, " ", list.size() + 1, ": ", error.what());
        }
    }
    return list;
}

ReportTurn turn_from(const json& turn) {
    return {
        .decode_ms = number_in(turn, "decode_ms", kLeastTime, kAnyNumber),
        .plain_ms = number_in(turn, "plain_ms", kLeastTime, kAnyNumber),
        .n_generated = integer_in(turn, "n_generated", 0, kAnyInteger),
        .draft_ms = number_or_null(turn, "draft_ms").value_or(0),
        .verify_ms = number_or_null(turn, "verify_ms").value_or(0),
        .search_ms = number_or_null(turn, "search_ms").value_or(0),
        .other_ms = number_or_null(turn, "other_ms").value_or(0),
    };
}

std::optional<ReportSpeedup> speedup_from(const json& row) {
    if (is_null(row, "speedup")) {
        return std::nullopt;
    }
    const json& speedup = object_in(row, "speedup");
    return ReportSpeedup{.mean = number_in(speedup, "mean", kLeastTime, kAnyNumber),
                         .low = number_or_null(speedup, "low"),
                         .high = number_or_null(speedup, "high")};
}

std::vector<std::optional<double>> shares_from(const json& row, const char* name) {
    return list_of(row, name, name, [](const json& share) -> std::optional<double> {
        if (share.is_null()) {
            return std::nullopt;
        }
        if (!share.is_number() || share.get<double>() < 0 || share.get<double>() > 1) {
            fail("expected a number from 0 to 1 or null, found ", printable(share.dump()));
        }
        return share.get<double>();
    });
}

ReportLevel level_from(const json& level, int n_layers) {
    ReportLevel read{.n_context = integer_in(level, "n_context", 0, kAnyInteger),
                     .n_tokens = integer_in(level, "n_tokens", 0, kAnyInteger)};
    const std::string plan = is_null(level, "plan") ? "" : text_in(level, "plan");
    if (!plan.empty()) {
        read.plan = parse_plan(plan, n_layers, "`plan`");
    }
    return read;
}

ReportRow row_from(const json& row, int n_layers) {
    return {
        .data = text_in(row, "data"),
        .id = text_in(row, "id"),
        .task = text_in(row, "task"),
        .depth = integer_or_null(row, "depth"),
        .n_prompt = integer_in(row, "n_prompt", 0, kAnyInteger),
        .is_cut = flag_in(row, "is_cut"),
        .prefill_ms = number_or_null(row, "prefill_ms"),
        .strategy = text_in(row, "strategy"),
        .options = is_null(row, "options") ? "" : text_in(row, "options"),
        .acceptance = text_in(row, "acceptance"),
        .turns = list_of(row, "turns", "turn", turn_from),
        .speedup = speedup_from(row),
        .tokens_per_second = number_or_null(row, "tokens_per_second"),
        .rounds = number_or_null(row, "rounds"),
        .n_drafted = number_or_null(row, "n_drafted"),
        .n_accepted = number_or_null(row, "n_accepted"),
        .acceptance_rate = number_or_null(row, "acceptance_rate", 1),
        .mean_accepted_length = number_or_null(row, "mean_accepted_length"),
        .acceptance_by_position = shares_from(row, "acceptance_by_position"),
        .peak_memory_bytes = number_or_null(row, "peak_memory_bytes"),
        .bandwidth_gb_per_second = number_or_null(row, "bandwidth_gb_per_second"),
        .distinct_trigrams = number_or_null(row, "distinct_trigrams", 1),
        .levels = list_of(row, "levels", "level",
                          [=](const json& level) { return level_from(level, n_layers); }),
        .predicted = number_or_null(row, "predicted"),
        .measured = number_or_null(row, "measured"),
        .near_ties = number_or_null(row, "near_ties"),
        .is_projection = flag_in(row, "is_projection"),
    };
}

ReportCost cost_from(const json& cost, int n_layers) {
    return {
        .plan = parse_plan(text_in(cost, "plan"), n_layers, "`plan`"),
        .n_context = integer_in(cost, "n_context", 0, kAnyInteger),
        .n_rows = integer_in(cost, "n_rows", 1, kAnyInteger),
        .has_head = flag_in(cost, "has_head"),
        .ms = number_in(cost, "ms", 0, kAnyNumber),
    };
}

ReportModel model_from(const json& model) {
    return {
        .file = text_in(model, "file"),
        .name = text_in(model, "name"),
        .architecture = text_in(model, "architecture"),
        .n_layers = integer_in(model, "n_layers", 1, kMaxLayers),
        .n_embd = integer_in(model, "n_embd", 1, kAnyInteger),
    };
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

ReportFile file_from(const json& file) {
    check_format(file);
    const ReportModel model = model_from(object_in(file, "model"));
    ReportFile read{
        .version = text_in(file, "knap"),
        .device = text_in(file, "device"),
        .model = model,
        .host = object_in(file, "host"),
        .model_fields = object_in(file, "model"),
        .settings = object_in(file, "settings"),
        .memory_gb_per_second = number_or_null(file, "memory_gb_per_second"),
        .costs = list_of(file, "costs", "cost",
                         [&](const json& cost) { return cost_from(cost, model.n_layers); }),
        .is_complete = flag_in(file, "is_complete"),
        .skipped = list_of(file, "skipped", "skipped prompt",
                           [](const json& skip) {
                               return ReportSkip{text_in(skip, "where"), text_in(skip, "why")};
                           }),
        .rows = list_of(file, "rows", "row",
                        [&](const json& row) { return row_from(row, model.n_layers); }),
    };
    if (read.rows.empty()) {
        fail("expected at least one of `rows`, found none");
    }
    return read;
}

}  // namespace

ReportFile read_report_file(const std::filesystem::path& path) {
    try {
        const auto object = read_json_file(path);
        if (!object) {
            fail("found no such file");
        }
        ReportFile file = file_from(*object);
        file.name = path.filename().string();
        return file;
    } catch (const Error& error) {
        fail(path.string(), ": ", error.what());
    }
}

}  // namespace knap
