// What would passes of a whole model cost on this device? Writes models with the shapes of known
// ones, random weights and few layers, one at a time, and times passes that end after some of
// those layers. Every layer adds the same time, so two exits give the time of any number of layers,
// and a third shows how well. Draft steps with modules left out or narrowed give the parts of a
// layer. docs/paper_projection.py computes with these times.
//
//     shape_bench --shapes NAME,... [--types TYPE,...] [--layers N] [--exits N,...]
//                 [--depths N,...] [--rows N,...] [--plans 'PLAN;...'] [--device NAME]
//                 [--kernels auto|ggml|own] [--folder DIR] [--json FILE]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "bench_json.h"
#include "bench_main.h"
#include "device_rig.h"
#include "every_second.h"
#include "forward/plan_text.h"
#include "measure.h"
#include "search/row_numbers.h"
#include "tools/make_model/random_model.h"
#include "tools/make_model/shapes.h"

namespace knap::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kSteps = 8;  // passes of a timed run, and tokens of a draft
constexpr int kMaxRows = 64;

struct Settings {
    std::vector<std::string> shapes;
    std::vector<std::string> types{"F16", "Q4_K_M"};
    int n_layers = 8;
    std::vector<int> exits;  // empty: a quarter of the layers, half of them, all
    std::vector<int> depths{2048, 8192, 16384, 32768};
    // knap's CUDA kernels compute tiles of one row, eight and sixteen: 8 and 9 are on either side.
    std::vector<int> rows{1, 2, 4, 8, 9, 16};
    std::vector<std::string> plans;  // empty: default_plans()
    std::string device;
    Kernels kernels = Kernels::automatic;
    std::filesystem::path folder = std::filesystem::temp_directory_path();
};

// The parts of a layer, and a plan that mixes them.
std::vector<std::string> default_plans(int n_layers) {
    std::vector<std::string> plans{"full", "a=skip", "m=skip", "a=w16+1024"};
    if (n_layers > 1) {
        plans.push_back(concat("a=w16+1024,l", every_second(n_layers), "=skip"));
    }
    return plans;
}

std::vector<int> default_exits(int n_layers) {
    std::vector<int> exits{std::max(1, n_layers / 4), std::max(1, n_layers / 2), n_layers};
    exits.erase(std::ranges::unique(exits).begin(), exits.end());
    return exits;
}

// Checks every setting before the first model is written, and fills in the defaults.
void complete(Settings& settings) {
    if (settings.n_layers < 1) {
        fail("--layers: expected 1 or more, found ", settings.n_layers);
    }
    if (settings.exits.empty()) {
        settings.exits = default_exits(settings.n_layers);
    }
    if (settings.plans.empty()) {
        settings.plans = default_plans(settings.n_layers);
    }
    const auto sort_within = [](std::vector<int>& values, const char* flag, int least, int most) {
        std::ranges::sort(values);
        if (values.empty() || values.front() < least || values.back() > most) {
            fail(flag, ": expected numbers from ", least, " to ", most, ", found ",
                 join(values, ","));
        }
    };
    sort_within(settings.exits, "--exits", 1, settings.n_layers);
    sort_within(settings.rows, "--rows", 1, kMaxRows);
    for (const std::string& plan : settings.plans) {
        check_runnable(parse_plan(plan, settings.n_layers, "--plans"), settings.n_layers,
                       "--plans");
    }
    for (const std::string& shape : settings.shapes) {
        for (const std::string& type : settings.types) {
            check_random_model({.shape = shape, .type = type, .n_layers = settings.n_layers});
        }
        sort_within(settings.depths, "--depths", 0, find_shape(shape).n_ctx_train);
    }
}

std::string count(int n, const char* word) {
    return concat(n, " ", word, n == 1 ? "" : "s");
}

// Deleted when the object goes.
struct ModelFile {
    ModelFile(std::filesystem::path where, const RandomModelOptions& options)
        : path(std::move(where)) {
        write_random_model(options, path);
    }
    ~ModelFile() {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
    ModelFile(const ModelFile&) = delete;
    ModelFile& operator=(const ModelFile&) = delete;

    std::filesystem::path path;
};

class ShapeTimes {
  public:
    ShapeTimes(const Settings& settings,
               const std::filesystem::path& model,
               nlohmann::ordered_json facts,
               BenchJson& json)
        : settings_(settings),
          facts_(std::move(facts)),
          json_(json),
          rig_(model, settings.device, settings.kernels, settings.depths.back()),
          tokens_(random_tokens(kMaxRows, rig_.config().n_vocab)) {
        json_.add_model(model, rig_.config(), rig_.device_name(), rig_.n_threads());
        std::printf("%s, %s, on %s\n", model.filename().c_str(),
                    count(rig_.config().n_layers, "layer").c_str(), rig_.device_name().c_str());
    }

