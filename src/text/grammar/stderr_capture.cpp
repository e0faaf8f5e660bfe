#include "text/grammar/stderr_capture.h"

#include <array>
#include <cstdio>

#include <sys/mman.h>
#include <unistd.h>

namespace knap {
namespace {

std::mutex& only_one() {
    static std::mutex mutex;
    return mutex;
}

std::string read_all(int file) {
    std::string text;
    std::array<char, 4096> block;
    lseek(file, 0, SEEK_SET);
    for (ssize_t n = 0; (n = read(file, block.data(), block.size())) > 0;) {
        text.append(block.data(), static_cast<std::size_t>(n));
    }
    return text;
}

}  // namespace

StderrCapture::StderrCapture() : lock_(only_one()) {
    std::fflush(stderr);
    collected_ = memfd_create("stderr", MFD_CLOEXEC);
    original_ = collected_ < 0 ? -1 : dup(STDERR_FILENO);
    if (original_ >= 0) {
        dup2(collected_, STDERR_FILENO);
    }
}

StderrCapture::~StderrCapture() {
    finish();
    if (!text_.empty()) {
        std::fwrite(text_.data(), 1, text_.size(), stderr);
    }
}

std::string StderrCapture::take(std::string_view begin, std::string_view end) {
    finish();
    const std::size_t start = text_.find(begin);
    const std::size_t from = start + begin.size();
    const std::size_t to = start == std::string::npos ? start : text_.find(end, from);
    if (to == std::string::npos) {
        return "";
    }
    std::string found = text_.substr(from, to - from);
    text_.erase(start, to + end.size() - start);
    return found;
}

// Standard error is itself again.
void StderrCapture::finish() {
    std::fflush(stderr);
    if (original_ >= 0) {
        dup2(original_, STDERR_FILENO);
        close(original_);
        text_ = read_all(collected_);
    }
    if (collected_ >= 0) {
        close(collected_);
    }
    original_ = -1;
    collected_ = -1;
}

}  // namespace knap
