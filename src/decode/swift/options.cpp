#include "decode/swift/options.h"

#include <array>
#include <limits>
#include <string_view>

#include "decode/option_table.h"

namespace knap {

namespace {

constexpr int kWidest = 10;
constexpr std::array kGreedySteps = {
    WidthStep{.above = 0.95f, .width = 3},
    WidthStep{.above = 0.8f, .width = 5},
    WidthStep{.above = 0.5f, .width = 8},
};
constexpr std::array kSamplingSteps = {
    WidthStep{.above = 0.95f, .width = 1},
    WidthStep{.above = 0.8f, .width = 3},
    WidthStep{.above = 0.5f, .width = 5},
};

constexpr int kMaxWindow = 256;
constexpr int kMaxCount = 1'000'000;

bool set_share(double& share, std::string_view text) {
    float read = 0;
    const bool is_read = read_number(text, 0, 1, read);
    share = static_cast<double>(read);
    return is_read;
}

bool set_tree(SwiftOptions& options, std::string_view text) {
    options.tree = text == "paper" ? SwiftTree::paper
                   : text == "off" ? SwiftTree::off
                                   : SwiftTree::code;
    return text == "code" || text == "paper" || text == "off";
}

bool set_seed(SwiftOptions& options, std::string_view text) {
    int seed = 0;
    const bool is_read = read_integer(text, 0, std::numeric_limits<int>::max(), seed);
    options.search.seed = static_cast<std::uint64_t>(seed);
    return is_read;
}

using SwiftOption = StrategyOption<SwiftOptions>;

constexpr std::array kOptions = {
    SwiftOption{{"window", "1..256", "answer tokens to score plans on (default: 32)"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxWindow, options.window);
                }},
    SwiftOption{
        {"ratio", "0..1", "share of modules to skip, first and last layer aside (default: 0.45)"},
        [](SwiftOptions& options, std::string_view text) {
            return set_share(options.search.skip_ratio, text);
        }},
    SwiftOption{{"max-score", "0..1", "end the search above this matchness (default: 0.95)"},
                [](SwiftOptions& options, std::string_view text) {
                    return set_share(options.search.max_score, text);
                }},
    SwiftOption{{"patience", "0..1000000",
                 "end the search after more plans than this without a better one (default: 300)"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 0, kMaxCount, options.search.patience);
                }},
    SwiftOption{
        {"iterations", "0..1000000", "end the search after more plans than this (default: 1000)"},
        [](SwiftOptions& options, std::string_view text) {
            return read_integer(text, 0, kMaxCount, options.search.max_iterations);
        }},
    SwiftOption{{"bayes-interval", "1..1000000",
                 "one plan in this many comes from the optimiser (default: 25)"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxCount, options.search.bayes_interval);
                }},
    SwiftOption{{"opt-interval", "1..1000000", "rounds between plans (default: 1)"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxCount, options.opt_interval);
                }},
    SwiftOption{{"tree", "code|paper|off",
                 "candidates: 3/5/8/10 greedy, 1/3/5/10 sampled|1/3/5/10|1 (default: code)"},
                set_tree},
    SwiftOption{{"seed", "0..2147483647", "seed of the search (default: 0)"}, set_seed},
    exit_confidence_option<SwiftOptions>(
        "stop drafting after a token less probable than this (default: 0.8)"),
};

}  // namespace

SwiftWidths swift_widths(SwiftTree tree, bool is_greedy) {
    if (tree == SwiftTree::off) {
        return {};
    }
    const bool is_wide = is_greedy && tree == SwiftTree::code;
    return {.widest = kWidest, .steps = is_wide ? kGreedySteps : kSamplingSteps};
}

SwiftOptions read_swift_options(const SpeculationOptions& options) {
    SwiftOptions swift;
    apply_settings(options.settings, kOptions, swift);
    swift.draft_max = draft_max_or(options, swift.draft_max);
    return swift;
}

std::span<const StrategyOptionInfo> swift_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
