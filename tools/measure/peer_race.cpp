#include "tools/measure/peer_race.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "runtime/engine_impl.h"
#include "tools/measure/bench_row.h"
#include "tools/peer/llama_batch.h"
#include "tools/peer/peer_names.h"

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

bool has_drafts(const std::string& name) {
    return name != kPlainPeer;
}

}  // namespace

PeerRace::PeerRace(Engine& engine, const RaceOptions& options, std::function<bool()> is_cancelled)
    : names_(options.peers),
      is_greedy_(options.sampling.temperature == 0),
      is_cancelled_(std::move(is_cancelled)),
      end_tokens_(impl_of(engine).tokenizer->end_of_generation()),
      settings_{Setting{.name = "flash=off", .peer = make_peer(engine, false)},
                Setting{.name = "flash=on", .peer = make_peer(engine, true)}},
      drafts_(options.rules.size()),
      turns_(names_.size()) {
    forget_drafts();
}

void PeerRace::forget_drafts() {
    for (auto& of_rule : drafts_) {
        of_rule.clear();
        of_rule.resize(names_.size());
    }
}

void PeerRace::forget_turns() {
    plain_ms_.clear();
    turns_.clear();
    turns_.resize(names_.size());
}

void PeerRace::read_prompt(std::span<const Token> prompt) {
    prompt_.assign(prompt.begin(), prompt.end());
    forget_turns();
    for (Setting& setting : settings_) {
        setting.peer->truncate(0);
        const Stopwatch watch;
        const auto logits = setting.peer->feed(prompt, LlamaPeer::Logits::last_row).front();
        setting.prefill_ms = watch.elapsed_ms();
        setting.prompt_logits.assign(logits.begin(), logits.end());
    }
}

bool PeerRace::begin(const Result& reference, bool ignores_eos) {
    reference_ = &reference;
    ignores_eos_ = ignores_eos;
    for (Setting& setting : settings_) {
        setting.plain_text.clear();
        setting.plain_difference.reset();
        if (!writes_own_texts()) {
            continue;
        }
        auto plain = write_own(setting, nullptr, setting.plain_difference);
        if (!plain) {
            return false;
        }
        setting.plain_text = std::move(plain->tokens);
    }
    return true;
}

bool PeerRace::writes_own_texts() const {
    return is_greedy_ && std::ranges::any_of(names_, has_drafts);
}

bool PeerRace::writes_own_text(std::size_t peer) const {
    return is_greedy_ && has_drafts(names_[peer]);
}

bool PeerRace::answer(std::size_t peer, std::size_t rule) {
    for (std::size_t i = 0; i < kSettings; ++i) {
        Setting& setting = settings_[i];
        Turns& turns = turns_[peer][i];
        LlamaDrafts* const drafts = drafts_of_turn(peer, rule, i);
        std::optional<BenchDifference> difference;
        auto answer = writes_own_text(peer)
                          ? write_own(setting, drafts, difference)
                          : write(setting, drafts, [this](std::size_t index, auto) {
                                return reference_->tokens[index];
                            });
        if (!answer) {
            return false;
        }
        turns.is_libllamas_text = turns.is_libllamas_text && answer->tokens == setting.plain_text;
        turns.first_difference = turns.first_difference ? turns.first_difference : difference;
        turns.answers.push_back(std::move(*answer));
    }
    return true;
}

// The drafts of the turn about to begin.
LlamaDrafts* PeerRace::drafts_of_turn(std::size_t peer, std::size_t rule, std::size_t setting) {
    if (!has_drafts(names_[peer])) {
        return nullptr;
    }
    TurnDrafts& drafts = drafts_[rule][peer][setting];
    const std::size_t turn = turns_[peer][setting].answers.size();
    if (turn == drafts.size()) {
        drafts.push_back(std::make_unique<LlamaDrafts>(names_[peer]));
    }
    return drafts[turn].get();
}

std::optional<LlamaAnswer> PeerRace::write(Setting& setting,
                                           LlamaDrafts* drafts,
                                           const ChooseToken& choose) {
    setting.peer->truncate(static_cast<int>(prompt_.size()));
    return write_answer(*setting.peer, drafts,
                        {.prompt = prompt_,
                         .first = choose(0, setting.prompt_logits),
                         .n_tokens = static_cast<int>(reference_->tokens.size()),
                         .choose = choose,
                         .is_cancelled = is_cancelled_});
}

std::optional<LlamaAnswer> PeerRace::write_own(Setting& setting,
                                               LlamaDrafts* drafts,
                                               std::optional<BenchDifference>& difference) {
    return write(setting, drafts, [&](std::size_t index, std::span<const float> logits) {
        const Token choice = best_token(logits);
        const Token ours = reference_->tokens[index];
        if (!difference && choice != ours) {
            difference = {.position = static_cast<int>(prompt_.size() + index),
                          .gap = logits[static_cast<std::size_t>(choice)] -
                                 logits[static_cast<std::size_t>(ours)]};
        }
        return choice;
    });
}

Token PeerRace::best_token(std::span<const float> logits) const {
    const Token best = greedy_token(logits);
    if (!ignores_eos_ || std::ranges::find(end_tokens_, best) == end_tokens_.end()) {
        return best;
    }
    std::vector<float> allowed(logits.begin(), logits.end());
    for (const Token token : end_tokens_) {
        allowed[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
    return greedy_token(allowed);
}

double PeerRace::Turns::total_ms() const {
    double sum = 0;
    for (const LlamaAnswer& answer : answers) {
        sum += answer.decode_ms;
    }
    return sum;
}

std::size_t PeerRace::faster_setting(std::size_t peer) const {
    const auto fastest = std::ranges::min_element(turns_[peer], {}, &Turns::total_ms);
    return static_cast<std::size_t>(fastest - turns_[peer].begin());
}

double PeerRace::prefill_ms(std::size_t peer) const {
    return settings_[faster_setting(peer)].prefill_ms;
}

void PeerRace::fill(std::size_t peer, BenchRow& row) const {
    const Setting& setting = settings_[faster_setting(peer)];
    const Turns& turns = turns_[peer][faster_setting(peer)];
    fill_peer_row(row, names_[peer], setting.name, *reference_, turns.answers, plain_ms_);
    if (writes_own_text(peer)) {
        row.identical_to_libllama = turns.is_libllamas_text;
        row.first_difference = turns.first_difference;
        row.identical_to_knap = !turns.first_difference;
    } else if (!setting.plain_text.empty()) {
        row.first_difference = setting.plain_difference;
        row.identical_to_knap = !setting.plain_difference;
    }
}

}  // namespace knap
