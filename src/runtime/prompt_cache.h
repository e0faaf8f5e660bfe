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

namespace knap {

class Sequence;

// Writes rows [0, tokens.size()) of the cache. Replaces an existing file atomically.
void write_prompt_cache(const std::filesystem::path& path,
                        std::uint64_t model_fingerprint,
                        int n_layers,
                        std::span<const Token> tokens,
                        const Sequence& cache);

// Reads a file into the sequence, commits its rows, and returns its tokens. Throws knap::Error and
// leaves the sequence unchanged if the file is damaged, is of an older version, or was made for
// another model or cache type. When the cache lacks pages it throws too, and the sequence is empty.
std::vector<Token> read_prompt_cache(const std::filesystem::path& path,
                                     std::uint64_t model_fingerprint,
                                     int n_layers,
                                     int n_ctx,
                                     Sequence& cache);

}  // namespace knap
