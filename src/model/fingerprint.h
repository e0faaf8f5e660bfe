// Tells models apart without reading them whole.
#pragma once

#include <cstdint>

namespace knap {

class GgufFile;

// Depends on every tensor's name, type, shape and first bytes, not on the file's path. Two files
// with the same fingerprint compute the same thing unless someone edited weights in the middle of a
// tensor.
std::uint64_t fingerprint(const GgufFile& file);

}  // namespace knap
