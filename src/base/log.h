// Log messages of the engine. Level and sink are process-wide.
#pragma once

#include <string_view>

#include "knap/types.h"

#include "base/text.h"

namespace knap {

void set_log(LogLevel level, LogSink sink);  // default: warnings, on standard error
bool logs(LogLevel level);
void write_log(LogLevel level, std::string_view text);
// Once per text since the last set_log(), however many sessions find the same fault.
void write_warning_once(std::string_view text);

template <typename... Parts>
void log_warning(const Parts&... parts) {
    write_log(LogLevel::warning, concat(parts...));
}

template <typename... Parts>
void log_warning_once(const Parts&... parts) {
    write_warning_once(concat(parts...));
}

template <typename... Parts>
void log_info(const Parts&... parts) {
    if (logs(LogLevel::info)) {
        write_log(LogLevel::info, concat(parts...));
    }
}

}  // namespace knap
