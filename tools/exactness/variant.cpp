#include "tools/exactness/variant.h"

#include <utility>

#include "tools/check/eager_profile.h"

namespace knap {

std::string_view to_string(Costs costs) {
    switch (costs) {
        case Costs::measured:
            return "measured";
        case Costs::slow_cache:
            return "slow cache";
        case Costs::slow_weights:
            return "slow weights";
    }
    return "?";
}

EngineVariant draw_variant(Draws& draws, int max_threads) {
    EngineVariant variant;
    variant.cache_k = draws.one_of({CacheType::f16, CacheType::q8_0});
    variant.cache_v = variant.cache_k;
    variant.n_threads = draws.one_of({1, 1, max_threads});
    variant.n_ubatch = draws.one_of({2, 5, 32, 64, 200, 512});
    variant.n_sessions = draws.one_of({1, 1, 2, 3});
    variant.has_one_context = draws.one_in(2);
    variant.prefix_cache = draws.one_in(2);
    variant.costs = draws.one_of({Costs::measured, Costs::slow_cache, Costs::slow_weights});
    return variant;
}

RuntimeConfig plain_config(RuntimeConfig config, const EngineVariant& variant) {
    config.cache_type_k = variant.cache_k;
    config.cache_type_v = variant.cache_v;
    config.n_threads = 1;
    config.n_parallel = 1;
    config.n_cache_rows = 0;
    config.prefix_cache = false;
    config.memory = false;
    config.profile = "none";
    return config;
}

RuntimeConfig varied_config(RuntimeConfig config,
                            const EngineVariant& variant,
                            const std::filesystem::path& folder) {
    config = plain_config(std::move(config), variant);
    config.n_threads = variant.n_threads;
    config.n_ubatch = variant.n_ubatch;
    config.n_parallel = variant.n_sessions;
    config.n_cache_rows = variant.has_one_context ? config.n_ctx : 0;
    config.prefix_cache = variant.prefix_cache;
    if (variant.costs == Costs::measured) {
        return config;
    }
    return with_eager_profile(std::move(config),
                              variant.costs == Costs::slow_cache ? Slow::cache : Slow::weights,
                              folder);
}

}  // namespace knap
