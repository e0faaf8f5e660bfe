#include <algorithm>
#include <cstring>
#include <fstream>

#include "fuzz/gguf_seeds.h"
#include "fuzz/targets.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "support/gguf_variant.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::fuzz::gguf_split_target_parts {
namespace {

namespace fs = std::filesystem;

// Where nothing is written to a disk, if there is such a place.
const fs::path& folder() {
    static const fs::path path = [] {
        const fs::path in_memory = "/dev/shm";
        const fs::path place = temporary_folder();
        if (!fs::is_directory(in_memory)) {
            return place;
        }
        fs::create_directories(in_memory / place.filename());
        return in_memory / place.filename();
    }();
    static const struct Cleaner {
        ~Cleaner() { fs::remove_all(path); }
        const fs::path& path;
    } cleaner{path};
    return path;
}

void write(const fs::path& path, std::string_view bytes) {
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
}

// The size of the first part in two bytes, the first part, the second part.
void run(std::string_view input) {
    std::uint16_t n_first = 0;
    std::memcpy(&n_first, input.data(), std::min(input.size(), sizeof n_first));
    const std::string_view parts = input.substr(std::min(input.size(), sizeof n_first));
    const std::size_t n = std::min<std::size_t>(n_first, parts.size());
    const fs::path first = folder() / "m-00001-of-00002.gguf";
    write(first, parts.substr(0, n));
    write(folder() / "m-00002-of-00002.gguf", parts.substr(n));
    is_accepted([&] {
        const GgufFile file = GgufFile::open(first);
        for (const TensorInfo& tensor : file.tensors()) {
            const auto all = file.mappings()[tensor.part];
            expect(tensor.data >= all.data() &&
                       tensor.data + tensor.n_bytes <= all.data() + all.size(),
                   "the data of a tensor is inside its part");
            expect(file.find(tensor.name) == &tensor, "a tensor is found by its name");
        }
        read_config(file);
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0}) {
        const test::TinyGguf tiny(
            "llama", {.n_layers = 1, .n_embd = 32, .n_heads = 4, .n_kv_heads = 2, .n_ff = 32},
            type);
        const test::GgufVariant whole(test::write_tiny(tiny, "whole.gguf"));
        const std::string first = bytes_of(whole.write_split("split"));
        const std::string second = bytes_of(temporary_folder() / "split-00002-of-00002.gguf");
        const auto n_first = static_cast<std::uint16_t>(first.size());
        all.push_back(std::string(reinterpret_cast<const char*>(&n_first), sizeof n_first) + first +
                      second);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::gguf_split_target_parts

knap::fuzz::Target knap::fuzz::gguf_split_target() {
    using namespace gguf_split_target_parts;
    return {.name = "gguf_split",
            .run = run,
            .seeds = seeds,
            .max_bytes = 20'000,
            .word_sources = {"src/model/gguf"}};
}
