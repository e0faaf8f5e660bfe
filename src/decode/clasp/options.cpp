#include "decode/clasp/options.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "decode/option_table.h"

namespace knap {

namespace {

constexpr int kMaxLayers = 1000;
constexpr int kLongestInterval = 1'000'000;
constexpr int kPaperInterval = 128;

struct ParsedOptions {
    ClaspOptions clasp{};
    int n_layers = 0;
};

bool set_layers(ParsedOptions& options, std::string_view text) {
    int& n_skipped = options.clasp.n_skipped;
    if (text == "code" || text == "paper") {
        n_skipped =
            text == "code" ? clasp_skipped_layers(options.n_layers) : (options.n_layers + 1) / 2;
        return true;
    }
    return read_integer(text, 1, kMaxLayers, n_skipped);
}

bool set_interval(ParsedOptions& options, std::string_view text) {
    int& interval = options.clasp.interval;
    if (text == "code" || text == "paper") {
        interval = text == "code" ? ClaspOptions{}.interval : kPaperInterval;
        return true;
    }
    return read_integer(text, 1, kLongestInterval, interval);
}

using ClaspOption = StrategyOption<ParsedOptions>;

constexpr std::array kOptions = {
    ClaspOption{{"layers", "code|paper|1..1000",
                 "number of layers to skip: about a quarter|half (default: code)"},
                set_layers},
    ClaspOption{
        {"interval", "code|paper|1..1000000", "rounds between searches: 64|128 (default: code)"},
        set_interval},
    ClaspOption{{"exit-confidence", "0..1",
                 "stop drafting after a token less probable than this (default: 0.7)"},
                [](ParsedOptions& options, std::string_view text) {
                    return read_number(text, 0, 1, options.clasp.exit_confidence);
                }},
};

struct PublishedSize {
    int n_layers;
    int n_skipped;
};

constexpr std::array kPublishedSizes = {
    PublishedSize{16, 4},  PublishedSize{28, 8},  PublishedSize{32, 8},  PublishedSize{36, 8},
    PublishedSize{40, 10}, PublishedSize{64, 20}, PublishedSize{80, 20},
};

}  // namespace

int clasp_skipped_layers(int n_layers) {
    const auto* published = std::ranges::find(kPublishedSizes, n_layers, &PublishedSize::n_layers);
    return published != kPublishedSizes.end() ? published->n_skipped
                                              : std::max(1, (n_layers + 2) / 4);
}

ClaspOptions read_clasp_options(const SpeculationOptions& options, int n_layers) {
    ParsedOptions parsed{.clasp = {.n_skipped = clasp_skipped_layers(n_layers)},
                         .n_layers = n_layers};
    apply_settings(options.settings, kOptions, parsed);
    ClaspOptions& clasp = parsed.clasp;
    if (clasp.n_skipped >= n_layers) {
        fail("`.settings`: expected layers=1..", n_layers - 1,
             " (at least one layer must run), found ", clasp.n_skipped);
    }
    clasp.draft_max = draft_max_or(options, clasp.draft_max);
    return clasp;
}

std::span<const StrategyOptionInfo> clasp_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
