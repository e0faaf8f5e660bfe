#include "cli/explain/learned_text.h"

#include <algorithm>
#include <iomanip>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"

namespace knap {
namespace {

constexpr int kColumnWidth = 10;
// Of ways and of passes; the JSON object has all.
constexpr std::size_t kShownLines = 12;

std::string share(const DraftCounts& drafts) {
    return drafts.all > 0 ? format_percent(drafts.right / drafts.all) : "-";
}

std::string kind_of_text(bool is_sampled) {
    return is_sampled ? "sampled" : "greedy";
}

void write_rest(std::ostream& out, std::size_t n_all) {
    if (n_all > kShownLines) {
        out << "  " << n_all - kShownLines << " more, see --json\n";
    }
}

void write_ways(std::ostream& out, const Learned& learned) {
    std::vector<std::pair<Learned::Way, Learned::Seen>> ways(learned.ways.begin(),
                                                             learned.ways.end());
    std::ranges::stable_sort(ways, std::ranges::greater(),
                             [](const auto& way) { return way.second.drafts.all; });
    out << std::setw(kColumnWidth) << "accepted" << std::setw(kColumnWidth) << "of"
        << std::setw(kColumnWidth) << "context" << std::setw(kColumnWidth) << "text"
        << "  drafts of\n";
    for (std::size_t i = 0; i < std::min(ways.size(), kShownLines); ++i) {
        const auto& [way, seen] = ways[i];
        out << std::setw(kColumnWidth) << share(seen.drafts) << std::setw(kColumnWidth)
            << format_fixed(seen.drafts.all, 0) << std::setw(kColumnWidth)
            << concat(first_of_bucket(way.bucket), "+") << std::setw(kColumnWidth)
            << kind_of_text(way.is_sampled) << "  " << way.name << '\n';
    }
    write_rest(out, ways.size());
}

// Copies in prose, whatever speaks against them: other tables are in the JSON object.
void write_copies(std::ostream& out, const CopyTables& tables, bool is_sampled) {
    const CopyAcceptance::Table& table = tables[static_cast<std::size_t>(CopiedText::prose)];
    std::string line;
    for (std::size_t bin = 0; bin < CopyAcceptance::kBins; ++bin) {
        DraftCounts drafts;
        for (std::size_t cell = bin; cell < table.size(); cell += CopyAcceptance::kBins) {
            drafts.add(table[cell]);
        }
        if (drafts.all > 0) {
            const int longest = CopyAcceptance::longest_of(bin);
            const std::string length = longest == std::numeric_limits<int>::max()
                                           ? std::string("longer")
                                           : concat("up to ", longest);
            line += concat(line.empty() ? "" : ", ", length, ": ", share(drafts));
        }
    }
    if (!line.empty()) {
        out << "  copied tokens that were right by the length of the match, "
            << kind_of_text(is_sampled) << " text: " << line << '\n';
    }
}

void write_plans(std::ostream& out, const Learned& learned) {
    for (const auto& [plan, speed, run] : learned.plans) {
        out << "  found at " << plan.n_context << " tokens, predicted " << format_fixed(speed, 2)
            << "x: " << to_string(plan.plan) << '\n';
    }
}

void write_costs(std::ostream& out, const Learned& learned) {
    for (std::size_t i = 0; i < std::min(learned.costs.size(), kShownLines); ++i) {
        const CostSample& sample = learned.costs[i].sample;
        out << "  " << format_fixed(sample.ms, 3) << " +-" << format_fixed(sample.spread_ms, 3)
            << " ms for " << sample.n_rows << (sample.n_rows == 1 ? " row" : " rows") << " at "
            << sample.n_context << (sample.has_head ? "" : " without the head")
            << (sample.was_busy ? ", on a busy machine: " : ": ") << to_string(sample.plan) << '\n';
    }
    write_rest(out, learned.costs.size());
}

}  // namespace

void write_learned(std::ostream& out, const Learned& learned) {
    out << "\nWhat " << learned.n_runs << (learned.n_runs == 1 ? " earlier run" : " earlier runs")
        << " learned (--memory)\n";
    if (learned.is_empty()) {
        out << "  nothing\n";
        return;
    }
    write_ways(out, learned);
    for (std::size_t i = 0; i < learned.copies.size(); ++i) {
        write_copies(out, learned.copies[i], i == 1);
    }
    write_plans(out, learned);
    write_costs(out, learned);
}

}  // namespace knap
