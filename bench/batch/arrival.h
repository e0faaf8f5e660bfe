// How long do running conversations stall when a long prompt arrives, and how long does the
// newcomer wait for its first token?
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/batch/prompts.h"
#include "bench/batch/ratios.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"

namespace knap::bench {

class Arrival {
  public:
    Arrival(BatchRig& rig, BatchPrompts& prompts, const BatchSettings& settings)
        : rig_(rig),
          prompts_(prompts),
          settings_(settings),
          n_ctx_(context_for(std::max(settings.n_newcomer, settings.longest) + kRoom)),
          peer_(rig.peer(kRunning + 1, n_ctx_)) {}

    void run(BenchJson& json) {
        choose_peer();
        std::vector<Side> sides;
        for (const std::string& strategy : settings_.strategies) {
            sides.push_back({.name = strategy});
        }
        sides.push_back({.name = "libllama"});
        for (int repeat = 0; repeat < settings_.n_repeats; ++repeat) {
            std::vector<Prompt> texts = prompts_.next(kRunning);
            texts.push_back(prompts_.random(settings_.n_newcomer));
            for (Side& side : sides) {
                const bool is_peer = side.name == "libllama";
                side.add(is_peer ? serve_peer(texts) : serve_ours(texts, side.name));
                std::fprintf(stderr, "arrival: repetition %d of %d, %s\n", repeat + 1,
                             settings_.n_repeats, side.name.c_str());
            }
        }
        report(sides, json);
    }

  private:
    static constexpr int kRunning = 4;
    static constexpr int kTokensBefore = 32;  // of each running answer when the newcomer arrives
    static constexpr int kRoom = 256;         // for the answers

    struct Side {
        std::string name;
        std::vector<double> before_ms{};  // median gap of the running before the arrival
        std::vector<double> stall_ms{};   // their longest gap until the newcomer's first token
        std::vector<double> first_ms{};   // the newcomer's time to it

        // The newcomer is the last one.
        void add(const std::vector<TokenTimes>& requests) {
            const TokenTimes& newcomer = requests.back();
            const double arrival = newcomer.start_ms;
            const double answered = newcomer.token_ms.front();
            std::vector<double> before;
            double longest = 0;
            for (std::size_t i = 0; i + 1 < requests.size(); ++i) {
                const std::vector<double>& tokens = requests[i].token_ms;
                for (std::size_t j = 1; j < tokens.size(); ++j) {
                    const double gap = tokens[j] - tokens[j - 1];
                    if (tokens[j] <= arrival) {
                        before.push_back(gap);
                    } else if (tokens[j - 1] < answered) {
                        longest = std::max(longest, gap);
                    }
                }
            }
            before_ms.push_back(median(before));
            stall_ms.push_back(longest);
            first_ms.push_back(newcomer.first_ms());
        }

        std::vector<double> excess_ms() const {
            std::vector<double> excess;
            std::ranges::transform(stall_ms, before_ms, std::back_inserter(excess), std::minus<>());
            return excess;
        }
    };

    // On a load like the measured ones: a few tokens after short prompts, and a long prompt.
    void choose_peer() {
        std::vector<LlamaRequest> trial = peer_requests(prompts_.next(kRunning), kTokensBefore);
        trial.push_back({.prompt = prompts_.random(settings_.n_newcomer)});
        peer_.choose(trial);
    }

    int n_most(const Prompt& prompt) const { return n_ctx_ - static_cast<int>(prompt.size()); }

    std::vector<TokenTimes> serve_ours(const std::vector<Prompt>& texts,
                                       const std::string& strategy) {
        std::vector<Session> sessions =
            open_sessions(rig_.load(n_ctx_, kRunning + 1), kRunning + 1);
        warm_up(sessions, prompts_);
        std::vector<std::atomic<int>> n_tokens(texts.size());
        std::vector<LoadRequest> requests;
        for (const Prompt& text : texts) {
            requests.push_back({text, options_of(strategy, n_most(text))});
        }
        const auto all_run = [&] {
            return std::all_of(n_tokens.begin(), n_tokens.end() - 1,
                               [](const std::atomic<int>& n) { return n >= kTokensBefore; });
        };
        requests.back().options.n_predict = 1;
        requests.back().may_start = all_run;
        // The load ends when each of the others has a token after the newcomer's, so that a gap
        // that lasted until then counts.
        std::vector<std::atomic<bool>> has_gone_on(kRunning);
        const auto note_token = [&](std::size_t i) {
            ++n_tokens[i];
            if (i < has_gone_on.size() && n_tokens.back() > 0) {
                has_gone_on[i] = true;
            }
        };
        const auto all_went_on = [&] {
            return std::ranges::all_of(has_gone_on,
                                       [](const std::atomic<bool>& has) { return has.load(); });
        };
        auto times = times_of(
            serve(sessions, requests, {.on_token = note_token, .is_cancelled = all_went_on}));
        sessions.clear();  // before their engine
        rig_.unload();
        return times;
    }

    std::vector<TokenTimes> serve_peer(const std::vector<Prompt>& texts) {
        std::vector<TokenTimes> times(texts.size());
        const Stopwatch watch;
        LlamaServer server(peer_.batch(), {.on_token = [&](std::size_t i, Token) {
                               times[i].token_ms.push_back(watch.elapsed_ms());
                           }});
        for (std::size_t i = 0; i < texts.size() - 1; ++i) {
            server.add({.prompt = texts[i], .n_predict = n_most(texts[i])});
        }
        const auto all_run = [&] {
            return std::all_of(times.begin(), times.end() - 1, [](const TokenTimes& one) {
                return one.token_ms.size() >= kTokensBefore;
            });
        };
        while (!all_run()) {
            server.step();
        }
        times.back().start_ms = watch.elapsed_ms();
        server.add({.prompt = texts.back(), .n_predict = 1});
        while (times.back().token_ms.empty()) {
            server.step();
        }
        return times;
    }

    void report(const std::vector<Side>& sides, BenchJson& json) const {
        std::printf(
            "\nA prompt of %d tokens arrives while %d conversations are answered. Median [lowest, "
            "highest] of %d repetitions.\n%-16s %-24s %-30s %-30s\n",
            settings_.n_newcomer, kRunning, settings_.n_repeats, "side", "gap before, ms",
            "longest gap over that, ms", "newcomer's first token / libllama's");
        const Side& peer = sides.back();
        nlohmann::ordered_json common{{"question", "arrival"},
                                      {"running", kRunning},
                                      {"newcomer", settings_.n_newcomer},
                                      {"libllama", peer_.setting()}};
        std::vector<Contestant> contestants;
        for (const Side& side : sides) {
            std::printf("%-16s %-24s %-30s %s\n", side.name.c_str(),
                        spread_text(side.before_ms, 1).c_str(),
                        spread_text(side.excess_ms(), 1).c_str(),
                        spread_text(ratios_of(side.first_ms, peer.first_ms)).c_str());
            common["before_ms"][side.name] = rounded(side.before_ms);
            common["longest_ms"][side.name] = rounded(side.stall_ms);
            contestants.push_back({side.name, {}, side.first_ms});
        }
        std::printf("libllama: %s\n", peer_.setting().c_str());
        std::fflush(stdout);
        json.add_row(common, contestants, 1);
    }

    BatchRig& rig_;
    BatchPrompts& prompts_;
    BatchSettings settings_;
    int n_ctx_;
    PeerLoad peer_;
};

}  // namespace knap::bench
