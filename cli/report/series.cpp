#include "cli/report/series.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "tools/measure/statistics.h"

namespace knap {
namespace {

constexpr std::string_view kPlainColor = "#8b929c";
// Distinguishable on light and dark backgrounds.
constexpr std::array<std::string_view, 12> kSeriesColors{
    "#e4572e", "#2f7fd1", "#2a9d6f", "#a463c9", "#e0a02a", "#d6508f",
    "#15a3b5", "#8f7a3d", "#6f7bdc", "#7cb32f", "#c0564f", "#4f8f9e"};

// A file's shape, filled and hollow.
struct Shape {
    Mark filled;
    Mark hollow;
};
constexpr std::array<Shape, 5> kShapes{{{{7, "●"}, {6, "○"}},
                                        {{5, "■"}, {4, "□"}},
                                        {{9, "▲"}, {8, "△"}},
                                        {{13, "◆"}, {12, "◇"}},
                                        {{11, "▼"}, {10, "▽"}}}};

// The options and acceptance rules of a strategy over all files. A single one needs no mention.
struct Variants {
    std::set<std::string> options;
    std::set<std::string> acceptance;
};

std::map<std::string, Variants> variants_of(std::span<const ReportFile> files) {
    std::map<std::string, Variants> variants;
    for (const ReportFile& file : files) {
        for (const BenchRow& row : file.bench.rows) {
            variants[row.strategy].options.insert(row.options);
            variants[row.strategy].acceptance.insert(row.acceptance);
        }
    }
    return variants;
}

std::string contender_name(const BenchRow& row, const Variants& variants) {
    std::string name = row.strategy;
    if (variants.options.size() > 1 && !row.options.empty()) {
        name += concat(" ", row.options);
    }
    if (variants.acceptance.size() > 1) {
        name += concat(", ", row.acceptance);
    }
    return name;
}

Series& find_or_add(std::vector<Series>& all, Series wanted) {
    const auto found = std::ranges::find_if(all, [&](const Series& one) {
        return one.file == wanted.file && one.contender == wanted.contender &&
               one.is_projection == wanted.is_projection;
    });
    return found != all.end() ? *found : all.emplace_back(std::move(wanted));
}

// A strategy with its options has the same colour in all files, projected or measured.
void set_colors(std::vector<Series>& all) {
    std::vector<std::string> contenders;
    for (Series& series : all) {
        if (is_plain(series)) {
            series.color = kPlainColor;
            continue;
        }
        auto found = std::ranges::find(contenders, series.contender);
        if (found == contenders.end()) {
            found = contenders.insert(contenders.end(), series.contender);
        }
        const auto index = static_cast<std::size_t>(found - contenders.begin());
        series.color = kSeriesColors[index % kSeriesColors.size()];
    }
}

}  // namespace

std::vector<Series> series_of(std::span<const ReportFile> files) {
    const std::map<std::string, Variants> variants = variants_of(files);
    std::vector<Series> all;
    for (std::size_t i = 0; i < files.size(); ++i) {
        for (const BenchRow& row : files[i].bench.rows) {
            Series& series =
                find_or_add(all, {.file = i,
                                  .strategy = row.strategy,
                                  .contender = contender_name(row, variants.at(row.strategy)),
                                  .is_projection = row.is_projection});
            series.rows.push_back(&row);
        }
    }
    for (Series& series : all) {
        series.label = concat(series.contender, series.is_projection ? " (projection)" : "",
                              files.size() > 1 ? concat(" · ", files[series.file].name) : "");
    }
    set_colors(all);
    return all;
}

bool is_plain(const Series& series) {
    return series.strategy == plain_decoding().strategy;
}

Mark mark_of(const Series& series) {
    const Shape& shape = kShapes[series.file % kShapes.size()];
    return series.is_projection ? shape.hollow : shape.filled;
}

BenchSpeedup mean_speedup(const ReportRows& rows, BenchSpeedup BenchRow::*speedup) {
    if (rows.size() == 1) {
        return rows.front()->*speedup;
    }
    std::vector<double> speedups;
    for (const BenchRow* row : rows) {
        speedups.push_back((row->*speedup).mean);
    }
    const Interval interval = geometric_mean(speedups);
    return {.mean = interval.mean, .low = interval.low, .high = interval.high};
}

double mean_tokens_per_second(const ReportRows& rows) {
    std::vector<double> speeds;
    for (const BenchRow* row : rows) {
        speeds.push_back(row->tokens_per_second);
    }
    return geometric_mean(speeds).mean;
}

std::optional<double> acceptance_rate(const ReportRows& rows) {
    double n_drafted = 0;
    double n_accepted = 0;
    for (const BenchRow* row : rows) {
        n_drafted += row->n_drafted;
        n_accepted += row->n_accepted;
    }
    return n_drafted > 0 ? std::optional(n_accepted / n_drafted) : std::nullopt;
}

TokenTime time_per_token(const ReportRows& rows) {
    TokenTime sum;
    double n_tokens = 0;
    for (const BenchRow* row : rows) {
        for (const BenchTurn& turn : row->turns) {
            sum.draft += turn.draft_ms;
            sum.verify += turn.verify_ms;
            sum.search += turn.search_ms;
            sum.other += turn.other_ms;
            sum.total += turn.decode_ms;
            sum.plain += turn.plain_ms;
            n_tokens += turn.n_generated;
        }
    }
    for (double* part :
         {&sum.draft, &sum.verify, &sum.search, &sum.other, &sum.total, &sum.plain}) {
        *part /= n_tokens;
    }
    return sum;
}

}  // namespace knap
