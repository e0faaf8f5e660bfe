// Messages for the person at the terminal. One process, one standard error: the level is
// process-wide.
#pragma once

#include <string_view>

#include "base/text.h"

namespace knap {

enum class LogLevel { warning, info, debug };

void set_log_level(LogLevel level);  // default: warning
bool logs(LogLevel level);
void write_log(LogLevel level, std::string_view text);  // "knap: warning: text" on standard error

template <typename... Parts>
void log_warning(const Parts&... parts) {
    write_log(LogLevel::warning, concat(parts...));
}

template <typename... Parts>
void log_info(const Parts&... parts) {
    if (logs(LogLevel::info)) {
        write_log(LogLevel::info, concat(parts...));
    }
}

}  // namespace knap
