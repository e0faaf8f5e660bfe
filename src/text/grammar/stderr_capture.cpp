#include "text/grammar/stderr_capture.h"

#include <array>
#include <cstdio>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace knap {
namespace {

std::mutex& only_one() {
    static std::mutex mutex;
    return mutex;
}

// Calls take(part) for the text in parts.
template <typename Take>
void read_all(int file, Take take) {
    std::array<char, 4096> block;
    lseek(file, 0, SEEK_SET);
    for (ssize_t n = 0; (n = read(file, block.data(), block.size())) > 0;) {
        take(std::string_view(block.data(), static_cast<std::size_t>(n)));
    }
}

void put(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
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

// Allocates nothing: memory may have run out.
StderrCapture::~StderrCapture() {
    restore();
    put(text_);
    if (collected_ >= 0) {
        read_all(collected_, put);
        close(collected_);
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
void StderrCapture::restore() {
    std::fflush(stderr);
    if (original_ >= 0) {
        dup2(original_, STDERR_FILENO);
        close(original_);
    }
    original_ = -1;
}

void StderrCapture::finish() {
    restore();
    if (collected_ >= 0) {
        std::string text;
        read_all(collected_, [&text](std::string_view part) { text += part; });
        text_ = std::move(text);
        close(collected_);
    }
    collected_ = -1;
}

}  // namespace knap
