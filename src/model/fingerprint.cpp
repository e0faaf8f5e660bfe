#include "model/fingerprint.h"

#include <algorithm>

#include "base/hash.h"
#include "model/gguf/gguf_file.h"

namespace knap {

std::uint64_t fingerprint(const GgufFile& file, std::string_view unused) {
    constexpr std::size_t kSampleBytes = 256;
    Fnv1a hash;
    for (const TensorInfo& tensor : file.tensors()) {
        if (tensor.name == unused) {
            continue;
        }
        hash.add(tensor.name);
        hash.add(static_cast<std::uint64_t>(tensor.type));
        hash.add(std::as_bytes(std::span(tensor.ne)));
        hash.add(std::span(tensor.data, std::min(tensor.n_bytes, kSampleBytes)));
    }
    return hash.value();
}

}  // namespace knap
