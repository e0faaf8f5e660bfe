// How long do conversations that begin alike take until all have their first token, compared with
// one of them alone? Every repetition has new random tokens, so no prompt is in the cache before.
#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/batch/prompts.h"
#include "bench/batch/ratios.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"

namespace knap::bench {

inline void measure_prefix(BatchRig& rig,
                           BatchPrompts& prompts,
                           const BatchSettings& settings,
                           BenchJson& json) {
    constexpr int kConversations = 8;
    constexpr int kOwnTokens = 20;
    const int n_ctx = context_for(settings.n_prefix + kOwnTokens + 1);
    std::vector<Session> sessions = open_sessions(rig.load(n_ctx, kConversations), kConversations);
    warm_up(sessions, prompts);
    // Until the last of `n` conversations has its first token.
    const auto time_to_all = [&](int n) {
        const Prompt prefix = prompts.random(settings.n_prefix);
        std::vector<Prompt> texts(static_cast<std::size_t>(n), prefix);
        std::vector<LoadRequest> requests;
        for (Prompt& text : texts) {
            std::ranges::copy(prompts.random(kOwnTokens), std::back_inserter(text));
            requests.push_back({text, options_of(plain_decoding().strategy, 1)});
        }
        return load_times_of(times_of(serve(std::span(sessions).first(static_cast<std::size_t>(n)),
                                            requests)))
            .wall_ms;
    };
    std::vector<double> alone;
    std::vector<double> all;
    for (int repeat = 0; repeat < settings.n_repeats; ++repeat) {
        alone.push_back(time_to_all(1));
        all.push_back(time_to_all(kConversations));
    }
    std::printf(
        "\nShared prefix: %d conversations with %d tokens in common and %d of their own; time "
        "until "
        "all have their first token / time of one alone: %s\n",
        kConversations, settings.n_prefix, kOwnTokens, spread_text(ratios_of(all, alone)).c_str());
    std::fflush(stdout);
    json.add_row({{"question", "prefix"},
                  {"conversations", kConversations},
                  {"prefix", settings.n_prefix},
                  {"own", kOwnTokens}},
                 {{"alone", {}, alone}, {"all", {}, all}}, 1);
}

}  // namespace knap::bench
