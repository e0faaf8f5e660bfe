#include <algorithm>

#include "base/hash.h"
#include "fuzz/targets.h"
#include "runtime/files/prompt_cache.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::fuzz::prompt_cache_target_parts {
namespace {

constexpr std::uint64_t kFingerprint = 0x1122334455667788;
constexpr int kContext = 300;

struct Rig {
    test::LoadedModel model{tiny_model("tiny-llama")};
    test::ForwardRig rig{model, {.capacity = kContext, .n_ubatch = 16}};
};

Rig& rig() {
    static Rig parts;
    return parts;
}

std::string with_checksum(std::string_view bytes) {
    Fnv1a hash;
    hash.add(std::as_bytes(std::span(bytes)));
    const std::uint64_t checksum = hash.value();
    return std::string(bytes) +
           std::string(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

// A byte that says whether the checksum is right, and the file. Files with a wrong one go no
// further.
void run(std::string_view input) {
    Choices choices(input);
    const bool has_checksum = choices.flag();
    const InputFile file(has_checksum ? with_checksum(choices.rest())
                                      : std::string(choices.rest()));
    Sequence& cache = rig().rig.cache;
    is_accepted([&] {
        const PromptCacheFile found(file.path(), kFingerprint, rig().model.config.n_layers,
                                    kContext, cache);
        const auto n_tokens = static_cast<int>(found.tokens().size());
        expect(n_tokens <= kContext, "a prompt fits the context");
        cache.release();
        expect(cache.reserve(n_tokens), "the cache has room for a context");
        found.read_rows(cache);
        expect(cache.committed() == n_tokens, "every token has its rows");
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const int n_tokens : {0, 1, 3}) {
        std::vector<Token> tokens(static_cast<std::size_t>(n_tokens), 7);
        Rig fresh;
        fresh.rig.feed(tokens.empty() ? std::vector<Token>{7} : tokens);
        const auto path = temporary_folder() / "prompt.cache";
        write_prompt_cache(path, kFingerprint, fresh.model.config.n_layers, tokens,
                           fresh.rig.cache);
        const std::string bytes = bytes_of(path);
        all.push_back('\1' + bytes.substr(0, bytes.size() - sizeof(std::uint64_t)));
        all.push_back('\0' + bytes);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::prompt_cache_target_parts

knap::fuzz::Target knap::fuzz::prompt_cache_target() {
    using namespace prompt_cache_target_parts;
    return {.name = "prompt_cache",
            .run = run,
            .seeds = seeds,
            .max_bytes = 8192,
            .word_sources = {"src/runtime/files/prompt_cache.cpp"}};
}
