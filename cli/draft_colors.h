// --show-draft: colours that tell where tokens came from.
#pragma once

#include "environment.h"
#include "flags.h"
#include "text_output.h"

namespace knap {

// Whether the colours are wanted and can be shown. Warns when they are wanted in vain.
bool shows_draft_colors(const Settings& settings, const Environment& environment);

TextColor color_of(TokenOrigin origin);

}  // namespace knap
