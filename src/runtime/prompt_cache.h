// A file with the computed cache rows of a prompt, so that a long prompt is computed only once.
//
// Layout, little-endian: magic "knapkv01"; u64 each: model fingerprint, cache types, n_layers, row
// bytes of a layer, n_tokens; i32 tokens; the rows of each layer in the form of KvCache::read_rows;
// u64 FNV-1a of everything before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class KvCache;

// Writes rows [0, tokens.size()) of the cache. Replaces an existing file atomically.
void write_prompt_cache(const std::filesystem::path& path,
                        std::uint64_t model_fingerprint,
                        int n_layers,
                        std::span<const Token> tokens,
                        const KvCache& cache);

// Reads a file into the cache, commits its rows, and returns its tokens. Throws knap::Error and
// leaves the cache unchanged if the file is damaged or was made for another model or cache type.
std::vector<Token> read_prompt_cache(const std::filesystem::path& path,
                                     std::uint64_t model_fingerprint,
                                     int n_layers,
                                     int n_ctx,
                                     KvCache& cache);

}  // namespace knap
