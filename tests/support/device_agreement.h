// One device held against another: every kind of pass, from the same file and the same rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/loaded_model.h"

namespace knap::test {

struct PassAgreement {
    std::string pass;  // "prompt", "tree", ...
    double error = 0;  // root mean square of the difference, over that of the logits
};

// The passes of a model on `device` against those on the CPU, by ggml's products: prompts, single
// rows, windows, trees, branches, replays, early exits, resumed and captured streams, copied and
// saved cache rows. `options` are those of the device's cache, half of which is filled at first.
std::vector<PassAgreement> compare_with_cpu(const std::filesystem::path& path,
                                            ggml_backend_dev_t device,
                                            const ForwardOptions& options);

// The first row of a pass of 2 to `n_rows` rows whose logits have other bits than in a pass of its
// own, in words; empty: none. Passes begin where rows are few, many, and read more of the cache
// than the row before.
std::string find_changed_bits(const std::filesystem::path& path,
                              ggml_backend_dev_t device,
                              const ForwardOptions& options);

}  // namespace knap::test
