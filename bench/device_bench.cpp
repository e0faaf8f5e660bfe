// How long do plain steps, verifications and draft steps take on a device such as a GPU as the
// context grows, compared with libllama on the same device, in one process and on the same tokens?
//
//     device_bench MODEL [--device NAME] [--depths N,...] [--rows N,...] [--peer on|off]
//                  [--exact on|off] [--kernels auto|own] [--json FILE]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench_json.h"
#include "bench_main.h"
#include "decode/advance.h"
#include "decode/drafter.h"
#include "device/device_list.h"
#include "every_second.h"
#include "forward/plan_text.h"
#include "measure.h"
#include "model_rig.h"
#include "search/row_numbers.h"
#include "tools/peer/llama_peer.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 7;
// Steps per timed run: enough to make the start of a run negligible (its first pass is not captured
// yet).
constexpr int kSteps = 64;
constexpr int kDraft = 8;  // tokens per draft

struct Settings {
    std::filesystem::path model;
    std::string device;  // empty: the first GPU
    std::vector<int> depths{0, 2048, 8000};
    std::vector<int> rows{2, 4, 8};
    bool has_peer = true;
    bool is_exact = true;
    Kernels kernels = Kernels::automatic;

    int n_ctx() const { return depths.back() + kUbatch; }
};

DeviceEntry choose_device(const std::string& name) {
    return name.empty() ? list_devices().front() : find_device(name, list_devices());
}

class DeviceRace {
  public:
    DeviceRace(const Settings& settings, BenchJson& json)
        : settings_(settings),
          json_(json),
          backend_(choose_device(settings.device).device, 0),
          ours_(settings.model,
                backend_,
                settings.kernels,
                CacheType::f16,
                settings.n_ctx(),
                settings.is_exact),
          sampler_({}, ours_.config.n_vocab, settings.n_ctx()),
          drafter_(ours_.forward, ours_.cache, sampler_, AcceptanceRule::shared_noise, never_ends_),
          tokens_(random_tokens(settings.n_ctx(), ours_.config.n_vocab)) {
        json_.add_model(settings.model, ours_.config, backend_);
        if (settings.has_peer) {
            peer_ =
                std::make_unique<LlamaPeer>(settings.model, PeerOptions{.n_ctx = settings.n_ctx(),
                                                                        .n_ubatch = kUbatch,
                                                                        .flash_attention = true,
                                                                        .beside = &backend_});
        }
    }

    void run() {
        int n_filled = 0;
        for (const int depth : settings_.depths) {
            fill(n_filled, depth);
            measure(depth);
            n_filled = depth;
        }
    }

  private:
    std::span<const Token> tokens(int first, int count) const {
        return std::span(tokens_).subspan(static_cast<std::size_t>(first),
                                          static_cast<std::size_t>(count));
    }

    void fill(int from, int to) {
        if (to == from) {
            return;
        }
        const Stopwatch watch;
        advance(ours_.forward, ours_.cache, tokens(0, to));
        const double ours_ms = watch.elapsed_ms();
        std::printf("prefill %d to %d: knap %.0f ms", from, to, ours_ms);
        if (peer_ != nullptr) {
            const Stopwatch peer_watch;
            for (int n = from; n < to; n += kUbatch) {
                peer_->feed(tokens(n, std::min(kUbatch, to - n)), LlamaPeer::Logits::last_row);
            }
            std::printf(", llama %.0f ms", peer_watch.elapsed_ms());
        }
        std::printf("\n");
    }

    // Runs passes of `n_rows` rows through the whole model, with the logits of every row.
    void step_ours(int depth, int n_rows) {
        for (int i = 0; i < kSteps; ++i) {
            ours_.forward.run(
                {.tokens = tokens(depth + i, n_rows),
                 .first_row = depth + i,
                 .layout = {.context = depth + i},
                 .logit_rows = std::span(logit_rows_).first(static_cast<std::size_t>(n_rows))});
        }
    }

    void step_peer(int depth, int n_rows) {
        for (int i = 0; i < kSteps; ++i) {
            peer_->feed(tokens(depth + i, n_rows), LlamaPeer::Logits::every_row);
            if (n_rows > 1) {
                peer_->truncate(depth + i + 1);
            }
        }
        peer_->truncate(depth);
    }

