// The settings of SWIFT (docs/methods.md, "SWIFT"), with the defaults of its published code.
#pragma once

#include <cstdint>
#include <span>

#include "knap/types.h"

#include "decode/strategy.h"
#include "decode/swift/swift_search.h"

namespace knap {

// The widths of a draft's tree.
enum class SwiftTree : std::uint8_t {
    code,   // as in the code: wider when greedy than when sampling
    paper,  // the widths for sampling, always
    off,    // a chain
};

struct SwiftOptions {
    int draft_max = 25;
    float exit_confidence = 0.8f;  // stop after a token less probable than this
    SwiftTree tree = SwiftTree::code;
    int window = 32;       // W: tokens of the answer that candidates are scored on
    int opt_interval = 1;  // rounds between candidates
    SwiftSearchOptions search{};
};

// Candidates per position, by the confidence of the first.
struct SwiftWidths {
    int widest = 1;
    std::span<const WidthStep> steps{};
};
SwiftWidths swift_widths(SwiftTree tree, bool is_greedy);

// Throws when an option is not valid.
SwiftOptions read_swift_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> swift_option_infos();

}  // namespace knap
