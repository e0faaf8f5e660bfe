// The settings of SWIFT (methods 5), with the defaults of its published code.
#pragma once

#include <cstdint>
#include <span>

#include "knap/types.h"

#include "decode/strategy.h"
#include "decode/swift/swift_search.h"

namespace knap {

// Which widths a draft's tree has.
enum class SwiftTree : std::uint8_t {
    code,   // others when greedy than when sampling
    paper,  // those for sampling, always
    off,    // a chain
};

struct SwiftOptions {
    int draft_max = 25;
    float exit_confidence = 0.8f;  // a less probable draft is the last
    SwiftTree tree = SwiftTree::code;
    int window = 32;       // W: tokens of the answer that candidates are held against
    int opt_interval = 1;  // rounds from candidate to candidate
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
