// Packs matrices that are in a GPU's memory into strips (strips.h), in place.
#pragma once

#include <cstdint>

#include "ggml.h"

namespace knap {

// `data`, in the memory of the current device, has rows_in_strips(n_out) rows as a file stores
// them; beyond n_out they may be anything. can_pack_strips() must hold. Throws knap::Error when
// memory is short.
void pack_strips(void* data, ggml_type type, std::int64_t n_in, std::int64_t n_out);

}  // namespace knap
