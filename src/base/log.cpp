#include "base/log.h"

#include <atomic>
#include <cstdio>

namespace knap {
namespace {

std::atomic<LogLevel> current_level{LogLevel::warning};

const char* label(LogLevel level) {
    switch (level) {
        case LogLevel::warning:
            return "warning: ";
        case LogLevel::info:
            return "";
        case LogLevel::debug:
            return "debug: ";
    }
    return "";
}

}  // namespace

void set_log_level(LogLevel level) {
    current_level = level;
}

bool logs(LogLevel level) {
    return level <= current_level;
}

void write_log(LogLevel level, std::string_view text) {
    if (logs(level)) {
        std::fprintf(stderr, "knap: %s%.*s\n", label(level), static_cast<int>(text.size()),
                     text.data());
    }
}

}  // namespace knap
