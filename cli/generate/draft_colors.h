// Decides whether output may be coloured, and maps the origin of a token to its colour in
// --show-draft.
#pragma once

#include "cli/environment.h"
#include "cli/flags/flags.h"
#include "cli/generate/text_output.h"

namespace knap {

// True when standard output is a terminal that shows text (no --json) and NO_COLOR is not set.
bool can_show_colors(const Settings& settings, const Environment& environment);

// True when --show-draft is given and colours can be shown. Warns when they cannot.
bool shows_draft_colors(const Settings& settings, const Environment& environment);

TextColor color_of(TokenOrigin origin);

// Standard error, grey where it can be.
TextOutput thoughts_output(const Environment& environment);

}  // namespace knap
