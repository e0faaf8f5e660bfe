// Rows of benchmarks as series: what one strategy, with one set of options, came to in one file.
// A series has one colour and one mark in every figure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/report/file.h"

namespace knap {

using ReportRows = std::vector<const BenchRow*>;

struct Series {
    std::size_t file = 0;  // index
    std::string strategy;
    std::string way;  // the strategy, with options and rule of acceptance where they tell it apart
    bool is_projection = false;
    std::string label;  // the way, "(projection)", and the file where there are several
    std::string color;  // "#e4572e": by way
    ReportRows rows;
};

// In the order of their first rows. The files must outlive the series.
std::vector<Series> series_of(std::span<const ReportFile> files);

bool is_plain(const Series& series);  // the control

// How a series is marked: a shape for each file, hollow for a projection.
struct Mark {
    int point_type = 0;      // of gnuplot
    std::string_view glyph;  // the same as a letter
};
Mark mark_of(const Series& series);

// What rows came to, one or more of them.
// Geometric mean with its 95 % interval; of one row its own.
BenchSpeedup mean_speedup(const ReportRows& rows);
double mean_tokens_per_second(const ReportRows& rows);

// Of all drafted tokens; nullopt: nothing was drafted.
std::optional<double> acceptance_rate(const ReportRows& rows);

// ms for each generated token.
struct TokenTime {
    double draft = 0;
    double verify = 0;
    double search = 0;
    double other = 0;
    double total = 0;
    double plain = 0;  // of plain decoding in turn with it
};
TokenTime time_per_token(const ReportRows& rows);

}  // namespace knap
