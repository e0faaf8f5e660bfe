#include "cli/bench/screen.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/number_text.h"
#include "base/text.h"
#include "cli/bench/prompts.h"

namespace knap {
namespace {

constexpr int kRowWidths[] = {16, 22, 10, 26, 13, 9, 14, 17, 9, 9, 7, 26, 11, 9};
constexpr int kMeanWidths[] = {24, 13, 16, 8, 9, 14, 9, 17, 9, 9, 7};
constexpr int kPeerTextWidths[] = {24, 9, 23, 12};
constexpr int kLoadWidths[] = {34, 13, 11, 14, 9, 9, 10, 9, 9, 9, 9};

// Pads every cell to its column's width; a longer cell widens its line.
std::string line_of(const std::vector<std::string>& cells, std::span<const int> widths) {
    std::ostringstream out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        out << std::left << std::setw(widths[i] - 1) << cells[i] << ' ';
    }
    std::string line = out.str();
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

}  // namespace

BenchScreen::BenchScreen(std::size_t n_steps, TextOutput* output, const char* step)
    : n_steps_(n_steps), output_(output), step_(step), bar_("bench") {}

std::string BenchScreen::note(double n_done) const {
    const double n_measured = n_done - static_cast<double>(n_known_);
    const auto number = static_cast<std::size_t>(std::max(1.0, std::ceil(n_done)));
    const std::string count = concat(step_, " ", std::min(number, n_steps_), " of ", n_steps_);
    if (n_measured <= 0) {
        return count;
    }
    const double n_left = static_cast<double>(n_steps_) - n_done;
    return concat(count, ", ", time_left(watch_->elapsed_ms() / 1e3 / n_measured * n_left));
}

void BenchScreen::update(double fraction) {
    if (!watch_) {
        watch_.emplace();
        n_known_ = n_done_;
    }
    const double n_done = static_cast<double>(n_done_) + fraction;
    bar_.update(n_done / static_cast<double>(n_steps_), note(n_done));
}

void BenchScreen::add_rows(std::span<const BenchRow> rows) {
    ++n_done_;
    if (output_ == nullptr) {
        return;
    }
    bar_.finish();
    const BenchTable table = row_table(rows);
    if (!has_headings_) {
        output_->write(line_of(table.headings, kRowWidths));
        has_headings_ = true;
    }
    write_lines(table, kRowWidths);
}

void BenchScreen::skip(const SkippedPrompt& prompt) {
    ++n_done_;
    bar_.finish();
    log_skipped(prompt);
}

void BenchScreen::write_table(const BenchTable& table, std::span<const int> widths) {
    output_->write(line_of(table.headings, widths));
    write_lines(table, widths);
}

void BenchScreen::write_lines(const BenchTable& table, std::span<const int> widths) {
    for (const std::vector<std::string>& cells : table.lines) {
        output_->write(line_of(cells, widths));
    }
}

void BenchScreen::finish(const BenchReport& report) {
    bar_.finish();
    if (output_ == nullptr || report.rows.empty()) {
        return;
    }
    const char* const projection =
        report.settings.assume_acceptance ? ", a projection: acceptance is random\n" : "\n";
    if (!report.loads.empty()) {
        output_->write(concat(report.settings.parallel, " sessions at once", projection));
        write_table(load_table(report.loads), kLoadWidths);
        output_->write(concat(kLoadNote, "\n"));
    } else {
        output_->write(concat("\nMeans over prompts", projection));
        write_table(summary_table(summarise(report.rows)), kMeanWidths);
        output_->write(concat(kSpeedupNote, "\n"));
        if (const BenchTable texts = peer_text_table(report.rows); !texts.lines.empty()) {
            output_->write("\nTexts of peers\n");
            write_table(texts, kPeerTextWidths);
            output_->write(concat(kPeerTextNote, "\n"));
        }
    }
    if (report.memory_gb_per_second) {
        output_->write(
            concat("Memory bandwidth: ", format_fixed(*report.memory_gb_per_second, 1), " GB/s\n"));
    }
}

}  // namespace knap
