#include <cmath>

#include "decode/knapspec/copy_drafts.h"
#include "decode/knapspec/plan_pool.h"
#include "forward/plan_text.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "runtime/files/learned_file.h"
#include "runtime/files/plans_file.h"
#include "runtime/files/profile_file.h"
#include "search/cost/cost_tracker.h"
#include "support/tiny_model.h"
#include "tools/offline_search/offline_search_file.h"

namespace knap::fuzz::saved_files_target_parts {
namespace {

constexpr int kLayers = 4;
constexpr int kContexts[] = {0, 1, 700, 100'000};
const PlansModel kModel{.fingerprint = "00ff", .n_layers = kLayers};

MachineFingerprint machine() {
    return {{{"model", "00ff"}, {"threads", "2"}}};
}

CostProfile blank() {
    return {.layer_classes = {0, 1, 1, 0},
            .bytes = {.attention = {4, 5}, .mlp = {8, 9}, .head = 7, .cache_row = 1}};
}

OfflineSearch search() {
    return {
        .model = kModel,
        .settings = {.n_predict = 16, .n_prompts = 4, .prompts_hash = "12", .machine_hash = "ef"}};
}

void expect_time(double ms) {
    expect(std::isfinite(ms) && ms > 0, "times are finite and positive");
}

// What a strategy asks of costs and plans that were loaded.
void draft_with(const CostProfile& profile,
                const std::vector<SavedPlan>& plans,
                const Learned& learned) {
    const CostModel model(profile);
    const CostTracker costs(model);
    for (const int n_context : kContexts) {
        expect_time(costs.verify_ms(8, n_context));
        expect_time(model.fixed_ms());
        model.module_times(n_context, {});
        PlanPool pool(std::vector<int>(kLayers, 0), HeadLevel::reduced,
                      {{.sinks = 4, .recent = 60}}, plans);
        pool.grow(n_context);
        pool.recall(learned, n_context, true);
        pool.share_evidence();
        pool.best(costs, n_context, 8);
        pool.promising(0.5, 1, costs, n_context, 8);
        pool.forget_worst(costs, n_context, 8, -1);
    }
}

// Adds what was learned to itself, as a later run does, and reads it as it is written.
void check(Learned learned) {
    Learned same = learned;
    same.n_runs = 1;
    learned.add(same);
    learned.add(same);
    expect(std::isfinite(learned.weight()), "counts are finite");
    const auto path = temporary_folder() / "again.json";
    save_learned(path, learned, machine());
    const Learned read = load_learned(path, machine(), kLayers);
    expect(learned.n_runs > (1 << 29) || learned_to_json(read) == learned_to_json(learned),
           "what was learned can be read as it is written");
}

void run(std::string_view input) {
    const InputFile file(input);
    const auto profile = load_profile(file.path(), machine(), blank());
    const std::vector<SavedPlan> plans = load_plans(file.path(), kModel);
    const Learned learned = load_learned(file.path(), machine(), kLayers);
    CostProfile known = profile.value_or(blank());
    std::vector<SavedPlan> all = plans;
    for (const Learned::Found& found : learned.plans) {
        all.push_back(found.plan);
    }
    for (const Learned::Cost& cost : learned.costs) {
        known.samples.push_back(cost.sample);
    }
    if (known.samples.empty() && !all.empty()) {
        known.samples.push_back({.plan = ModulePlan(kLayers), .n_context = 128, .ms = 1});
    }
    if (can_fit(known)) {
        draft_with(known, all, learned);
    }
    if (!learned.is_empty()) {
        check(learned);
    }
    is_accepted([&] {
        SpeculationOptions options;
        take_plan_of_file(file.path(), kModel, options);
        expect(options.draft_max > 0 && options.draft_max <= kMaxDraft, "a draft has a length");
    });
    is_accepted([&] {
        OfflineSearch found = search();
        load_trials(file.path(), found);
        best_trial(found);
    });
}

std::string saved(const std::function<void(const std::filesystem::path&)>& save) {
    const auto path = temporary_folder() / "saved.json";
    save(path);
    return bytes_of(path);
}

CostProfile some_profile() {
    CostProfile profile = blank();
    profile.samples = {
        {.plan = ModulePlan(kLayers), .n_context = 128, .ms = 1.0 / 3, .n_measured = 7},
        {.plan = ModulePlan(kLayers), .n_context = 2048, .n_rows = 8, .ms = 2, .spread_ms = 0.1},
        {.plan = parse_plan("a=w16+64,m2=skip", kLayers),
         .n_context = 4096,
         .n_rows = 3,
         .has_head = false,
         .ms = 2.5e-3,
         .was_busy = true}};
    return profile;
}

std::vector<SavedPlan> some_plans() {
    return {{.n_context = 700, .plan = parse_plan("exit=2", kLayers), .agreed = 5, .n_rows = 8},
            {.n_context = 90, .plan = parse_plan("l1=skip,head=reduced", kLayers), .n_rows = 1}};
}

Learned some_learned() {
    Learned learned{.n_runs = 3};
    learned.add_drafts({.name = "a=w4+60", .bucket = 3}, {.right = 1.0 / 3, .all = 10});
    learned.add_drafts({.name = "copies", .is_sampled = true}, {.right = 7, .all = 8});
    learned.copies[1][3][CopyAcceptance::kCells - 1] = {.right = 2, .all = 2};
    learned.add_plan(some_plans()[0], 1.25);
    for (const CostSample& sample : some_profile().samples) {
        learned.add_cost(sample);
    }
    return learned;
}

OfflineSearch some_search() {
    OfflineSearch found = search();
    found.trials = {{.origin = TrialOrigin::starting_point,
                     .plan = parse_plan("a0=skip", kLayers),
                     .draft_max = 12,
                     .point = std::vector<double>(2 * kLayers, 0.25),
                     .measured = {.speed = 0.75, .tokens_per_second = 60, .acceptance_rate = 0.5}}};
    return found;
}

std::vector<std::string> seeds() {
    std::vector<std::string> all{
        saved([](const auto& path) { save_profile(path, some_profile(), machine()); }),
        saved([](const auto& path) { save_plans(path, kModel, some_plans()); }),
        saved([](const auto& path) { save_learned(path, some_learned(), machine()); }),
        saved([](const auto& path) { save_search(path, some_search()); })};
    for (const std::string& text : deep_and_long()) {
        all.push_back("{\"kind\":\"knap search\",\"format\":1,\"settings\":{\"n_predict\":" + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::saved_files_target_parts

knap::fuzz::Target knap::fuzz::saved_files_target() {
    using namespace saved_files_target_parts;
    return {.name = "saved_files",
            .run = run,
            .seeds = seeds,
            .word_sources = {"src/runtime/files", "src/forward/plan_text.cpp",
                             "tools/offline_search/offline_search_file.cpp"}};
}
