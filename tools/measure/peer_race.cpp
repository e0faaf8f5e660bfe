#include "tools/measure/peer_race.h"

#include <numeric>

#include "base/clock.h"
#include "runtime/engine_impl.h"
#include "tools/measure/bench_row.h"

namespace knap {
namespace {

std::unique_ptr<LlamaPeer> make_peer(Engine& engine, bool flash_attention) {
    const RuntimeConfig& config = engine.config();
    return std::make_unique<LlamaPeer>(config.model_path,
                                       PeerOptions{.n_ctx = config.n_ctx,
                                                   .n_ubatch = config.n_ubatch,
                                                   .n_threads = config.n_threads,
                                                   .flash_attention = flash_attention,
                                                   .repack = true,
                                                   .beside = &impl_of(engine).head_backend()});
}

}  // namespace

PeerRace::PeerRace(Engine& engine)
    : settings_{Setting{.name = "flash=off", .peer = make_peer(engine, false)},
                Setting{.name = "flash=on", .peer = make_peer(engine, true)}} {}

void PeerRace::read_prompt(std::span<const Token> prompt) {
    n_prompt_ = static_cast<int>(prompt.size());
    forget_turns();
    for (Setting& setting : settings_) {
        setting.peer->truncate(0);
        const Stopwatch watch;
        setting.peer->feed(prompt, LlamaPeer::Logits::last_row);
        setting.prefill_ms = watch.elapsed_ms();
    }
}

void PeerRace::take_turn(std::span<const Token> answer) {
    for (Setting& setting : settings_) {
        setting.peer->truncate(n_prompt_);
        const Stopwatch watch;
        for (std::size_t i = 0; i + 1 < answer.size(); ++i) {
            setting.peer->feed(answer.subspan(i, 1), LlamaPeer::Logits::last_row);
        }
        setting.times_ms.push_back(watch.elapsed_ms());
    }
}

double PeerRace::Setting::total_ms() const {
    return std::accumulate(times_ms.begin(), times_ms.end(), 0.0);
}

const PeerRace::Setting& PeerRace::faster() const {
    return settings_[0].total_ms() <= settings_[1].total_ms() ? settings_[0] : settings_[1];
}

void PeerRace::end_race(BenchRow& row, const Result& reference) {
    const Setting& setting = faster();
    std::vector<BenchTurn> turns;
    for (std::size_t turn = 0; turn < plain_ms_.size(); ++turn) {
        turns.push_back({.decode_ms = setting.times_ms[turn],
                         .plain_ms = plain_ms_[turn],
                         .n_generated = reference.n_generated,
                         .verify_ms = setting.times_ms[turn]});
    }
    fill_peer_row(row, setting.name, reference, std::move(turns));
    forget_turns();
}

void PeerRace::forget_turns() {
    plain_ms_.clear();
    for (Setting& setting : settings_) {
        setting.times_ms.clear();
    }
}

}  // namespace knap
