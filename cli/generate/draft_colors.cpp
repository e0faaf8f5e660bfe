#include "cli/generate/draft_colors.h"

#include <string_view>

#include <unistd.h>

#include "base/log.h"

namespace knap {
namespace {

// Why output cannot be coloured; empty when it can.
std::string_view obstacle(const Settings& settings, const Environment& environment) {
    if (settings.wants_json) {
        return "--json prints no text";
    }
    if (environment.forbids_color) {
        return "NO_COLOR is set";
    }
    return isatty(STDOUT_FILENO) != 0 ? "" : "standard output is not a terminal";
}

}  // namespace

bool can_show_colors(const Settings& settings, const Environment& environment) {
    return obstacle(settings, environment).empty();
}

bool shows_draft_colors(const Settings& settings, const Environment& environment) {
    if (!settings.shows_draft) {
        return false;
    }
    const std::string_view reason = obstacle(settings, environment);
    if (!reason.empty()) {
        log_warning("--show-draft: ", reason, ", so nothing is coloured");
    }
    return reason.empty();
}

TextOutput thoughts_output(const Environment& environment) {
    TextOutput output(STDERR_FILENO);
    if (!environment.forbids_color && isatty(STDERR_FILENO) != 0) {
        output.set_color(TextColor::grey);
    }
    return output;
}

TextColor color_of(TokenOrigin origin) {
    switch (origin) {
        case TokenOrigin::accepted:
            return TextColor::green;
        case TokenOrigin::corrected:
            return TextColor::yellow;
        case TokenOrigin::plain:
        case TokenOrigin::bonus:
            break;
    }
    return TextColor::usual;
}

}  // namespace knap
