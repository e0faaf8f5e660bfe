// Means of a strategy over all cells of a table, and over the cells cut to the same length.
#pragma once

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tools/measure/statistics.h"

namespace knap::bench {

// Returns nullopt for an empty list.
inline std::optional<double> mean_of(const std::vector<double>& ratios) {
    return ratios.empty() ? std::nullopt : std::optional(geometric_mean(ratios).mean);
}

inline std::string two_decimals(const std::optional<double>& value) {
    char text[32] = "-";
    if (value) {
        std::snprintf(text, sizeof(text), "%.2f", *value);
    }
    return text;
}

// A strategy on a cell: means over its prompts.
struct CellMeans {
    std::string strategy;
    std::size_t max_tokens = 0;  // of the cell
    double speed = 0;
    double request = 0;             // speed of whole requests
    double acceptance = 0;          // of drafted tokens
    double length = 0;              // tokens emitted per round
    double search = 0;              // share of the time spent searching
    std::optional<double> share{};  // of the bound
};

class StrategySummary {
  public:
    void add(CellMeans means) { cells_.push_back(std::move(means)); }

    void print(const std::string& strategy) const {
        print_means(strategy, "all cells", [](const CellMeans&) { return true; });
        std::set<std::size_t> lengths;
        for (const CellMeans& cell : cells_) {
            lengths.insert(cell.max_tokens);
        }
        for (const std::size_t length : lengths) {
            print_means(strategy, length > 0 ? concat("cells @", length) : "uncut cells",
                        [=](const CellMeans& cell) { return cell.max_tokens == length; });
        }
    }

  private:
    template <typename IsWanted>
    void print_means(const std::string& strategy,
                     const std::string& which,
                     IsWanted is_wanted) const {
        std::vector<double> speeds;
        std::vector<double> requests;
        std::vector<double> shares;
        double acceptance = 0;
        double length = 0;
        double search = 0;
        for (const CellMeans& cell : cells_) {
            if (cell.strategy == strategy && is_wanted(cell)) {
                speeds.push_back(cell.speed);
                requests.push_back(cell.request);
                acceptance += cell.acceptance;
                length += cell.length;
                search += cell.search;
                if (cell.share) {
                    shares.push_back(*cell.share);
                }
            }
        }
        const auto n = static_cast<double>(speeds.size());
        std::printf(
            "%-18s %-12s %2zu: speed %.3f, lowest %.3f, whole request %.3f; accept %.2f, "
            "length %.2f, search %.1f%%",
            strategy.c_str(), which.c_str(), speeds.size(), geometric_mean(speeds).mean,
            std::ranges::min(speeds), geometric_mean(requests).mean, acceptance / n, length / n,
            100 * search / n);
        if (!shares.empty()) {
            std::printf("; share of the bound %.2f, lowest %.2f", geometric_mean(shares).mean,
                        std::ranges::min(shares));
        }
        std::printf("\n");
    }

    std::vector<CellMeans> cells_;
};

}  // namespace knap::bench
