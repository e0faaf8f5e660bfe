#include "tools/measure/load/peer_load.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"

namespace knap {
namespace {

constexpr int kTrials = 2;  // the first also warms up

const char* on_or_off(bool is_on) {
    return is_on ? "on" : "off";
}

double best_rate(LlamaBatch& batch, std::span<const LlamaRequest> trial) {
    double rate = 0;
    for (int i = 0; i < kTrials; ++i) {
        rate = std::max(rate, load_times_of(serve(batch, trial)).tokens_per_second);
    }
    return rate;
}

}  // namespace

std::vector<TokenTimes> serve(LlamaBatch& batch, std::span<const LlamaRequest> requests) {
    std::vector<TokenTimes> times(requests.size());
    const Stopwatch watch;
    LlamaServer server(
        batch, {.on_start = [&](std::size_t i) { times[i].start_ms = watch.elapsed_ms(); },
                .on_token = [&](std::size_t i,
                                Token) { times[i].token_ms.push_back(watch.elapsed_ms()); }});
    for (const LlamaRequest& request : requests) {
        server.add(request);
    }
    while (server.step()) {
    }
    return times;
}

PeerLoad::PeerLoad(const LlamaBatch& weights, const PeerOptions& options)
    : weights_(weights), options_(options) {}

// One context at a time, because each has a whole cache.
void PeerLoad::choose(std::span<const LlamaRequest> trial) {
    PeerOptions best = options_;
    double fastest = 0;
    for (const bool is_unified : {false, true}) {
        for (const bool has_flash : {false, true}) {
            best_.reset();
            options_.kv_unified = is_unified;
            options_.flash_attention = has_flash;
            best_.emplace(weights_, options_);
            const double rate = best_rate(*best_, trial);
            if (rate > fastest) {
                fastest = rate;
                best = options_;
            }
        }
    }
    best_.reset();
    best_.emplace(weights_, best);
}

std::string PeerLoad::setting() const {
    return concat("flash=", on_or_off(best_->options().flash_attention),
                  " unified=", on_or_off(best_->options().kv_unified));
}

}  // namespace knap
