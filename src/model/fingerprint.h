// Identifies a model without reading all of its file.
#pragma once

#include <cstdint>

namespace knap {

class GgufFile;

// Depends on the name, type, shape and first bytes of every tensor, not on the file's path. Two
// files with the same fingerprint compute the same thing, unless someone edited weights in the
// middle of a tensor.
std::uint64_t fingerprint(const GgufFile& file);

}  // namespace knap
