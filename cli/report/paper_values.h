// What the KnapSpec paper published (its Tables 1 and 2), by the shapes of this tree. Machine and
// cuts of the data are the paper's own, so its values stand beside ours to be looked at, not to be
// ranked with them.
#pragma once

#include <optional>
#include <string_view>

namespace knap {

enum class PaperSampling {
    greedy,   // Table 1
    sampled,  // Table 2: temperature 0.7, top-k 50, top-p 0.95
};

struct PaperValue {
    double speedup = 0;
    double acceptance = 0;  // share
};

// Nullopt: not published. `shape` is a name of model/shapes.h, `data` the name of a file such as
// "govreport.jsonl", `method` one of paper_method().
std::optional<PaperValue> paper_value(std::string_view shape,
                                      std::string_view data,
                                      std::string_view method,
                                      PaperSampling sampling);

// The method that a strategy of ours is: "KnapSpec" for knapspec. Empty: none of the paper's.
std::string_view paper_method(std::string_view strategy);

}  // namespace knap
