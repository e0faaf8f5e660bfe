// Groups benchmark rows into series: the results of one strategy with one set of options in one
// file. A series has the same colour and mark in every figure.
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
    // The strategy, with options and acceptance rule where they are needed to tell it apart.
    std::string contender;
    bool is_projection = false;
    std::string label;  // `contender`, "(projection)", and the file's name if there are several
    std::string color;  // "#e4572e", by `contender`
    ReportRows rows;
};

// In the order of their first rows. The files must outlive the series.
std::vector<Series> series_of(std::span<const ReportFile> files);

bool is_plain(const Series& series);  // the control

// The mark of a series: a shape per file, hollow for a projection.
struct Mark {
    int point_type = 0;      // gnuplot's number
    std::string_view glyph;  // the same as a character
};
Mark mark_of(const Series& series);

// The functions below require at least one row.
// The geometric mean with its 95 % interval; a single row keeps its own interval. The default is
// the speedup of decoding; pass &BenchRow::request_speedup for that of whole requests.
BenchSpeedup mean_speedup(const ReportRows& rows,
                          BenchSpeedup BenchRow::*speedup = &BenchRow::speedup);
double mean_tokens_per_second(const ReportRows& rows);

// Over all drafted tokens. Returns nullopt when nothing was drafted.
std::optional<double> acceptance_rate(const ReportRows& rows);

// Milliseconds per generated token.
struct TokenTime {
    double draft = 0;
    double verify = 0;
    double search = 0;
    double other = 0;
    double total = 0;
    double plain = 0;  // plain decoding, measured in turns with it
};
TokenTime time_per_token(const ReportRows& rows);

}  // namespace knap
