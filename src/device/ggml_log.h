// What ggml and libllama say while they work. Their log is process-wide: once installed, every line
// goes to knap's log at debug level, and errors are kept for whoever is about to throw.
#pragma once

#include <string>

#include "knap/types.h"

namespace knap {

// Routes the logs of ggml and libllama into knap's. Any number of calls, from any thread.
void install_ggml_log();

// What the log has told of captured CUDA graphs, in this process so far.
CudaGraphStatistics logged_cuda_graphs();

// Collects the errors that ggml and libllama report on this thread while it lives:
//
//     GgmlErrorCapture errors;
//     if (gguf_init_from_buffer(...) == nullptr) {
//         fail(path, ": ", errors.reason());
//     }
//
// Captures nest; the innermost hears.
class GgmlErrorCapture {
  public:
    GgmlErrorCapture();
    ~GgmlErrorCapture();
    GgmlErrorCapture(const GgmlErrorCapture&) = delete;
    GgmlErrorCapture& operator=(const GgmlErrorCapture&) = delete;

    // The first error since construction, as one printable line without the name of the function
    // that wrote it; the first is the cause, those after it only say what failed with it. "no
    // reason given" when there was none.
    std::string reason() const;

  private:
    std::string first_;
    std::string* outer_;  // where the capture around this one keeps its first error
};

}  // namespace knap
