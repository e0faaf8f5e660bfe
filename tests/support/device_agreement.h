// Compares one device with another in every kind of pass, with the same file and the same rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/loaded_model.h"

namespace knap::test {

struct PassAgreement {
    std::string pass;  // "prompt", "tree", ...
    // RMS of the difference, relative to that of the logits. Where layers have experts, the
    // farthest row of a pass of several is left out, and one in twenty of a long one: rounding may
    // have chosen another expert there.
    double error = 0;
    double bound = 0;  // of `error`, from the rounding of a reference pass (rounding_error.h)
};

// Compares the passes of a model on `device` with those on the CPU: prompts, single rows, windows,
// trees, branches, replays, early exits, resumed and captured streams, copied and saved cache rows.
// `options` are for the device's cache, half of which is filled first. The CPU runs ggml's products
// and, on the folded path, rounds least. `kernels` are the device's.
std::vector<PassAgreement> compare_with_cpu(const std::filesystem::path& path,
                                            ggml_backend_dev_t device,
                                            const ForwardOptions& options,
                                            AttentionPath cpu_path = AttentionPath::folded,
                                            Kernels kernels = Kernels::ggml);

// Describes the first row of a pass of 2 to options.exact_rows rows whose logits differ in any bit
// from those of a single-row pass; empty: none. Passes start where there are few rows, many rows,
// and where a row reads more of the cache than the row before it.
std::string find_changed_bits(const std::filesystem::path& path,
                              ggml_backend_dev_t device,
                              const ForwardOptions& options);

}  // namespace knap::test
