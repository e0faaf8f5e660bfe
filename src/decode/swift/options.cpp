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
    SwiftOption{{"window", "1..256", "tokens of the answer that plans are held against; 32"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxWindow, options.window);
                }},
    SwiftOption{{"ratio", "0..1", "modules to skip, of those between the outer layers; 0.45"},
                [](SwiftOptions& options, std::string_view text) {
                    return set_share(options.search.skip_ratio, text);
                }},
    SwiftOption{{"max-score", "0..1", "matchness beyond which the search ends; 0.95"},
                [](SwiftOptions& options, std::string_view text) {
                    return set_share(options.search.max_score, text);
                }},
    SwiftOption{{"patience", "0..1000000", "plans without a better one before it ends; 300"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 0, kMaxCount, options.search.patience);
                }},
    SwiftOption{{"iterations", "0..1000000", "plans in all before it ends; 1000"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 0, kMaxCount, options.search.max_iterations);
                }},
    SwiftOption{{"bayes-interval", "1..1000000", "every so many plans one is the optimiser's; 25"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxCount, options.search.bayes_interval);
                }},
    SwiftOption{{"opt-interval", "1..1000000", "rounds from plan to plan; 1"},
                [](SwiftOptions& options, std::string_view text) {
                    return read_integer(text, 1, kMaxCount, options.opt_interval);
                }},
    SwiftOption{
        {"tree", "code|paper|off", "widths 3/5/8/10 when greedy, else 1/3/5/10|1/3/5/10|a chain"},
        set_tree},
    SwiftOption{{"seed", "0..2147483647", "of the search; 0"}, set_seed},
    exit_confidence_option<SwiftOptions>("stop after a token less probable than this; 0.8"),
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
