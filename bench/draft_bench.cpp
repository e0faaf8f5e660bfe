// What does a draft step with a cheaper plan cost, relative to the whole model? Does a windowed
// draft stay as cheap while the context grows?
//
//     draft_bench MODEL [--threads N] [--json FILE]
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench_json.h"
#include "bench_main.h"
#include "decode/drafter.h"
#include "every_second.h"
#include "forward/plan_text.h"
#include "measure.h"
#include "model_rig.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 11;
constexpr int kDraftTokens = 4;  // per timed run
constexpr std::array kDepths{1000, 4000, 8000};
constexpr const char* kWindowPlan = "a=w16+256";

struct NamedPlan {
    std::string name;
    ModulePlan plan;
    bool is_guessed = false;  // the draft is known in advance and checked in one pass
};

// The whole model first.
std::vector<NamedPlan> plans_to_time(int n_layers, bool has_reduced_head) {
    const std::string half = every_second(n_layers);
    std::vector<NamedPlan> plans;
    const auto add = [&](const char* name, const std::string& text) {
        plans.push_back({name, parse_plan(text, n_layers)});
    };
    add("whole model", "full");
    add("attentions at w16+64", "a=w16+64");
    add("attentions at w16+256", kWindowPlan);
    add("attentions at w16+1024", "a=w16+1024");
    add("every second attention skipped", concat('a', half, "=skip"));
    add("every second MLP skipped", concat('m', half, "=skip"));
    add("every second layer skipped", concat('l', half, "=skip"));
    add("exit at half of the layers", concat("exit=", n_layers / 2));
    add("head only", "exit=0");
    if (has_reduced_head) {
        add("reduced head only", "exit=0,head=reduced");
        add("reduced head", "head=reduced");
        add("w16+256, reduced head", concat(kWindowPlan, ",head=reduced"));
    }
    add("w16+256, guessed (cascade)", kWindowPlan);
    plans.back().is_guessed = true;
    return plans;
}

// Times greedy drafts of a fixed length.
class DraftTimer {
  public:
    explicit DraftTimer(ModelRig& rig)
        : rig_(rig),
          sampler_({}, rig.config.n_vocab, kContext),
          drafter_(rig.forward, rig.cache, sampler_, AcceptanceRule::shared_noise, never_ends_) {}

    void draft(int depth, const ModulePlan& plan, std::span<const Token> guess = {}) {
        rig_.go_to(depth);
        drafter_.draft(/*pending=*/0,
                       {.plan = &plan, .stop = {.n_max = kDraftTokens}, .guess = guess},
                       /*captures=*/{}, /*max_nodes=*/kDraftTokens, tree_);
    }

    std::vector<Contestant> time_plans(int depth, const std::vector<NamedPlan>& plans) {
        std::vector<Contestant> contestants;
        for (const auto& [name, plan, is_guessed] : plans) {
            const ModulePlan now = canonical(plan, depth);
            std::vector<Token> guess;
            if (is_guessed) {
                draft(depth, now);
                guess.assign(tree_.tokens().begin(), tree_.tokens().end());
            }
            contestants.push_back({name, [=, this] { draft(depth, now, guess); }});
        }
        alternate(contestants, kRounds);
        return contestants;
    }

  private:
    ModelRig& rig_;
    Sampler sampler_;
    const std::function<bool(Token)> never_ends_ = [](Token) { return false; };
    Drafter drafter_;
    DraftTree tree_;
};

// Draft steps relative to plain steps at the same depth: a row per plan, a column per depth.
void report_plans(DraftTimer& timer,
                  const std::vector<NamedPlan>& plans,
                  std::span<const int> depths,
                  BenchJson& json) {
    std::vector<std::vector<Contestant>> by_depth;
    std::printf("%-32s", "context");
    for (const int depth : depths) {
        by_depth.push_back(timer.time_plans(depth, plans));
        json.add_row({{"what", "draft"}, {"depth", depth}}, by_depth.back(), kDraftTokens);
        std::printf(" %14d", depth);
    }
    std::printf("\n%-32s", "step of the whole model, ms");
    for (const auto& contestants : by_depth) {
        const auto& times_ms = contestants.front().times_ms;
        std::printf(" %6.2f (+-%2.0f%%)", median(times_ms) / kDraftTokens, 100 * spread(times_ms));
    }
    for (std::size_t i = 1; i < plans.size(); ++i) {
        std::printf("\n%-32s", plans[i].name.c_str());
        for (const auto& contestants : by_depth) {
            const auto ratios = relative_times(contestants[i], contestants.front());
            std::printf(" %6.3f (+-%2.0f%%)", median(ratios), 100 * spread(ratios));
        }
    }
    std::printf("\n");
    std::fflush(stdout);
}

void report_growth(ModelRig& rig, std::span<const int> depths, BenchJson& json) {
    DraftTimer timer(rig);
    const ModulePlan plan = parse_plan(kWindowPlan, rig.config.n_layers);
    std::vector<Contestant> sides{
        {"short", [&] { timer.draft(depths.front(), plan); }},
        {"long", [&] { timer.draft(depths.back(), plan); }},
    };
    alternate(sides, 3 * kRounds);
    const auto ratios = relative_times(sides[1], sides[0]);
    const std::string path(rig.rows.pipeline().device_limits().attention);
    json.add_row({{"what", "growth"},
                  {"plan", kWindowPlan},
                  {"attention", path},
                  {"depths", {depths.front(), depths.back()}}},
                 sides, kDraftTokens);
    std::printf(
        "draft step with %s, %d tokens / %d tokens, %s path: %.3f (+-%.0f%%; at most 1.15)\n",
        kWindowPlan, depths.back(), depths.front(), path.c_str(), median(ratios),
        100 * spread(ratios));
    std::fflush(stdout);
}

void run(const std::filesystem::path& path, int n_threads, BenchJson json) {
    Backend backend(n_threads);
    std::printf("%s, %d threads; draft step / step of the whole model, medians of %d\n",
                path.filename().c_str(), backend.n_threads(), kRounds);
    for (const Kernels kernels : {Kernels::automatic, Kernels::ggml}) {
        ModelRig rig(path, backend, kernels);
        const std::span<const int> depths = rig.within_context(kDepths);
        rig.fill(depths.back());
        if (kernels == Kernels::automatic) {
            json.add_model(path, rig.config, backend);
            DraftTimer timer(rig);
            report_plans(timer, plans_to_time(rig.config.n_layers, rig.draft_head.has_value()),
                         depths, json);
        }
        report_growth(rig, depths, json);
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("What a draft step costs", "draft_bench");
    std::string model;
    int n_threads = 0;
    std::string json;
    app.add_option("MODEL", model, "a model in GGUF format")->required();
    app.add_option("--threads", n_threads, "threads; 0: the physical cores");
    app.add_option("--json", json, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("draft_bench", [&] {
        knap::bench::run(model, n_threads, {json, argc, argv});
    });
}
