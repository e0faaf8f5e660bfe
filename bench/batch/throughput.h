// Tokens per second of N conversations that start at once: our strategies, and libllama with its
// better setting, in turn on the same prompts.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "bench/batch/prompts.h"
#include "bench/batch/ratios.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"

namespace knap::bench {

class Throughput {
  public:
    Throughput(BatchRig& rig, BatchPrompts& prompts, const BatchSettings& settings)
        : rig_(rig),
          prompts_(prompts),
          settings_(settings),
          n_ctx_(context_for(settings.longest + settings.n_predict)) {}

    void run(BenchJson& json) {
        for (const int n : settings_.n_sessions) {
            choose_peer(n);
        }
        for (int repeat = 0; repeat < settings_.n_repeats; ++repeat) {
            for (const int n : settings_.n_sessions) {
                measure(n, prompts_.next(n));
                std::fprintf(stderr, "throughput: repetition %d of %d, %d sessions\n", repeat + 1,
                             settings_.n_repeats, n);
            }
        }
        print();
        for (const int n : settings_.n_sessions) {
            add_rows(json, n);
        }
    }

  private:
    // The repetitions of one side with one number of conversations.
    struct Side {
        std::vector<LoadTimes> times{};
        std::vector<double> together{};  // tokens per second while all were being answered

        template <typename Value>
        std::vector<double> values(Value LoadTimes::*member) const {
            std::vector<double> list;
            for (const LoadTimes& one : times) {
                list.push_back(one.*member);
            }
            return list;
        }
        std::vector<double> rates() const { return values(&LoadTimes::tokens_per_second); }

        void add(const std::vector<TokenTimes>& requests) {
            times.push_back(load_times_of(requests));
            if (const auto rate = rate_together(requests)) {
                together.push_back(*rate);
            }
        }
    };

    // On a load as long as the measured ones: prompts and answers favour different settings.
    void choose_peer(int n) {
        PeerLoad& peer = peers_.try_emplace(n, rig_.peer(n, n_ctx_)).first->second;
        peer.choose(peer_requests(prompts_.next(n), settings_.n_predict));
    }

    void measure(int n, const std::vector<Prompt>& prompts) {
        for (const std::string& strategy : settings_.strategies) {
            sides_[n][strategy].add(serve_ours(n, prompts, strategy));
        }
        rig_.unload();
        sides_[n][kPeer].add(
            serve(peers_.at(n).batch(), peer_requests(prompts, settings_.n_predict)));
    }

    std::vector<TokenTimes> serve_ours(int n,
                                       const std::vector<Prompt>& prompts,
                                       const std::string& strategy) {
        std::vector<Session> sessions = open_sessions(rig_.load(n_ctx_, n), n);
        warm_up(sessions, prompts_);
        std::vector<LoadRequest> requests;
        for (const Prompt& prompt : prompts) {
            requests.push_back({prompt, options_of(strategy, settings_.n_predict)});
        }
        return times_of(serve(sessions, requests));
    }

    void print() const {
        std::printf(
            "\nThroughput of N conversations of %d tokens each, prompts included. `together`: "
            "tokens/s while all are answered.\nRatios: median [lowest, highest] of %d repetitions; "
            "times in ms: median over repetitions, the largest gap of all.\n",
            settings_.n_predict, settings_.n_repeats);
        std::printf("%2s %-16s %8s %8s  %-19s  %-19s  %14s  %21s\n", "N", "side", "tokens/s",
                    "together", "/ libllama", concat("/ N=", settings_.n_sessions.front()).c_str(),
                    "first med p95", "gap med p95 max");
        for (const int n : settings_.n_sessions) {
            for (const std::string& strategy : settings_.strategies) {
                print_line(n, strategy, strategy);
            }
            print_line(n, kPeer, concat("libllama, ", peers_.at(n).setting()));
        }
    }

    void print_line(int n, const std::string& name, const std::string& label) const {
        const Side& side = sides_.at(n).at(name);
        const int n_first = settings_.n_sessions.front();
        std::printf(
            "%2d %-16s %8.1f %8.1f  %-19s  %-19s  %6.0f %7.0f  %6.1f %6.1f %7.1f%s\n", n,
            name.c_str(), median(side.rates()), side.together.empty() ? 0.0 : median(side.together),
            spread_text(ratios_of(side.rates(), sides_.at(n).at(kPeer).rates())).c_str(),
            spread_text(ratios_of(side.rates(), sides_.at(n_first).at(name).rates())).c_str(),
            median(side.values(&LoadTimes::first_median_ms)),
            median(side.values(&LoadTimes::first_p95_ms)),
            median(side.values(&LoadTimes::gap_median_ms)),
            median(side.values(&LoadTimes::gap_p95_ms)),
            std::ranges::max(side.values(&LoadTimes::gap_max_ms)),
            name == label ? "" : concat("  ", label).c_str());
        std::fflush(stdout);
    }

    void add_rows(BenchJson& json, int n) const {
        nlohmann::ordered_json common{
            {"question", "throughput"}, {"sessions", n}, {"libllama", peers_.at(n).setting()}};
        std::vector<Contestant> contestants;
        for (const auto& [name, side] : sides_.at(n)) {
            contestants.push_back({name, {}, side.values(&LoadTimes::wall_ms)});
            common["first_p95_ms"][name] = rounded(side.values(&LoadTimes::first_p95_ms));
            common["gap_p95_ms"][name] = rounded(side.values(&LoadTimes::gap_p95_ms));
            common["gap_max_ms"][name] = rounded(side.values(&LoadTimes::gap_max_ms));
            common["together"][name] = rounded(side.together);
        }
        json.add_row(common, contestants, n * settings_.n_predict);
    }

    static constexpr const char* kPeer = "libllama";

    BatchRig& rig_;
    BatchPrompts& prompts_;
    BatchSettings settings_;
    int n_ctx_;
    std::map<int, PeerLoad> peers_;
    std::map<int, std::map<std::string, Side>> sides_;
};

}  // namespace knap::bench
