// The object `knap` of a request: how to draft.
#pragma once

#include "knap/types.h"

#include "serve/api/generation_fields.h"

namespace knap {

// Changes what the object names. Another strategy than the default starts with settings of its own.
void read_speculation(const Json& object, GenerationRequest& request);

}  // namespace knap