    void draft(const ModulePlan& plan) {
        for (int i = 0; i < kSteps; i += kDraft) {
            drafter_.draft(0, {.plan = &plan, .stop = {.n_max = kDraft}}, {}, kDraft, tree_);
        }
    }

    void measure(int depth) {
        std::vector<Contestant> sides{{"knap, one row", [=, this] { step_ours(depth, 1); }}};
        if (peer_ != nullptr) {
            sides.push_back({"llama, one row", [=, this] { step_peer(depth, 1); }});
        }
        for (const int n : settings_.rows) {
            sides.push_back({concat("knap, ", n, " rows"), [=, this] { step_ours(depth, n); }});
            if (peer_ != nullptr) {
                sides.push_back(
                    {concat("llama, ", n, " rows"), [=, this] { step_peer(depth, n); }});
            }
        }
        const int n_layers = ours_.config.n_layers;
        const auto add_draft = [&](const char* name, const std::string& plan) {
            const ModulePlan parsed = canonical(parse_plan(plan, n_layers), depth);
            sides.push_back({name, [=, this] { draft(parsed); }});
        };
        add_draft("draft, whole model", "full");
        add_draft("draft, half of the layers", concat('l', every_second(n_layers), "=skip"));
        add_draft("draft, a=w16+1024", "a=w16+1024");
        add_draft("draft, a=w16+256", "a=w16+256");
        alternate(sides, kRounds);
        json_.add_row({{"what", "device"},
                       {"exact", settings_.is_exact},
                       {"kernels", settings_.kernels == Kernels::own ? "own" : "auto"},
                       {"depth", depth}},
                      sides, kSteps);
        std::printf("depth %d\n", depth);
        for (const Contestant& side : sides) {
            std::printf("  %-28s %8.3f ms (+-%2.0f%%)  %6.3f of the first\n", side.name.c_str(),
                        median(side.times_ms) / kSteps, 100 * spread(side.times_ms),
                        median(side.times_ms) / median(sides.front().times_ms));
        }
        std::fflush(stdout);
    }

    const Settings& settings_;
    BenchJson& json_;
    Backend backend_;
    ModelRig ours_;
    Sampler sampler_;
    const std::function<bool(Token)> never_ends_ = [](Token) { return false; };
    Drafter drafter_;
    DraftTree tree_;
    std::vector<Token> tokens_;
    std::vector<int> logit_rows_ = row_numbers(kUbatch);
    std::unique_ptr<LlamaPeer> peer_;
};

void run(Settings settings, BenchJson json) {
    std::ranges::sort(settings.depths);
    const DeviceEntry device = choose_device(settings.device);
    std::printf("%s on %s (%s); medians of %d runs of %d steps, in turn\n",
                settings.model.filename().c_str(), device.name.c_str(), device.description.c_str(),
                kRounds, kSteps);
    DeviceRace(settings, json).run();
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    std::string peer = "on";
    std::string exact = "on";
    std::string json;
    CLI::App app("Steps on a device, compared with libllama", "device_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("--device", settings.device, "device to compute on (default: the first GPU)");
    app.add_option("--depths", settings.depths, "context lengths to measure at")->delimiter(',');
    app.add_option("--rows", settings.rows, "numbers of rows per verification")->delimiter(',');
    app.add_option("--peer", peer, "also time libllama")->check(CLI::IsMember({"on", "off"}));
    app.add_option("--exact", exact,
                   "use batches that are bit-identical to single rows, where there are any")
        ->check(CLI::IsMember({"on", "off"}));
    std::string kernels = "auto";
    app.add_option("--kernels", kernels, "own: knap's kernels also on a GPU")
        ->check(CLI::IsMember({"auto", "own"}))
        ->capture_default_str();
    app.add_option("--json", json, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    settings.has_peer = peer == "on";
    settings.is_exact = exact == "on";
    settings.kernels = kernels == "own" ? knap::Kernels::own : knap::Kernels::automatic;
    return knap::bench::bench_main("device_bench", [&] {
        knap::bench::run(settings, {json, argc, argv});
    });
}
