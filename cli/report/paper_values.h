// The results in Tables 1 and 2 of the KnapSpec paper, by model shape. The paper's machine and the
// way it cut its data differ from ours, so its values are shown beside ours but not ranked with
// them.
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

// Returns nullopt for values that were not published. `shape` is a name in
// tools/make_model/shapes.h, `data` the name of a file such as "govreport.jsonl", `method` one of
// paper_method().
std::optional<PaperValue> paper_value(std::string_view shape,
                                      std::string_view data,
                                      std::string_view method,
                                      PaperSampling sampling);

// The paper's name for a strategy: "KnapSpec" for knapspec. Empty when the paper does not have it.
std::string_view paper_method(std::string_view strategy);

}  // namespace knap
