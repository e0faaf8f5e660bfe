#include "tools/measure/parallel_race.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "device/backend.h"
#include "runtime/engine_impl.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

constexpr std::size_t kWarmUpPrompt = 32;

// Tokens of a prompt in another order, so that no page of the cache fits the prompt itself.
std::vector<Token> warm_up_text(const BenchPrompt& prompt) {
    std::vector<Token> tokens = prompt.tokens;
    std::ranges::reverse(tokens);
    tokens.resize(std::min(tokens.size(), kWarmUpPrompt));
    return tokens;
}

}  // namespace

// The references, and in each turn plain decoding twice, the contenders and libllama.
std::size_t n_loads(const RaceOptions& options) {
    const std::size_t n_sides = options.contenders.size() + 2 + options.peers.size();
    return 1 + options.rules.size() * static_cast<std::size_t>(options.n_turns) * n_sides;
}

ParallelRace::ParallelRace(Engine& engine, RaceOptions options, RaceObserver observer)
    : engine_(engine),
      options_(std::move(options)),
      observer_(std::move(observer)),
      n_parallel_(engine.config().n_parallel) {
    if (!options_.peers.empty()) {
        KNAP_ASSERT(options_.peers == std::vector<std::string>{kPlainPeer},
                    "peers draft for one conversation at a time");
        const RuntimeConfig& config = engine.config();
        backend_ =
            std::make_unique<Backend>(impl_of(engine).head_backend().device(), config.n_threads);
        PeerOptions peer{.n_ctx = config.n_ctx,
                         .n_ubatch = config.n_ubatch,
                         .n_threads = config.n_threads,
                         .repack = true,
                         .beside = backend_.get()};
        peer_weights_.emplace(config.model_path, peer);
        peer.n_sequences = n_parallel_;
        peer_.emplace(*peer_weights_, peer);
    }
}

ParallelRace::~ParallelRace() = default;

std::optional<ParallelOutcome> ParallelRace::measure(std::span<const BenchPrompt> prompts) {
    n_finished_ = 0;
    ParallelOutcome outcome;
    if (!answer_alone(prompts, outcome)) {
        return std::nullopt;
    }
    if (prompts_.empty()) {
        return outcome;
    }
    if (peer_) {
        choose_peer();
    }
    std::vector<ParallelTurns> races;
    for (const RaceRule& rule : options_.rules) {
        auto turns = race(rule);
        if (!turns) {
            return std::nullopt;
        }
        races.push_back(std::move(*turns));
    }
    ParallelOutcome measured = outcome_of(prompts_, references_, races, options_.sampling);
    std::ranges::move(measured.skipped, std::back_inserter(outcome.skipped));
    outcome.rows = std::move(measured.rows);
    outcome.loads = std::move(measured.loads);
    return outcome;
}

// Writes the references with one session, and leaves out the prompts whose answer is too short.
bool ParallelRace::answer_alone(std::span<const BenchPrompt> prompts, ParallelOutcome& outcome) {
    auto served = serve_load(plain_decoding(), prompts, /*n_sessions=*/1);
    if (!served) {
        return false;
    }
    prompts_.clear();
    references_.clear();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        if (const std::string why = why_too_short((*served)[i].result); !why.empty()) {
            outcome.skipped.push_back({place_of(prompts[i]), why});
            continue;
        }
        prompts_.push_back(prompts[i]);
        references_.push_back(std::move((*served)[i].result));
    }
    return true;
}

std::optional<ParallelTurns> ParallelRace::race(const RaceRule& rule) {
    ParallelTurns race{.rule = rule, .sides = sides_with(rule, options_)};
    race.sides_turns.resize(race.sides.size());
    race.peer_setting = peer_ ? peer_->setting() : "";
    for (int turn = 0; turn < options_.n_turns; ++turn) {
        if (!take_turn(race)) {
            return std::nullopt;
        }
    }
    return race;
}

bool ParallelRace::take_turn(ParallelTurns& race) {
    if (!serve_side(race.sides.front(), race.plain_before)) {
        return false;
    }
    for (std::size_t side = 1; side < race.sides.size(); ++side) {
        if (!serve_side(race.sides[side], race.sides_turns[side])) {
            return false;
        }
    }
    if (peer_) {
        race.peer.push_back(serve(peer_->batch(), peer_requests()));
        finish_load();
    }
    return serve_side(race.sides.front(), race.sides_turns.front());
}

bool ParallelRace::serve_side(const Contender& side, ServedTurns& turns) {
    auto served = serve_load(side.speculation, prompts_, n_parallel_);
    if (served) {
        turns.push_back(std::move(*served));
    }
    return served.has_value();
}

std::optional<std::vector<ServedRequest>> ParallelRace::serve_load(
    const SpeculationOptions& how, std::span<const BenchPrompt> prompts, int n_sessions) {
    if (is_cancelled()) {
        return std::nullopt;
    }
    load_again(engine_);
    std::vector<Session> sessions = open_sessions(engine_, n_sessions);
    warm_up(sessions, warm_up_text(prompts.front()));
    std::vector<LoadRequest> requests;
    for (const BenchPrompt& prompt : prompts) {
        requests.push_back({.prompt = prompt.tokens,
                            .options = request_for(prompt, how, options_.n_predict, options_),
                            .has_fresh_strategies = options_.fresh_strategies});
    }
    std::size_t n_answers = 0;
    const auto note_answer = [&](std::size_t) {
        const double part = static_cast<double>(++n_answers) / static_cast<double>(prompts.size());
        if (observer_.on_progress) {
            observer_.on_progress(static_cast<double>(n_finished_) + part);
        }
    };
    auto served =
        serve(sessions, requests, {.on_done = note_answer, .is_cancelled = observer_.is_cancelled});
    finish_load();
    return is_cancelled() ? std::nullopt : std::optional(std::move(served));
}

// libllama feeds the answers of the references, as in races of one session.
std::vector<LlamaRequest> ParallelRace::peer_requests() const {
    std::vector<LlamaRequest> requests;
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
        requests.push_back({.prompt = prompts_[i].tokens,
                            .n_predict = references_[i].n_generated,
                            .answer = references_[i].tokens});
    }
    return requests;
}

void ParallelRace::choose_peer() {
    std::vector<LlamaRequest> trial = peer_requests();
    trial.resize(std::min(trial.size(), static_cast<std::size_t>(n_parallel_)));
    peer_->choose(trial);
}

bool ParallelRace::is_cancelled() const {
    return observer_.is_cancelled && observer_.is_cancelled();
}

void ParallelRace::finish_load() {
    ++n_finished_;
    if (observer_.on_progress) {
        observer_.on_progress(static_cast<double>(n_finished_));
    }
}

}  // namespace knap
