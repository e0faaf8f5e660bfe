// How an engine may be set up without changing a text: what cases draw beside a request.
#pragma once

#include <filesystem>
#include <string>

#include "knap/types.h"

#include "tools/exactness/draws.h"

namespace knap {

// What `knapspec` believes of costs (tools/check/eager_profile.h).
enum class Costs { measured, slow_cache, slow_weights };
std::string_view to_string(Costs costs);  // "measured", "slow cache", "slow weights"

struct EngineVariant {
    // Of plain decoding too: they change the text.
    CacheType cache_k = CacheType::f16;
    CacheType cache_v = CacheType::f16;
    // The text is the same whatever these are.
    int n_threads = 1;
    int n_ubatch = 512;
    int n_sessions = 1;            // that decode at once
    bool has_one_context = false;  // the cache holds one context, so that sessions wait for pages
    bool prefix_cache = true;
    Costs costs = Costs::measured;
};

EngineVariant draw_variant(Draws& draws, int max_threads);

// `config` for plain decoding: one thread, one session, prompts in whole batches.
RuntimeConfig plain_config(RuntimeConfig config, const EngineVariant& variant);
// `config` for what is compared with it. `folder` is for its profile.
RuntimeConfig varied_config(RuntimeConfig config,
                            const EngineVariant& variant,
                            const std::filesystem::path& folder);

}  // namespace knap
