#include "decode/asd/options.h"

#include <array>
#include <string_view>

#include "decode/draft_verify/options.h"
#include "decode/option_table.h"

namespace knap {

namespace {

constexpr int kMaxRows = 1024;
constexpr int kMaxCount = 1'000'000;

constexpr std::array kOwnOptions = {
    StrategyOption<AsdOptions>{
        {"theta", "-1..1", "skip attention modules whose mean cosine reaches this (default: 0.99)"},
        [](AsdOptions& options, std::string_view text) {
            return read_number(text, -1, 1, options.rule.least_cosine);
        }},
    StrategyOption<AsdOptions>{
        {"rows", "1..1024", "last rows of the text to average cosines over (default: 64)"},
        [](AsdOptions& options, std::string_view text) {
            return read_integer(text, 1, kMaxRows, options.n_rows);
        }},
    StrategyOption<AsdOptions>{
        {"refresh", "0..1000000", "rounds between choices; 0: one choice per request (default: 0)"},
        [](AsdOptions& options, std::string_view text) {
            return read_integer(text, 0, kMaxCount, options.refresh_rounds);
        }},
    StrategyOption<AsdOptions>{
        {"max-run", "0..1000000",
         "maximum number of adjacent modules to skip; 0: no limit (default: 0)"},
        [](AsdOptions& options, std::string_view text) {
            return read_integer(text, 0, kMaxCount, options.rule.max_run);
        }},
    StrategyOption<AsdOptions>{
        {"max-total", "0..1000000", "maximum number of modules to skip; 0: no limit (default: 0)"},
        [](AsdOptions& options, std::string_view text) {
            return read_integer(text, 0, kMaxCount, options.rule.max_total);
        }},
};

constexpr auto kOptions = join_tables(kOwnOptions, threshold_settings<AsdOptions>());

}  // namespace

AsdOptions read_asd_options(const SpeculationOptions& options, int max_rows) {
    AsdOptions own{.threshold = {.cap = threshold_cap(options, max_rows)}};
    apply_settings(options.settings, kOptions, own);
    return own;
}

std::span<const StrategyOptionInfo> asd_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
