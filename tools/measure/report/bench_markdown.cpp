#include "tools/measure/report/bench_markdown.h"

#include <sstream>

#include "base/number_text.h"
#include "tools/measure/report/bench_setup_json.h"
#include "tools/measure/report/bench_summary.h"
#include "tools/measure/report/bench_table.h"

namespace knap {
namespace {

// In a Markdown table a bar ends the cell and a newline the row.
std::string escaped(const std::string& text) {
    std::string safe;
    for (const char letter : text) {
        safe += letter == '|' ? "\\|" : letter == '\n' ? " " : std::string(1, letter);
    }
    return safe;
}

void write_line(std::ostream& out, const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) {
        out << "| " << escaped(cell) << ' ';
    }
    out << "|\n";
}

void write_table(std::ostream& out, const BenchTable& table) {
    write_line(out, table.headings);
    for (std::size_t i = 0; i < table.headings.size(); ++i) {
        out << "|---";
    }
    out << "|\n";
    for (const std::vector<std::string>& cells : table.lines) {
        write_line(out, cells);
    }
}

void write_context(std::ostream& out, const BenchReport& report) {
    out << "- model: " << report.model.file << " (" << report.model.architecture << ", "
        << report.model.types << ", fingerprint " << report.model.fingerprint << ")\n"
        << "- machine: " << report.device << ", " << report.host.n_cores << " cores, "
        << report.host.isa << ", " << report.host.system << "\n";
    if (report.memory_gb_per_second) {
        out << "- memory bandwidth: " << format_fixed(*report.memory_gb_per_second, 1) << " GB/s\n";
    }
    const nlohmann::ordered_json settings = to_json(report.settings);
    for (const auto& [name, value] : settings.items()) {
        out << "- " << name << ": "
            << value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    }
}

}  // namespace

std::string to_markdown(const BenchReport& report) {
    std::ostringstream out;
    out << "# knap " << report.version << ": strategies compared with plain decoding\n\n";
    if (report.settings.assume_acceptance) {
        out << "**Projection: acceptance is assumed at random, and the texts mean nothing.**\n\n";
    }
    if (!report.is_complete) {
        out << "The benchmark was interrupted; these are the rows measured before that.\n\n";
    }
    write_context(out, report);
    if (!report.loads.empty()) {
        out << "\n## " << report.settings.parallel << " sessions at once\n\n";
        write_table(out, load_table(report.loads));
        out << "\n" << kLoadNote << "\n";
    }
    out << "\n## Means\n\n";
    write_table(out, summary_table(summarise(report.rows)));
    out << "\n" << kSpeedupNote << "\n";
    if (const BenchTable texts = peer_text_table(report.rows); !texts.lines.empty()) {
        out << "\n## Texts of peers\n\n";
        write_table(out, texts);
        out << "\n" << kPeerTextNote << "\n";
    }
    out << "\n## Rows\n\n";
    write_table(out, row_table(report.rows));
    if (!report.skipped.empty()) {
        out << "\n## Skipped\n\n";
    }
    for (const SkippedPrompt& skipped : report.skipped) {
        out << "- " << skipped.where << ": " << skipped.why << "\n";
    }
    return out.str();
}

}  // namespace knap
