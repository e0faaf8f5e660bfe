// What earlier runs have learned (decode/learned/learned.h), as text for a terminal.
#pragma once

#include <ostream>

#include "decode/learned/learned.h"

namespace knap {

void write_learned(std::ostream& out, const Learned& learned);

}  // namespace knap
