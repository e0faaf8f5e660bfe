#include "device/ggml_log.h"

#include <atomic>
#include <mutex>
#include <string_view>

#include "ggml.h"
#include "llama.h"

#include "base/log.h"
#include "base/quoted.h"

namespace knap {
namespace {

thread_local std::string* first_error = nullptr;  // of the innermost capture

// A line as it grows: a message may arrive in pieces (GGML_LOG_LEVEL_CONT) and may hold several
// lines.
struct PendingLine {
    std::string text;
    bool is_error = false;
};
thread_local PendingLine pending;

// ggml-cuda says it in no other way.
std::atomic<std::int64_t> n_captured = 0;
std::atomic<std::int64_t> n_reset = 0;

void count_cuda_graphs(std::string_view line) {
    n_captured += line.ends_with("CUDA graph warmup complete") ? 1 : 0;
    n_reset += line.ends_with("CUDA graph warmup reset") ? 1 : 0;
}

void finish_line() {
    if (!pending.text.empty()) {
        count_cuda_graphs(pending.text);
        if (pending.is_error && first_error != nullptr && first_error->empty()) {
            *first_error = pending.text;
        }
        write_log(LogLevel::debug, pending.text);
    }
    pending = {};
}

void receive(ggml_log_level level, const char* text, void*) {
    if (level != GGML_LOG_LEVEL_CONT) {
        finish_line();
    }
    pending.is_error = pending.is_error || level == GGML_LOG_LEVEL_ERROR;
    for (; *text != '\0'; ++text) {
        if (*text == '\n') {
            finish_line();
        } else {
            pending.text += *text;
        }
    }
}

}  // namespace

void install_ggml_log() {
    static std::once_flag installed;
    std::call_once(installed, [] { llama_log_set(receive, nullptr); });  // sets ggml's as well
}

CudaGraphStatistics logged_cuda_graphs() {
    return {.captured = n_captured, .reset = n_reset};
}

GgmlErrorCapture::GgmlErrorCapture() : outer_(first_error) {
    install_ggml_log();
    first_error = &first_;
}

GgmlErrorCapture::~GgmlErrorCapture() {
    first_error = outer_;
}

std::string GgmlErrorCapture::reason() const {
    if (first_.empty()) {
        return "no reason given";
    }
    // "gguf_init_from_reader: failed to read magic": the function's name means nothing to a user.
    const std::size_t colon = first_.find(": ");
    const bool has_function =
        colon != std::string::npos && first_.find_first_of(" '") > colon && colon > 0;
    return printable(has_function ? first_.substr(colon + 2) : first_);
}

}  // namespace knap
