#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace knap {
namespace {

std::atomic<LogLevel> current_level{LogLevel::warning};
std::mutex sink_mutex;
std::shared_ptr<const LogSink> current_sink;  // null: standard error
std::set<std::string, std::less<>> written_once;

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

void set_log(LogLevel level, LogSink sink) {
    const std::lock_guard lock(sink_mutex);
    current_level = level;
    current_sink = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
    written_once.clear();
}

bool logs(LogLevel level) {
    return level <= current_level;
}

// Calls the sink without holding the lock, so a sink may log or set another sink.
void write_log(LogLevel level, std::string_view text) {
    if (!logs(level)) {
        return;
    }
    std::shared_ptr<const LogSink> sink;
    {
        const std::lock_guard lock(sink_mutex);
        sink = current_sink;
    }
    if (sink != nullptr) {
        (*sink)(level, text);
        return;
    }
    std::fprintf(stderr, "knap: %s%.*s\n", label(level), static_cast<int>(text.size()),
                 text.data());
}

void write_warning_once(std::string_view text) {
    {
        const std::lock_guard lock(sink_mutex);
        if (!written_once.emplace(text).second) {
            return;
        }
    }
    write_log(LogLevel::warning, text);
}

}  // namespace knap
