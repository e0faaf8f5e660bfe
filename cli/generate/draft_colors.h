// Whether output may be coloured; --show-draft: colours that tell where tokens came from.
#pragma once

#include "cli/environment.h"
#include "cli/flags/flags.h"
#include "cli/generate/text_output.h"

namespace knap {

// Whether standard output is a terminal that shows text, and NO_COLOR allows colours.
bool can_show_colors(const Settings& settings, const Environment& environment);

// Whether the colours of --show-draft are wanted and can be shown. Warns when they are wanted in
// vain.
bool shows_draft_colors(const Settings& settings, const Environment& environment);

TextColor color_of(TokenOrigin origin);

}  // namespace knap
