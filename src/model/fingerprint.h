// Identifies a model without reading all of its file.
#pragma once

#include <cstdint>
#include <string_view>

namespace knap {

class GgufFile;

// Depends on the name, type, shape and first bytes of every tensor but the one called `unused`, not
// on the file's path. Two files with the same fingerprint compute the same thing, unless someone
// edited weights in the middle of a tensor.
std::uint64_t fingerprint(const GgufFile& file, std::string_view unused = {});

}  // namespace knap
