#include "cli/check/long_report.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/check/report.h"

namespace knap {
namespace {

using nlohmann::ordered_json;

constexpr int kNameWidth = 46;
constexpr int kCountWidth = 10;
constexpr std::size_t kMostListed = 20;

struct Column {
    const char* title;
    const char* field;
    std::int64_t ExactnessCounts::*count;
};
constexpr std::array kColumns{
    Column{"tokens", "n_tokens", &ExactnessCounts::n_tokens},
    Column{"differing", "n_differing", &ExactnessCounts::n_differing},
    Column{"drafted", "n_drafted", &ExactnessCounts::n_drafted},
    Column{"accepted", "n_accepted", &ExactnessCounts::n_accepted},
    Column{"copies", "n_copied", &ExactnessCounts::n_copied},
    Column{"plans", "n_planned", &ExactnessCounts::n_planned},
    Column{"cascades", "n_cascaded", &ExactnessCounts::n_cascaded},
    Column{"forced", "n_forced", &ExactnessCounts::n_forced},
    Column{"cases", "n_cases", &ExactnessCounts::n_cases},
    Column{"no draft", "n_undrafted", &ExactnessCounts::n_undrafted},
};

void write_heading(std::ostream& out, const std::string& title) {
    out << std::left << std::setw(kNameWidth) << title << std::right;
    for (const Column& column : kColumns) {
        out << std::setw(kCountWidth) << column.title;
    }
    out << '\n';
}

void write_counts(std::ostream& out, const std::string& name, const ExactnessCounts& counts) {
    out << "  " << std::left << std::setw(kNameWidth - 2) << name << std::right;
    for (const Column& column : kColumns) {
        out << std::setw(kCountWidth) << counts.*column.count;
    }
    out << '\n';
}

void write_rows(std::ostream& out, const std::string& title, const ExactnessRows& rows) {
    write_heading(out, title);
    for (const auto& [name, counts] : rows) {
        write_counts(out, name, counts);
    }
    out << '\n';
}

// KNAP_ISA chooses the kernels, whose instruction set begins their description.
std::string command_of(const CompletedCase& done) {
    const std::string isa = done.kernels.substr(0, done.kernels.find(' '));
    const bool is_known = isa != "ggml" && isa != "cuda";
    return concat(is_known ? concat("KNAP_ISA=", isa, " ") : "", "knap check -m ", done.model, ' ',
                  done.flags);
}

void write_difference(std::ostream& out, const CompletedCase& done) {
    for (const ComparedAnswer& answer : done.answers) {
        if (answer.difference) {
            out << "DIFFERS: case " << done.number << ", " << done.contender << ", "
                << answer.sampling << ", constraint " << answer.constraint << ", position "
                << answer.difference->position << " after a prompt of " << answer.n_prompt
                << ": expected " << token_text(answer.difference->expected) << ", found "
                << token_text(answer.difference->found) << '\n';
        }
    }
    out << "  again: " << command_of(done) << '\n';
}

ordered_json to_json(const ExactnessCounts& counts) {
    ordered_json object;
    for (const Column& column : kColumns) {
        object[column.field] = counts.*column.count;
    }
    return object;
}

ordered_json to_json(const ExactnessRows& rows) {
    auto object = ordered_json::object();
    for (const auto& [name, counts] : rows) {
        object[name] = to_json(counts);
    }
    return object;
}

}  // namespace

std::string to_table(const ExactnessSummary& summary) {
    std::ostringstream out;
    write_rows(out, "model and kernels", summary.models);
    for (const auto& [name, rows] : summary.draws) {
        write_rows(out, name, rows);
    }
    write_rows(out, "strategy with settings", summary.contenders);
    ExactnessRows strategies = summary.strategies;
    strategies.emplace_back("all", summary.all);
    write_rows(out, "strategy", strategies);
    const std::size_t n_listed = std::min(summary.differing.size(), kMostListed);
    for (std::size_t i = 0; i < n_listed; ++i) {
        write_difference(out, summary.differing[i]);
    }
    if (summary.all.n_differing > 0) {
        out << "FAILED: " << summary.all.n_differing << " answers differ from plain decoding's\n";
    } else {
        out << summary.all.n_tokens << " tokens are those of plain decoding, none differs.\n";
    }
    return out.str();
}

ordered_json to_json(const ExactnessSummary& summary) {
    ordered_json object = {
        {"ok", summary.all.n_differing == 0},        {"all", to_json(summary.all)},
        {"strategies", to_json(summary.strategies)}, {"contenders", to_json(summary.contenders)},
        {"models", to_json(summary.models)},         {"draws", ordered_json::object()},
        {"differing", ordered_json::array()}};
    for (const auto& [name, rows] : summary.draws) {
        object["draws"][name] = to_json(rows);
    }
    for (const CompletedCase& done : summary.differing) {
        object["differing"].push_back(
            {{"case", done.number}, {"contender", done.contender}, {"command", command_of(done)}});
    }
    return object;
}

}  // namespace knap