    void run() {
        fill_with_copies(rig_.forward(), rig_.cache(), settings_.depths.back());
        for (const int depth : settings_.depths) {
            move_end(rig_.cache(), depth);
            measure(depth);
        }
    }

  private:
    void pass(int depth, int n_rows, const ModulePlan& plan) {
        const auto n = static_cast<std::size_t>(n_rows);
        rig_.forward().run({.tokens = std::span(tokens_).first(n),
                            .plan = &plan,
                            .first_row = depth,
                            .layout = {.context = depth},
                            .logit_rows = std::span(logit_rows_).first(n),
                            .chooses = true});
    }

    void verify(int depth, int n_rows, const ModulePlan& plan) {
        for (int i = 0; i < kSteps; ++i) {
            pass(depth, n_rows, plan);
        }
    }

    void draft(int depth, const ModulePlan& plan) {
        Forward& forward = rig_.forward();
        if (forward.max_chain(depth) >= kSteps) {
            forward.run_chain({.plan = &plan, .first_row = depth, .n_steps = kSteps});
        } else {
            verify(depth, 1, plan);
        }
    }

    void measure(int depth) {
        const int n_layers = rig_.config().n_layers;
        std::vector<Contestant> sides;
        for (const int exit : settings_.exits) {
            const ModulePlan plan = early_exit_plan(n_layers, exit);
            for (const int n : settings_.rows) {
                sides.push_back({concat(count(n, "row"), ", ", count(exit, "layer")),
                                 [=, this] { verify(depth, n, plan); }});
            }
        }
        for (const std::string& text : settings_.plans) {
            const ModulePlan plan = canonical(parse_plan(text, n_layers, "--plans"), depth);
            sides.push_back({concat("draft, ", text), [=, this] { draft(depth, plan); }});
        }
        alternate(sides, kRounds, rig_.n_threads() > 0 ? kSpinTime : std::chrono::milliseconds(1));
        facts_["depth"] = depth;
        json_.add_row(facts_, sides, kSteps);
        std::printf("  context of %d\n", depth);
        for (const Contestant& side : sides) {
            std::printf("    %-44s %8.3f ms (+-%2.0f%%)\n", side.name.c_str(),
                        median(side.times_ms) / kSteps, 100 * spread(side.times_ms));
        }
        std::fflush(stdout);
    }

    const Settings& settings_;
    nlohmann::ordered_json facts_;
    BenchJson& json_;
    DeviceRig rig_;
    std::vector<Token> tokens_;
    std::vector<int> logit_rows_ = row_numbers(kMaxRows);
};

// The file is not needed once the model is loaded: nothing is left behind when the program is
// interrupted later.
ShapeTimes load(const Settings& settings,
                const std::string& shape,
                const std::string& type,
                const std::string& kernels,
                BenchJson& json) {
    const ModelFile file(settings.folder / concat("knap-", shape, "-", type, ".gguf"),
                         {.shape = shape, .type = type, .n_layers = settings.n_layers});
    return {settings,
            file.path,
            {{"what", "shape"},
             {"shape", shape},
             {"type", type},
             {"n_layers", settings.n_layers},
             {"kernels", kernels}},
            json};
}

void run(Settings settings, const std::string& kernels, BenchJson json) {
    complete(settings);
    for (const std::string& shape : settings.shapes) {
        for (const std::string& type : settings.types) {
            const Stopwatch watch;
            load(settings, shape, type, kernels, json).run();
            std::printf("  %.0f s in all\n", watch.elapsed_ms() / 1000);
        }
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    std::string kernels = "auto";
    std::string json;
    CLI::App app("Passes of models by their shape", "shape_bench");
    app.add_option("--shapes", settings.shapes, "shapes of `knap make-model`")
        ->delimiter(',')
        ->required();
    app.add_option("--types", settings.types, "weight types of `knap make-model`")->delimiter(',');
    app.add_option("--layers", settings.n_layers, "layers of the models that are timed");
    app.add_option("--exits", settings.exits,
                   "layers that passes run (default: a quarter, half, all)")
        ->delimiter(',');
    app.add_option("--depths", settings.depths, "context lengths")->delimiter(',');
    app.add_option("--rows", settings.rows, "rows of a pass")->delimiter(',');
    app.add_option("--plans", settings.plans, "plans of draft steps, separated by semicolons")
        ->delimiter(';');
    app.add_option("--device", settings.device, "device to compute on (default: the first GPU)");
    app.add_option("--kernels", kernels, "own: knap's kernels also on a GPU")
        ->check(CLI::IsMember({"auto", "ggml", "own"}))
        ->capture_default_str();
    app.add_option("--folder", settings.folder, "folder for the models, which are deleted");
    app.add_option("--json", json, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    settings.kernels = kernels == "own"    ? knap::Kernels::own
                       : kernels == "ggml" ? knap::Kernels::ggml
                                           : knap::Kernels::automatic;
    return knap::bench::bench_main("shape_bench", [&] {
        knap::bench::run(settings, kernels, {json, argc, argv});
    });
}
