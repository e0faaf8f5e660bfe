// A file with the computed cache rows of a prompt, so that a long prompt is computed only once.
//
// Layout, little-endian: magic "knapkv02"; u64 each: model fingerprint, format of the rows,
// n_layers, row bytes of a layer, n_tokens; i32 tokens; the rows of each layer, in pages of
// Sequence::kSavedRows; u64 FNV-1a of everything before it. "knapkv01" had no pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "knap/types.h"

#include "base/mapped_file.h"

namespace knap {

class Sequence;

// Writes rows [0, tokens.size()) of the cache. Replaces an existing file atomically.
void write_prompt_cache(const std::filesystem::path& path,
                        std::uint64_t model_fingerprint,
                        int n_layers,
                        std::span<const Token> tokens,
                        const Sequence& cache);

// A prompt cache that was written before.
class PromptCacheFile {
  public:
    // Throws knap::Error if the file is damaged, is of an older version, has more than `n_ctx`
    // tokens, or was made for another model or other cache types than those of `cache`.
    PromptCacheFile(const std::filesystem::path& path,
                    std::uint64_t model_fingerprint,
                    int n_layers,
                    int n_ctx,
                    const Sequence& cache);

    const std::vector<Token>& tokens() const { return tokens_; }
    // Fills an empty sequence, which has memory for the rows, and commits them.
    void read_rows(Sequence& cache) const;

  private:
    MappedFile file_;
    int n_layers_;
    std::vector<Token> tokens_;
};

}  // namespace knap
