// A file of `knap bench`, read and checked: what was measured, on what, and with which settings.
// docs/benchmarks.md says what the fields mean.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "graph/module_plan.h"

namespace knap {

// One run of a strategy beside one of plain decoding.
struct ReportTurn {
    double decode_ms = 0;
    double plain_ms = 0;
    int n_generated = 0;
    double draft_ms = 0;
    double verify_ms = 0;
    double search_ms = 0;
    double other_ms = 0;
};

struct ReportSpeedup {
    double mean = 0;
    std::optional<double> low{};  // of the 95 % interval; one turn has none
    std::optional<double> high{};
};

// What was drafted with from a context length on.
struct ReportLevel {
    std::optional<ModulePlan> plan{};  // nullopt: no part of the model
    int n_context = 0;
    int n_tokens = 0;  // written meanwhile
};

// A strategy on a prompt. What could not be measured is nullopt.
struct ReportRow {
    std::string data;
    std::string id;
    std::string task;
    std::optional<int> depth{};  // of a synthetic context
    int n_prompt = 0;
    bool is_cut = false;
    std::optional<double> prefill_ms{};
    std::string strategy;
    std::string options;
    std::string acceptance;
    std::vector<ReportTurn> turns;
    std::optional<ReportSpeedup> speedup{};
    std::optional<double> tokens_per_second{};
    std::optional<double> rounds{};
    std::optional<double> n_drafted{};
    std::optional<double> n_accepted{};
    std::optional<double> acceptance_rate{};
    std::optional<double> mean_accepted_length{};
    std::vector<std::optional<double>> acceptance_by_position;
    std::optional<double> peak_memory_bytes{};
    std::optional<double> bandwidth_gb_per_second{};
    std::optional<double> distinct_trigrams{};
    std::vector<ReportLevel> levels;
    std::optional<double> predicted{};
    std::optional<double> measured{};
    std::optional<double> near_ties{};
    bool is_projection = false;

    bool is_synthetic() const { return depth.has_value(); }
    int n_context() const { return depth.value_or(n_prompt); }
};

struct ReportCost {
    ModulePlan plan;
    int n_context = 0;
    int n_rows = 0;
    bool has_head = false;
    double ms = 0;
};

struct ReportSkip {
    std::string where;
    std::string why;
};

struct ReportModel {
    std::string file;
    std::string name;
    std::string architecture;
    int n_layers = 0;
    int n_embd = 0;
};

struct ReportFile {
    std::string name;  // the file's own
    std::string version;
    std::string device;
    ReportModel model;
    // As written, for lists of everything that is known.
    nlohmann::json host;
    nlohmann::json model_fields;
    nlohmann::json settings;
    std::optional<double> memory_gb_per_second{};
    std::vector<ReportCost> costs;
    bool is_complete = true;
    std::vector<ReportSkip> skipped;
    std::vector<ReportRow> rows;  // at least one
};

// Throws knap::Error in one line that begins with the path.
ReportFile read_report_file(const std::filesystem::path& path);

}  // namespace knap
