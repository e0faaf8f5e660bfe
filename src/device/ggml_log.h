// Redirects the logs of ggml and libllama, which are process-wide: once installed, every line goes
// to knap's log at debug level, and errors are kept for code that is about to throw.
#pragma once

#include <string>

#include "knap/types.h"

namespace knap {

// Installs the redirection. May be called any number of times, from any thread.
void install_ggml_log();

// Statistics of captured CUDA graphs, gathered from the log of this process.
CudaGraphStatistics logged_cuda_graphs();

// Collects the errors that ggml and libllama report on this thread while it lives:
//
//     GgmlErrorCapture errors;
//     if (gguf_init_from_buffer(...) == nullptr) {
//         fail(path, ": ", errors.reason());
//     }
//
// Captures nest; the innermost one receives the errors.
class GgmlErrorCapture {
  public:
    GgmlErrorCapture();
    ~GgmlErrorCapture();
    GgmlErrorCapture(const GgmlErrorCapture&) = delete;
    GgmlErrorCapture& operator=(const GgmlErrorCapture&) = delete;

    // The first error since construction, on one printable line without the name of the function
    // that logged it: the first error is the cause, later ones are its consequences. "no reason
    // given" if there was none.
    std::string reason() const;

  private:
    std::string first_;
    std::string* outer_;  // where the enclosing capture keeps its first error
};

}  // namespace knap
